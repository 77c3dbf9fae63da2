"""The words that only this code uses are few, each has one meaning, and the code has them all."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 20
"""A reader can learn so many words before reading the code. A further one replaces another one:
by the field's word, or by a plain one that needs no explanation."""
CODE = ("bsplib", "profiler", "webui", "apps")


def glossary() -> list[str]:
    """Return the first column of the table of words."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## Words\n")
    return re.findall(r"^\| (?!word \|)(\w[^|]*?) \| \w", section, re.MULTILINE)


def test_the_words_of_the_glossary_are_few():
    assert 0 < len(glossary()) <= MOST


def test_a_word_of_the_glossary_has_one_meaning():
    words = glossary()
    assert len(words) == len(set(words))
    assert [word for word in words if "(" in word or "," in word] == []


def test_the_code_has_every_word_of_the_glossary():
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in CODE
        for path in (ROOT / folder).rglob("*.py")
    )
    plain = [word.removeprefix("to ") for word in glossary()]
    missing = [
        word for word in plain if re.search(rf"(?<![a-zA-Z]){word}(?![a-zA-Z])", code) is None
    ]
    assert missing == []
