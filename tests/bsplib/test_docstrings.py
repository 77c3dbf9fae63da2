"""Every primitive says what it takes, what it raises and what it costs."""

from __future__ import annotations

import inspect
import os
import re

import pytest

from bsplib import Group, errors, group

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


def test_a_group_is_made_of_the_classes_that_its_module_lists():
    rows = re.findall(r"^``(\w+)``\s+(\w+\.py|this one)", group.__doc__, re.MULTILINE)
    chain = [kind for kind in reversed(Group.__mro__) if kind is not object]
    files = [os.path.basename(inspect.getfile(kind)) for kind in chain[:-1]]
    files = [re.sub(r"\..*", ".py", file) for file in files]  # the core may be compiled
    assert rows == [*zip([kind.__name__ for kind in chain], [*files, "this one"], strict=True)]


def test_the_list_of_a_module_has_every_primitive_in_the_row_of_its_class():
    _, *table = re.split(r"^``(\w+)``", group.__doc__, flags=re.MULTILINE)
    listed = dict(zip(table[::2], table[1::2], strict=True))
    for name in PRIMITIVES:
        (owner,) = [kind.__name__ for kind in Group.__mro__ if name in vars(kind)]
        assert re.search(rf"\b{name}\b", listed[owner]), (name, owner)
