"""Each mistake of beginners gets one sentence that the page of mistakes shows."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = runpy.run_path(str(ROOT / "docs" / "mistakes.py"))
MISTAKES = MADE["MISTAKES"]
TABLES = ("RunTimeoutError", "KeyboardInterrupt")
"""What is followed by a table of where the processes were."""


def test_the_page_has_all_mistakes_and_no_others():
    text = MADE["PAGE"].read_text(encoding="utf-8")
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert titles == [f"{number}. {mistake.title}" for number, mistake in enumerate(MISTAKES, 1)]
    assert len(titles) >= 25


def test_every_mistake_says_something_definite():
    assert [mistake.title for mistake in MISTAKES if not mistake.says or not mistake.out] == []


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("number", "mistake"), list(enumerate(MISTAKES, 1)), ids=[each.title for each in MISTAKES]
)
def test_a_mistake_is_told_in_one_sentence_as_the_page_shows(number, mistake, tmp_path):
    message, output = MADE["run"](mistake, tmp_path)
    for part in mistake.says:
        assert part in message
    if mistake.line is not None:
        assert any(name.format(mistake.line) in output for name in NAMES)
    if not mistake.legal and not message.startswith(TABLES):
        lines = message.splitlines()
        assert all(line.startswith("[") for line in lines[1:])  # notes of Python's own errors
    section = MADE["section"](number, mistake, message)
    assert section in MADE["PAGE"].read_text(encoding="utf-8")


NAMES = ("mistake.py:{}", 'mistake.py", line {}')
"""How a line is named: at the end of a message, or in the traceback of the caller."""
