"""The reference has every public name, and an example of each."""

from __future__ import annotations

import inspect
import re

import pytest

import bsplib
from bsplib import errors

from .pages import DOCS, pages, sessions

TEXT = "".join(page.read_text(encoding="utf-8") for page in pages("reference"))
EXAMPLES = "".join(sessions(page) for page in pages("reference"))
METHODS = sorted(name for name, _ in inspect.getmembers(bsplib.Group) if name[0] != "_")
ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
OTHERS = sorted({*bsplib.__all__} - ERRORS - {"__version__"})


def test_these_tests_know_the_public_names():
    assert {"put", "pid", "allreduce", "split"} <= {*METHODS}
    assert OTHERS == ["Group", "Machine", "Pool", "map", "run", "shared"]
    assert {*bsplib.__all__} & ERRORS == ERRORS


@pytest.mark.parametrize("name", METHODS)
def test_the_reference_has_every_method_of_the_group_once_and_an_example(name):
    assert (
        len(re.findall(rf"^\.\. auto(?:method|property):: bsplib\.Group\.{name}$", TEXT, re.M)) == 1
    )
    assert re.search(rf"\b(?:bsp|sub|across|down)\.{name}\b", EXAMPLES)


@pytest.mark.parametrize("name", OTHERS)
def test_the_reference_has_every_public_name_once_and_an_example(name):
    assert len(re.findall(rf"^\.\. auto(?:class|function):: bsplib\.{name}$", TEXT, re.M)) == 1
    assert f"bsplib.{name}(" in EXAMPLES or name == "Group"


def test_the_list_of_the_reference_links_every_method_of_the_group():
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    assert [name for name in METHODS if f"`{name}`" not in index] == []


def test_every_page_of_errors_and_commands_is_filled_when_the_site_is_built():
    marks = re.findall(r"<!-- [a-z ]+ -->", TEXT)
    assert marks == ["<!-- all commands -->", "<!-- the tree of errors -->", "<!-- all errors -->"]
