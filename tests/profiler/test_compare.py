"""Two runs compared: figures of each node, what differs, and the verdict in words."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from bsplib.errors import UsageError
from bsplib.machine import load_machine
from bsplib.profiler.compare.comparison import (
    compare_runs,
    compare_traces,
    label,
    pairs_of,
)
from bsplib.profiler.compare.report import print_comparison
from bsplib.profiler.compare.verdict import differences, verdict
from bsplib.recording.records import Trace
from tests.commands import printed_by

MACHINE = {"name": "test", "g": 1e-6, "l": 1e-3}
MS = 1_000_000


def program(script, relax=(1, 1), rounds=2, size=100, extra=()):
    """Two processes that relax with some work in ms, put some bytes, and then solve."""
    made = script(2)
    made.first_lines = {"main": 1, "relax": 11, "solve": 21}
    for _ in range(rounds):
        work = [MS * ms for ms in relax]
        made.step("main relax:15", work, puts=[(0, 1, size)])
    for stack in extra:
        made.step(stack, MS)
    made.step("main:4 solve:23", MS)
    return made


@pytest.fixture
def compared(script):
    """Return a comparison of the program with itself after some changes."""

    def compared(before=None, after=None, **meta):
        first, second = (program(script, **(options or {})) for options in (before, after))
        return compare_runs(first.run(), second.run(meta=meta))

    return compared


def node(comparison, name):
    (found,) = (it for it in comparison.nodes if label(it) == name)
    return found


def printed(comparison, width=100, **options):
    return printed_by(print_comparison, comparison, width=width, **options)


# -- figures -----------------------------------------------------------------------------------


def test_a_node_has_its_figures_before_and_after(compared):
    relax = node(compared({"relax": (1, 5)}, {"relax": (1, 3), "size": 300}), "relax")
    assert relax.values("time") == pytest.approx((0.010, 0.006))
    assert relax.values("comp") == pytest.approx((0.010, 0.006))
    assert relax.values("idle") == pytest.approx((0.008, 0.004))
    assert relax.values("balance") == pytest.approx((3 / 5, 2 / 3))
    assert relax.values("h") == (200, 600)
    assert relax.values("supersteps") == (2, 2)
    assert relax.values("loss") == pytest.approx((0.004, 0.002))
    assert relax.change("h") == 400


def test_times_of_cost_centres_add_up_to_that_of_the_run_on_both_sides(compared):
    comparison = compared({"relax": (1, 5)}, {"relax": (4, 1), "extra": ["main:3"]})
    for side in (0, 1):
        times = [leaf.values("time")[side] or 0 for leaf in comparison.cost_centres]
        assert sum(times) == pytest.approx(comparison.whole.values("time")[side])


def test_what_is_new_vanished_or_moved_is_told_apart(compared):
    comparison = compared({"extra": ["main:3 old"]}, {"extra": ["main:3 fresh", "main:3 relax:17"]})
    statuses = {label(it): it.status for it in comparison.nodes}
    assert statuses["old"] == "vanished"
    assert statuses["fresh"] == "new"
    assert statuses["relax · app.py line 17"] == "new"
    assert statuses["relax"] == statuses["relax · app.py line 15"] == "same"
    assert comparison.count("vanished") == 1


def test_a_line_that_moved_is_named_with_both_numbers(script):
    before, after = program(script), script(2)
    after.first_lines = {"main": 1, "relax": 31, "solve": 21}
    after.step("main relax:36", MS)
    comparison = compare_runs(before.run(), after.run())
    moved = node(comparison, "relax · app.py line 15 → 36")
    assert moved.status == "moved"
    assert label(moved, is_short=True) == "line 15 → 36"
    assert node(comparison, "relax").status == "same"


def test_a_missing_node_counts_as_zero_but_has_no_balance(compared):
    fresh = node(compared({}, {"extra": ["main:3 fresh"]}), "fresh")
    assert fresh.values("time") == (None, pytest.approx(0.001))
    assert fresh.change("time") == pytest.approx(0.001)
    assert fresh.change("balance") == 0


def test_runs_of_other_numbers_of_processes_are_compared(script):
    before, after = script(2), script(4)
    before.step("main", [4, 4])
    after.step("main", [2, 2, 2, 2])
    comparison = compare_runs(before.run(), after.run())
    assert comparison.whole.values("comp") == pytest.approx((4e-9, 2e-9))


# -- conditions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"arguments": ["a", "-n", "1"]}, {"arguments": ["a", "-n", "2"]}, "arguments -n 2 in"),
        ({"arguments": []}, {"arguments": ["x"]}, "arguments x instead of none"),
        ({"arguments": ["-v"]}, {"arguments": []}, "arguments none instead of -v"),
        ({"machine": MACHINE}, {"machine": MACHINE | {"name": "b"}}, "Machine b instead of"),
        ({"machine": MACHINE}, {"machine": MACHINE | {"g": 2e-6}}, "other figures of Machine"),
        ({"backend": "sim"}, {"backend": "shm"}, "backend shm instead of backend sim"),
        ({"host": "a"}, {"host": "b"}, "host b instead of host a"),
        ({"program": "a.py"}, {"program": "b.py"}, "program b.py instead of program a.py"),
        ({"cores": 1}, {"cores": 2}, "2 cores instead of 1 core"),
        ({"cores": "\x1b[31m"}, {"cores": 2}, "2 cores instead of \\x1b[31m cores"),
    ],
)
def test_conditions_that_differ_are_named(script, before, after, text):
    made = program(script)
    (told,) = differences(made.run(meta=before), made.run(meta=after))
    assert told.startswith(text)


def test_the_trace_file_and_the_order_of_options_are_no_other_input(script):
    made = program(script)
    before = made.run(meta={"arguments": ["--profile", "a.bsp", "-n", "1", "-s", "2"]})
    after = made.run(meta={"arguments": ["-s", "2", "-n", "1", "--profile", "b.bsp"]})
    assert differences(before, after) == []


def test_other_numbers_of_processes_and_runs_that_broke_off_are_named(script):
    first, second = script(1), script(2)
    first.step("main")
    second.step("main")
    told = differences(first.run(), second.run(complete=False))
    assert told == ["2 processes instead of 1 process", "the run after ended in an error"]


# -- the verdict -------------------------------------------------------------------------------


def test_the_verdict_names_who_loses_less_and_for_whom_it_waited(compared):
    text = verdict(compared({"relax": (1, 9), "rounds": 5}, {"relax": (5, 5), "rounds": 5}))
    assert text == (
        "26.0 ms instead of 46.0 ms: relax loses 20.0 ms less waiting for process 1; "
        "h unchanged; supersteps unchanged"
    )


def test_the_verdict_names_functions_that_came_and_went(compared):
    text = verdict(compared({"extra": ["main:3 old"]}, {"extra": ["main:3 fresh:49"] * 3}))
    assert "fresh is new and takes 3.00 ms" in text
    assert "old is gone, which took 1.00 ms" in text
    assert text.endswith("2 supersteps more, mainly in fresh")


def test_the_verdict_says_where_h_and_supersteps_come_from(compared):
    text = verdict(compared({"rounds": 4, "size": 100}, {"rounds": 3, "size": 200}))
    assert "200 B more h (+50%) in relax; 1 superstep fewer in relax" in text


def test_the_verdict_gives_time_that_nothing_explains(script):
    runs, given = [], asdict(load_machine("ideal:g=1e-9,l=1e-6"))
    for transfer in (1, 9):
        made = script(2)
        for _ in range(2):
            made.step("main", MS, transfer=transfer * MS, puts=[(0, 1, 8)])
        runs.append(made.run(meta={"machine": given, "machine_given": True}))
    comparison = compare_runs(*runs)
    text = "20.0 ms instead of 4.00 ms: main has 16.0 ms more that nothing explains"
    assert verdict(comparison).startswith(text)
    assert str(comparison) == verdict(comparison)


def test_the_verdict_of_equal_runs_says_so(compared):
    text = verdict(compared())
    assert text == "3.00 ms as before: h unchanged; supersteps unchanged"


def test_a_verdict_shows_hostile_names_escaped(script):
    before, after = script(1), script(1)
    before.step("main \x1b[31mred", MS)
    after.step("main \x1b[31mred", 5 * MS)
    text = verdict(compare_runs(before.run(), after.run()))
    assert "\\x1b[31mred computes" in text
    assert "\x1b" not in text


# -- which runs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "chosen", "pairs"),
    [
        ((1, 1), None, [(0, 0)]),
        ((3, 3), None, [(0, 0), (1, 1), (2, 2)]),
        ((3, 2), None, [(2, 1)]),
        ((3, 2), "2", [(1, 1)]),
        ((3, 2), "3:1", [(2, 0)]),
    ],
)
def test_runs_are_paired_by_number(script, counts, chosen, pairs):
    run = program(script).run()
    before, after = (Trace((run,) * count) for count in counts)
    assert pairs_of(before, after, chosen) == pairs
    numbers = [
        (first - 1, second - 1) for first, second, _ in compare_traces(before, after, chosen=chosen)
    ]
    assert numbers == pairs


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ("0", "there is no run 0 before; the trace has runs 1 to 2"),
        ("1:2", "there is no run 2 after; the trace has runs 1 to 1"),
        ("last", "'last' names no run: write it as in 2, or as in 1:3"),
        ("-1", "'-1' names no run"),
    ],
)
def test_a_run_that_is_not_there_is_refused(script, chosen, error):
    run = program(script).run()
    with pytest.raises(UsageError, match=error):
        pairs_of(Trace((run, run)), Trace((run,)), chosen)


@pytest.mark.parametrize("which", ["before", "after"])
def test_a_trace_without_runs_cannot_be_compared(script, which):
    traces = {"before": Trace((program(script).run(),))} | {"after": Trace(())}
    before, after = traces.values() if which == "after" else reversed(traces.values())
    with pytest.raises(UsageError, match=f"nothing to compare: the trace {which} has no runs"):
        compare_traces(before, after)


# -- the table and the data --------------------------------------------------------------------


def test_the_table_shows_before_mark_and_after(compared):
    text = printed(compared({"relax": (1, 5)}, {"relax": (5, 5), "size": 300}))
    (row,) = (line for line in text.splitlines() if line.strip().startswith("relax"))
    assert "4.00 ms ▼ 0 s" in row
    assert "200 B ▲ 600 B" in row
    assert "60% ▲ 100%" in row
    assert "10.0 ms" in row


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_the_table_fits_the_terminal_and_says_what_it_leaves_out(compared, width):
    comparison = compared(
        {"relax": (1, 5)}, {"extra": ["main:3 a_very_long_name_of_a_function" * 2]}
    )
    text = printed(comparison, width, top=0)
    assert max(map(len, text.splitlines())) <= width
    for row in ("whole run", "relax", "solve", "line 15"):
        assert row in text
    for title in ("time", "loss", "h-relation", "supersteps", "balance"):
        assert title in text  # as a column, or as one that is left out
    assert ("left out on" in text) == (width < 100)
