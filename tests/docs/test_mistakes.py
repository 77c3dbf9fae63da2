"""Each program on the page of mistakes ends with the message that stands below it.

``python -m tests.docs.test_mistakes`` writes into the page what its programs say now.
"""

from __future__ import annotations

import re
import signal
import tempfile
from pathlib import Path

import pytest

from tests.processes import run_python

from .pages import DOCS

PAGE = DOCS / "mistakes.md"
SECTION = re.compile(
    r"^## \d+\. (?P<title>[^\n]+)\n\n"
    r"```python\n(?P<program>.*?)^```\n\n```text\n(?P<said>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
MISTAKES = list(SECTION.finditer(PAGE.read_text(encoding="utf-8")))
OTHERS = re.compile(r"(; |^\[)\d+ more process(es)? failed(?=\]$)")
"""How many processes failed as well depends on which is quicker."""


def said(program: str, folder: Path) -> str:
    """Return the message with which a program ends, without its traceback; else its output."""
    (folder / "mistake.py").write_text(program, encoding="utf-8")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else the program ignores it, too
    done = run_python("mistake.py", cwd=folder)
    last = done.stderr.rpartition("Traceback (most recent call last):\n")[2] or done.stdout
    lines = [line for line in last.splitlines() if line and not line.startswith("  ")]
    told = (OTHERS.sub("", line.removeprefix("bsplib.errors.")) for line in lines)
    shown = "".join(f"{line}\n" for line in told if line != "]")
    return shown.replace(f"{folder}/", "")


def test_the_page_has_a_message_for_each_of_its_programs():
    text = PAGE.read_text(encoding="utf-8")
    assert len(MISTAKES) == text.count("\n## ") >= 20


@pytest.mark.lengthy
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each["title"])
def test_a_mistake_is_told_in_one_sentence_as_the_page_shows(mistake, tmp_path):
    message = said(mistake["program"], tmp_path)
    assert message == mistake["said"]
    for number, line in enumerate(mistake["program"].splitlines(), 1):
        if line.endswith("# here") and "[process" in message:
            assert f"mistake.py:{number}" in message


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        written = PAGE.read_text(encoding="utf-8")
        for each in MISTAKES:
            now = said(each["program"], Path(made))
            written = written.replace(each[0], each[0].replace(each["said"], now))
    PAGE.write_text(written, encoding="utf-8")
