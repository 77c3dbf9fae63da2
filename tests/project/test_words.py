"""The words that only this code uses are few, each has one meaning, and the code has them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("bsplib", "profiler", "webui", "apps")


def glossary() -> list[str]:
    """Return the first column of the table of words."""
    page = (ROOT / "docs/maintaining/architecture.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## Words\n")
    return re.findall(r"^\| (?!word \|)(\w[^|]*?) \| \w", section, re.MULTILINE)


def test_a_word_of_the_glossary_has_one_meaning():
    words = glossary()
    assert len(words) == len(set(words))
    assert [word for word in words if "(" in word or "," in word] == []


@pytest.fixture(scope="module")
def code() -> dict[str, str]:
    """Return the sources of the packages by their names."""
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for folder in CODE
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".pxd", ".c", ".h")
    }


def test_the_code_has_every_word_of_the_glossary(code):
    plain = [word.removeprefix("to ") for word in glossary()]
    every = "\n".join(code.values())
    missing = [
        word for word in plain if re.search(rf"(?<![a-zA-Z]){word}(?![a-zA-Z])", every) is None
    ]
    assert missing == []
