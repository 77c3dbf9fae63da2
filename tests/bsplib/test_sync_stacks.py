"""The call stack that a record has: where bsplib ends and the program begins."""

from __future__ import annotations

import os

import pytest

import bsplib
from bsplib import Group
from bsplib.primitives import subgroups
from bsplib.running import observed_groups
from bsplib.sync_kinds import Kind
from tests.recordings import record_run


def program(bsp):
    bsp.sync()
    bsp.oblsync(0)
    bsp.allgather(bsp.pid)
    with bsp.partition([bsp.nprocs]) as sub:
        sub.sync()
    bsp.partition([bsp.nprocs]).done()


def stacks(folder, main=program):
    """Stacks of all syncs, and of what leaves a group, in the order they were met."""
    observed_groups.group_class.cache_clear()
    path = folder / "trace.bsp"
    run = record_run(path, main, nprocs=2, backend="sim")
    path.unlink()  # a second run would be added to it
    rows = run.records[run.records["pid"] == 0]
    return [
        [(frame.function, frame.line, frame.library) for frame in run.stacks[row["stack"]]]
        for row in rows
        if row["kind"] != Kind.END or row["group"] != 0
    ]


@pytest.fixture(autouse=True)
def fresh_classes():
    """Have the classes of groups in virtual time made of the methods that a test has set."""
    yield
    observed_groups.group_class.cache_clear()


def wrapped(method, name="inner"):
    """Return a function around a method, which passes for one of bsplib's own."""
    file = os.path.join(os.path.dirname(bsplib.__file__), "further.py")
    source = f"def {name}(self, *args):\n    return method(self, *args)\n"
    namespace = {"method": method}
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


@pytest.mark.parametrize(
    ("owner", "method", "name"),
    [
        (Group, "sync", "sync"),
        (Group, "sync", "timed"),
        (Group, "oblsync", "oblsync"),
        (Group, "done", "done"),
        (subgroups, "_leave", "inner"),
    ],
)
def test_a_stack_does_not_depend_on_the_frames_that_bsplib_has_inside(
    tmp_path, monkeypatch, owner, method, name
):
    expected = stacks(tmp_path)
    for _ in range(2):  # two frames more, or one
        monkeypatch.setattr(owner, method, wrapped(getattr(owner, method), name))
        assert stacks(tmp_path) == expected


def test_the_syncs_that_a_program_calls_stand_at_its_lines(tmp_path):
    first = program.__code__.co_firstlineno
    whole = [
        [(function, line - first, library) for function, line, library in stack[:1]]
        for stack in stacks(tmp_path)
    ]
    assert whole == [[("program", line, False)] for line in (1, 2, 3, 5, 4, 6)]


def test_only_a_collective_has_frames_of_bsplib_on_its_stack(tmp_path):
    frames = [stack[1:] for stack in stacks(tmp_path)]
    collective = frames.pop(2)
    assert all(library for _, _, library in collective)
    assert collective[0][0].endswith("allgather")
    assert not any(frames)


def test_a_function_of_bsplib_around_a_collective_is_on_its_stack(tmp_path, monkeypatch):
    (plain,) = stacks(tmp_path, lambda bsp: bsp.allgather(1))
    monkeypatch.setattr(Group, "allgather", wrapped(Group.allgather, "outer"))
    (stack,) = stacks(tmp_path, lambda bsp: bsp.allgather(1))
    assert [function for function, _, _ in stack][1:] == ["outer", *[f for f, _, _ in plain[1:]]]


def test_a_main_that_is_a_primitive_can_be_recorded(tmp_path):
    ((frame,),) = stacks(tmp_path, Group.sync)
    assert frame[0].endswith("sync")
