"""Links inside the documentation lead to pages, sections and files that exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from .pages import BLOCK, DOCS, ROOT, name_of

PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("bsplib/**/*.md")]
KEPT = [page for page in PAGES if page.parent != DOCS / "gallery" / "pages"]
"""Without the pages that are made for the site only."""
SITE = runpy.run_path(str(DOCS / "conf.py"))
INLINE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)


def prose(page):
    """A page without its programs."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """The names of the sections of a page, as the site makes them."""
    text = prose(page)
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in headings} | {*LABEL.findall(text)}


def broken(page):
    """The links of a page that lead nowhere."""
    for target, anchor in LINK.findall(INLINE.sub("``", prose(page))):
        if "://" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and anchor not in anchors(Path(there))):
            yield target, anchor


@pytest.mark.parametrize("page", PAGES + OTHERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_page_and_a_section_that_exist(page):
    assert list(broken(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_links_only_pages_that_the_site_has(page):
    on_the_site = SITE["link_on_the_site"]
    links = [target for target, _ in LINK.findall(INLINE.sub("``", prose(page)))]
    pages = [link for link in links if "://" not in link and link.endswith(".md")]
    assert [link for link in pages if on_the_site(page, link).startswith("/..")] == []


def test_every_page_stands_in_one_table_of_contents():
    listed = ["index"]
    for page in PAGES:
        if page.name == "index.md":
            text = SITE["rewrite_links"](page, page.read_text(encoding="utf-8"))
            listed += [name[1:] for _, names in SITE["contents"](text) for name in names]
    assert sorted(listed) == sorted(map(name_of, KEPT))
