"""Functions that never sync stand below the cost centre whose stretch they were executed in."""

from __future__ import annotations

import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.lines import executed_below
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import print_report
from bsplib.recording.records import Doing, Frame, Trace
from tests.scripted import sampled

FILE = "/home/app.py"


def frame(function, first, line):
    return Frame(FILE, function, first, line)


BUSY = frame("busy", 40, 41)
COMPREHENSION = frame("prepare.<locals>.<listcomp>", 31, 31)
PREPARE = frame("prepare", 30, 31)


@pytest.fixture
def run(script):
    """``main`` calls ``exchange``, which syncs, and then ``prepare`` in the superstep after it.

    Process 0 has three samples in ``prepare``, two of them in ``busy`` below it; process 1 has one
    in ``busy``, called by ``exchange`` itself, which leads to the sync.
    """
    program = script(2)
    program.step("main exchange", w=[10, 10])
    program.step("main", w=[40, 10])
    run = program.run()
    main, exchange = next(stack for stack in run.stacks if len(stack) == 2)
    return sampled(
        run,
        (0, 0, (main,), Doing.COMPUTING),
        (1, 0, (main, exchange, BUSY), Doing.BLOCKED),
        (0, 1, (main, PREPARE), Doing.COMPUTING),
        (0, 1, (main, PREPARE, BUSY), Doing.COMPUTING),
        (0, 1, (main, PREPARE, COMPREHENSION, BUSY), Doing.COMPUTING),
        (1, 1, (main, exchange), Doing.COMPUTING),
    )


def found(run):
    graph = build(run).graph.nodes(data="node")
    return [
        (graph[each.centre].name, each.caller, each.function, each.by_process)
        for each in executed_below(build(run))
    ]


def near(*milliseconds):
    return pytest.approx([each / 1000 for each in milliseconds])


def test_a_function_stands_below_the_cost_centre_that_ended_its_superstep(run):
    assert found(run) == [
        ("app.py line 2", -1, "prepare", near(3, 0)),
        ("app.py line 2", 0, "busy", near(2, 0)),
        ("app.py line 2", -1, "exchange", near(0, 1)),
        ("app.py line 12", -1, "busy", near(0, 1)),
    ]


def test_the_report_lists_them_with_a_cost_centre(run, capsys):
    print_report(Profile(Trace((run,)), "app.bsp").runs, node="app.py line 2")
    printed = capsys.readouterr().out
    assert (
        "functions executed in the supersteps that end here, average of the processes, from "
        "samples:\n"
        "  prepare (app.py:30): 1.50 ms computing; most in process 0: 3.00 ms\n"
        "    busy (app.py:40): 1.00 ms computing; most in process 0: 2.00 ms\n"
    ) in printed
