"""The reference has every public name, and an example of each."""

from __future__ import annotations

import inspect
import re
import runpy

import pytest

import bsplib
from bsplib import errors

from .pages import DOCS, name_of, pages, sessions


def text_of(page):
    return page.read_text(encoding="utf-8")


PAGES = sorted(DOCS.rglob("*.md"))

TEXT = "".join(page.read_text(encoding="utf-8") for page in pages("reference"))
EXAMPLES = "".join(sessions(page) for page in pages("reference"))
METHODS = sorted(name for name, _ in inspect.getmembers(bsplib.Group) if name[0] != "_")
ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
OTHERS = sorted({*bsplib.__all__} - ERRORS - {"__version__"})


@pytest.mark.parametrize("name", METHODS)
def test_the_reference_has_every_method_of_the_group_once_and_an_example(name):
    assert TEXT.count(f"<!-- bsplib.Group.{name} -->\n") == 1
    assert re.search(rf"\b(?:bsp|sub|across|down)\.{name}\b", EXAMPLES)


@pytest.mark.parametrize("name", OTHERS)
def test_the_reference_has_every_public_name_once_and_an_example(name):
    assert len(re.findall(rf"^<!-- bsplib\.{name}(?: with members)? -->$", TEXT, re.M)) == 1
    assert f"bsplib.{name}(" in EXAMPLES or name == "Group"


def test_the_list_of_the_reference_links_every_method_of_the_group():
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    assert [name for name in METHODS if f"`{name}`" not in index] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "<!-- end -->" in text_of(page)], ids=name_of
)
def test_what_is_made_from_the_program_is_up_to_date(page):
    made = runpy.run_path(str(DOCS / "made_parts.py"))["made"]
    assert text_of(page) == made(text_of(page)), "python docs/made_parts.py writes it anew"


def test_an_entry_says_in_markdown_what_its_docstring_says():
    made = runpy.run_path(str(DOCS / "made_parts.py"))["made"]
    page = made(text_of(DOCS / "reference" / "transfers.md"), whole=True)
    entry = page.partition("<!-- bsplib.Group.put -->\n")[2].partition("<!-- end -->")[0]
    assert entry.startswith(
        "\n### `put`\n\n```py\nbsp.put(pid, src, dst, *, offset=None, at=None)\n"
    )
    assert "\n- `pid`: receiving process, `0 <= pid < nprocs`" in entry
    assert "\n- `ProcessRangeError`: `pid` is no process of this group.\n" in entry
    assert "\n**Cost:** the bytes" in entry
