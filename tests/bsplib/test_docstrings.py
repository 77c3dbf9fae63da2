"""Every primitive says what it takes, what it raises and what it costs."""

from __future__ import annotations

import inspect
import os
import re

import pytest

from bsplib import Group, errors, group
from bsplib.core.calls import Calls

PRIMITIVES = {name: member for name, member in inspect.getmembers(Group) if name[0] != "_"}
METHODS = [name for name, member in PRIMITIVES.items() if inspect.isroutine(member)]
ATTRIBUTES = sorted(PRIMITIVES.keys() - METHODS)

SECTION = re.compile(r"^(Args|Returns|Raises|Supersteps|Cost|Source):(.*)$", re.MULTILINE)
ENTRY = re.compile(r"^    (\w+): \S", re.MULTILINE)


def sections(name):
    """Return the sections of a docstring by name, in order."""
    text = inspect.cleandoc(PRIMITIVES[name].__doc__)
    _, *parts = SECTION.split(text)
    heads, firsts, rests = parts[::3], parts[1::3], parts[2::3]
    assert len(set(heads)) == len(heads)
    return {head: first + rest for head, first, rest in zip(heads, firsts, rests, strict=True)}


def entries(name, section):
    """Return what a section of a docstring lists: parameters, or errors."""
    return ENTRY.findall(sections(name).get(section, ""))


def test_these_tests_know_the_primitives():
    assert ATTRIBUTES == ["machine", "nprocs", "pid"]
    assert len(METHODS) >= 34
    assert {"put", "hpput", "scope", "messages", "allreduce", "done", "charge"} <= {*METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_a_primitive_says_what_it_takes(name):
    _, *parameters = inspect.signature(PRIMITIVES[name]).parameters
    assert entries(name, "Args") == parameters
    assert ("Args" in sections(name)) == bool(parameters)


@pytest.mark.parametrize("name", METHODS)
def test_a_primitive_says_which_errors_it_raises(name):
    named = entries(name, "Raises")
    assert named
    assert len(set(named)) == len(named)
    assert all(issubclass(getattr(errors, error), errors.BspError) for error in named)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_says_what_it_costs(name):
    cost = sections(name)["Cost"]
    assert re.search(r"\b(nothing|h|h_in|h_out|g|l)\b", cost)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_the_sections_of_a_docstring_stand_in_one_order(name):
    order = ["Args", "Returns", "Raises", "Supersteps", "Cost", "Source"]
    mine = list(sections(name))
    assert mine == [section for section in order if section in mine]


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_docstring_begins_with_a_whole_sentence_on_one_line(name):
    first, *rest = inspect.cleandoc(PRIMITIVES[name].__doc__).split("\n")
    assert first[0].isupper()
    assert first.endswith(".")
    assert not rest or rest[0] == ""


def file_of(name):
    """Return the file in which a primitive is defined, as the docstring of ``group`` says it."""
    member = PRIMITIVES[name]
    member = getattr(member, "fget", member)  # of a property
    if name in vars(Calls):
        return "calls.py"
    found = os.path.basename(inspect.unwrap(member).__code__.co_filename)
    return "this file" if found == "group.py" else found


def test_the_table_of_a_group_has_every_primitive_in_the_row_of_its_file():
    _, _, table, _ = re.split(r"^=+ =+$", group.__doc__, flags=re.MULTILINE)
    listed, file = {}, ""
    for line in table.strip("\n").splitlines():
        names, where = line[:38].strip(" ,"), line[39:]
        found = re.match(r"(\w+\.py|this file)\b", where)
        file = found[1] if found and not where.startswith("and ") else file
        listed |= dict.fromkeys(filter(None, names.split(", ")), file)
    assert listed == {name: file_of(name) for name in PRIMITIVES}
