"""A sentence names the line, or the lines, between which its seconds are lost."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.losses import book
from bsplib.profiler.rates import Rates
from bsplib.recording.records import Doing, Frame
from tests.scripted import sampled

FREE = Rates(g=0.0, l=0.0)
MAIN = Frame("/home/app.py", "main", 1, 5)
PREPARE = Frame("/home/app.py", "prepare", 20, 21)
BUSY = Frame("/home/tools.py", "busy", 3, 4)
ALIKE = Frame("/home/app.py", "main", 1, 9)


def first(run):
    return book(build(run), FREE).verdict().sentences[0].text


def uneven(script):
    """Ten supersteps in which process 0 computes long."""
    program = script(2)
    for _ in range(10):
        program.step("main exchange", w=[100, 10])
    return program.run()


def test_a_function_that_never_syncs_is_named_with_its_line_by_samples(script):
    slow = [(0, number, (MAIN, PREPARE, BUSY), Doing.COMPUTING) for number in range(10)]
    assert (
        "(fixed straggler), which computes at line 4 of busy (tools.py), called by prepare at line "
        "21; with an even share"
    ) in first(sampled(uneven(script), *slow))


def test_what_all_processes_compute_alike_is_no_cause(script):
    alike = [
        (pid, number, (ALIKE,), Doing.COMPUTING)
        for pid in range(2)
        for number in range(10)
        for _ in range(5)
    ]
    slow = [(0, number, (MAIN, PREPARE), Doing.COMPUTING) for number in range(10)]
    text = first(sampled(uneven(script), *alike, *slow))
    assert "which computes at line 21 of prepare (app.py), called by main at line 5;" in text


def test_a_line_that_calls_several_slow_ones_is_named_itself(script):
    leaves = [PREPARE._replace(function=f"f{number}") for number in range(10)]
    slow = [(0, number, (MAIN, leaf), Doing.COMPUTING) for number, leaf in enumerate(leaves)]
    assert "which computes at line 5 of main (app.py);" in first(sampled(uneven(script), *slow))


def test_frames_of_packages_count_for_the_line_that_called_them(script):
    package = Frame("/usr/lib/python3/dist-packages/lib.py", "inner", 1, 2)
    slow = [(0, number, (MAIN, package), Doing.COMPUTING) for number in range(10)]
    assert "which computes at line 5 of main (app.py);" in first(sampled(uneven(script), *slow))


def test_few_samples_name_no_line(script):
    slow = [(0, number, (MAIN, PREPARE), Doing.COMPUTING) for number in range(4)]
    assert "which computes" not in first(sampled(uneven(script), *slow))


@pytest.mark.parametrize("names", [True, False])
def test_time_blocked_is_named_by_its_line(script, names):
    program = script(2)
    for _ in range(10):
        program.step("main load:40", w=[100, 100])
    run = program.run()
    run.records["comp_cpu"] = np.tile([100, 20], 10)
    run.records["comp_ready"] = 0
    blocked = [(1, number, (MAIN, PREPARE), Doing.BLOCKED) for number in range(10)]
    computing = [(1, number, (MAIN,), Doing.COMPUTING) for number in range(10)]
    text = first(sampled(run, *computing, *(blocked if names else [])))
    where = "in load (app.py line 40), called by main at line 2 (blocked: "
    if names:
        assert (
            "process 1 is blocked at line 21 of prepare (app.py), called by main at line 5, in "
            f"supersteps that end {where}"
        ) in text
    else:
        assert f"process 1 is blocked {where}" in text


def test_without_samples_the_lines_of_the_syncs_around_it_are_named(script):
    program = script(2)
    for _ in range(10):
        program.step("main:7", w=10)
        program.step("main:14", w=[10, 90])
    text = first(program.run())
    assert "process 1 in main (app.py line 14) (fixed straggler), which computes between" in text
    assert "between line 7 and line 14 of main (app.py);" in text


def test_without_samples_a_superstep_of_a_loop_is_named_by_its_sync_only(script):
    assert "which computes" not in first(uneven(script))


def test_computing_in_several_stretches_names_none(script):
    program = script(2)
    for number in range(9):
        program.step(f"main:{number + 1}", w=10)
        program.step("main:14", w=[10, 90])
    assert "which computes" not in first(program.run())
