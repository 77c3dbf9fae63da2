"""Which node of one run is which of another, after the program was edited."""

from __future__ import annotations

import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.compare.matching import match, nearest

ALLREDUCE = "bsplib/collectives.py/Collectives.allreduce:90"


@pytest.fixture
def matched(script):
    """Return the matches of two programs, by names: ``(before, after)``, None where missing."""

    def matched(before, after, first_lines=({}, {})):
        graphs = []
        for stacks, lines in zip((before, after), first_lines, strict=True):
            program = script(1)
            program.first_lines = dict(lines)
            for stack in stacks:
                program.step(stack)
            graphs.append(build(program.run()))
        first, second = (dict(graph.graph.nodes(data="node")) for graph in graphs)
        return {(old and first[old].name, new and second[new].name) for old, new in match(*graphs)}

    return matched


def test_a_function_and_its_cost_centre_that_moved_down_are_the_same(matched):
    lines = {"main": 1, "solve": 11}, {"main": 1, "solve": 31}
    assert matched(["main solve:15"], ["main solve:35"], lines) == {
        ("main", "main"),
        ("solve", "solve"),
        ("app.py line 15", "app.py line 35"),
    }


def test_a_cost_centre_between_two_others_is_new_and_they_are_not(matched):
    before, after = ["main:2", "main:4"], ["main:2", "main:4", "main:6"]
    found = matched(before, after)
    assert found >= {("app.py line 2", "app.py line 2"), ("app.py line 4", "app.py line 4")}
    assert (None, "app.py line 6") in found
    found = matched(["main:2", "main:9"], ["main:2", "main:5", "main:10"])
    assert found >= {("app.py line 9", "app.py line 10"), (None, "app.py line 5")}


def test_calls_that_change_places_are_told_apart_by_what_they_call(matched):
    found = matched([f"main:2 {ALLREDUCE}", "main:5"], ["main:2", f"main:5 {ALLREDUCE}"])
    assert found >= {
        ("app.py line 2 · allreduce", "app.py line 5 · allreduce"),
        ("app.py line 5", "app.py line 2"),
    }


def test_functions_of_one_name_are_told_apart_by_the_ends_of_their_paths(matched):
    before = ["main old/a/mg.py/step", "main:3 old/b/mg.py/step:99"]
    after = ["main new/b/mg.py/step:99", "main:3 new/a/mg.py/step"]
    assert matched(before, after) >= {
        ("mg.py line 12", "mg.py line 12"),
        ("mg.py line 99", "mg.py line 99"),
    }


def test_a_function_that_moved_to_another_file_is_found_where_its_name_is_unique(matched):
    assert matched(["main solve"], ["main other.py/solve"]) >= {
        ("solve", "solve"),
        ("app.py line 12", "other.py line 12"),
    }
    found = matched(["main a.py/step", "main:3 b.py/step:99"], ["main c.py/step"])
    assert (None, "step") in found
    assert ("step", None) in found


def test_the_cost_centre_of_a_renamed_function_is_found_on_its_line(matched):
    assert matched(["main relax:15"], ["main smooth:15"]) == {
        ("main", "main"),
        ("relax", None),
        (None, "smooth"),
        ("app.py line 15", "app.py line 15"),
    }


@pytest.mark.parametrize(
    ("few", "many", "positions"),
    [
        ([], [1, 2], []),
        ([5], [1, 5, 9], [1]),
        ([5, 6], [1, 5, 9], [1, 2]),
        ([1, 2, 3], [0, 10, 20], [0, 1, 2]),
        ([10, 20], [9, 10, 11, 21], [1, 3]),
        ([0, 0], [0, 0, 7], [0, 1]),
    ],
)
def test_numbers_are_assigned_in_order_with_the_least_sum_of_distances(few, many, positions):
    assert nearest(few, many) == list(enumerate(positions))
