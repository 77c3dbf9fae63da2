"""The pages for readers of the code name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for pattern in ("*.md", "docs/*.md", "bsplib/**/*.md", "benchmarks/*.md")
    for path in sorted(ROOT.glob(pattern))
]
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
LINKED_NAME = re.compile(r"\[`([\w.]+)`\]\(([^)#]+\.py)\)")
NAMED = re.compile(r"`((?:bsplib|profiler|webui|apps|tests|benchmarks|docs)/[\w./-]*[\w/])`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_or_links_exists(page):
    text = page.read_text(encoding="utf-8")
    links = [link for link in LINK.findall(text) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    if page.name != "CHANGELOG.md":  # which names files as they were
        missing += [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    assert missing == []


def test_the_architecture_page_names_every_room_of_the_runtime():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = [path.parent.name for path in (ROOT / "bsplib").glob("*/__init__.py")]
    assert rooms
    assert [room for room in rooms if f"bsplib/{room}" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_function_and_class_that_a_page_links_is_defined_in_that_file(page):
    missing = []
    for name, link in LINKED_NAME.findall(page.read_text(encoding="utf-8")):
        code = (page.parent / link).read_text(encoding="utf-8")
        parts = [] if name.endswith(".py") else name.split(".")
        missing += [name for part in parts if not re.search(rf"(?:def|class) {part}\b", code)]
    assert missing == []
