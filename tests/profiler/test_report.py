from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from bsplib.recording.records import Frame, Run, Trace
from bsplib.sync_kinds import Kind
from profiler.report import print_report


def printed(trace, width=200, **options):
    """What a terminal without colour shows."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_report(trace, console=console, **options)
    return console.file.getvalue()


def rows(text):
    """The cells of the table below its header."""
    body = re.split(r"─+ *\n", text)[1]
    lines = [line for line in body.splitlines() if line.strip() and "critical path" not in line]
    return [re.split(r"\s{2,}", line.strip()) for line in lines]


@pytest.fixture
def broadcasts(script):
    """Jarvis et al., figure 3, on two processes and with fewer iterations."""
    program = script(2)
    for _ in range(2):
        program.step("main foo bcast_onestage:9", w=[2_000_000, 0], puts=[(0, 1, 2000)])
    program.step("main bar bcast_onestage:9", w=[2_000_000, 0], puts=[(0, 1, 2000)])
    program.step("main bar bcast_twostage:34", w=1000, transfer=500)
    program.step("main:8", kind=Kind.END)
    return program.run(meta={"program": "bcast.py", "backend": "shm"})


def test_the_table_has_a_row_for_each_node_in_the_order_of_the_call_tree(broadcasts):
    six, four, two = (f"{number}.00 ms (50% | 0%)" for number in (6, 4, 2))
    assert rows(printed(Trace((broadcasts,)), path="comp-imb")) == [
        ["*", "main", "4", six, "500 ns (100% | 100%)", six, "6.00 kB (100% | 100%)"],
        ["*", "foo", "2", four, "0 s", four, "4.00 kB (100% | 100%)"],
        ["*", "bcast_onestage (from foo, bar)", "3", six, "0 s", six, "6.00 kB (100% | 100%)"],
        ["*", "app.py line 9", "3", six, "0 s", six, "6.00 kB (100% | 100%)"],
        ["bar", "2", two, "500 ns (100% | 100%)", two, "2.00 kB (100% | 100%)"],
        ["bcast_twostage", "1", "1.00 µs (100% | 100%)", "500 ns (100% | 100%)", "0 s", "0 B"],
        ["app.py line 34", "1", "1.00 µs (100% | 100%)", "500 ns (100% | 100%)", "0 s", "0 B"],
        ["app.py line 8 (end)", "0", "0 s", "0 s", "0 s", "0 B"],
    ]


def test_rows_are_indented_by_their_depth(broadcasts):
    lines = printed(Trace((broadcasts,))).splitlines()
    columns = {
        name: next(line.index(name) for line in lines if f" {name} " in line)
        for name in ("main", "foo", "bcast_twostage", "app.py line 34", "app.py line 8")
    }
    assert [column - columns["main"] for column in columns.values()] == [0, 2, 4, 6, 2]


def test_the_title_says_which_run_it_is(broadcasts):
    title = printed(Trace((broadcasts,))).splitlines()[0]
    assert title == "run 1: bcast.py, 2 processes, backend shm, 6.00 ms, complete"


def test_a_run_that_broke_off_says_so_and_why(script):
    program = script(1)
    program.step("main", w=1)
    run = program.run(complete=False, meta={"error": "AbortError: no input"})
    title = printed(Trace((run,))).splitlines()[0]
    assert title == (
        "run 1: unknown, 1 process, backend unknown, 1.00 ns, not complete: AbortError: no input"
    )


def test_the_legend_names_the_critical_path(broadcasts):
    text = printed(Trace((broadcasts,)), path="comp-rel")
    assert text.splitlines()[-1] == "* critical path: computation, relative imbalance"


def test_where_nothing_is_critical_no_row_is_marked(broadcasts):
    text = printed(Trace((broadcasts,)))
    assert (
        text.splitlines()[-1] == "no critical path: h-relation, absolute imbalance is 0 everywhere"
    )
    assert "*" not in text


def test_critical_rows_are_red_where_there_is_colour(broadcasts):
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="standard")
    print_report(Trace((broadcasts,)), path="comp-imb", console=console)
    red = [line for line in console.file.getvalue().splitlines() if "\x1b[1;31m" in line]
    assert len(red) == 4
    assert all("*" in line for line in red)


def test_all_runs_are_printed_unless_one_is_asked_for(broadcasts):
    trace = Trace((broadcasts, broadcasts, broadcasts))
    assert re.findall(r"^run \d", printed(trace), re.M) == ["run 1", "run 2", "run 3"]
    assert re.findall(r"^run \d", printed(trace, run=2), re.M) == ["run 3"]


@pytest.mark.parametrize("run", [-1, 1])
def test_a_run_that_is_not_there_is_refused(broadcasts, run):
    with pytest.raises(ValueError, match=f"there is no run {run}: the trace has 1"):
        printed(Trace((broadcasts,)), run=run)


def test_an_unknown_path_is_refused_even_if_there_is_no_run():
    with pytest.raises(ValueError, match="no critical path is called 'red'"):
        printed(Trace(()), path="red")


def test_a_run_without_records_is_a_table_of_main_alone(script):
    assert rows(printed(Trace((script(2).run(),)))) == [["main", "0", "0 s", "0 s", "0 s", "0 B"]]


@pytest.mark.parametrize("width", [70, 80, 100])
def test_on_a_narrow_terminal_marks_and_costs_stay_whole(broadcasts, width):
    text = printed(Trace((broadcasts,)), width=width, path="comp-imb")
    assert max(len(line) for line in text.splitlines()) <= width
    assert text.count("*") == 5
    assert text.count("(50% | 0%)") == 10


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[red]alarm[/red]", "[red]alarm[/red]"),
        ("[/]", "[/]"),
        ("<lambda>", "<lambda>"),
        (":boom:", ":boom:"),
        ("\x1b[31mred\x1b]8;;http://x\x07", r"\x1b[31mred\x1b]8;;http://x\x07"),
        ("two\nlines\rover", r"two\nlines\rover"),
        ("\u202eabc\ud800", r"\u202eabc\ud800"),
    ],
)
def test_names_are_untrusted_text(script, name, shown):
    program = script(1)
    program.step("main foo")
    run = program.run(meta={"program": name, "backend": [name], "error": name}, complete=False)
    frames = [Frame(name, name, 1, 2), Frame("app.py", "foo", 1, 2)]
    run = Run(run.nprocs, run.groups, (tuple(frames),), run.records, run.traffic, False, run.meta)
    text = printed(Trace((run,)))
    assert text.splitlines()[0].startswith(f"run 1: {shown}, 1 process, backend [")
    assert text.splitlines()[0].endswith(f"not complete: {shown}")
    assert rows(text)[0][0] == shown
    assert len(rows(text)) == 3
    assert all(char.isprintable() or char == "\n" for char in text)


def test_functions_of_bsplib_are_shown_only_on_demand(script):
    program = script(2)
    program.step("main:7 bsplib/combinations.py/Group.allreduce:90")
    trace = Trace((program.run(),))
    assert [row[0] for row in rows(printed(trace))] == ["main", "app.py line 7 · allreduce"]
    names = [row[0] for row in rows(printed(trace, library=True))]
    assert names == ["main", "Group.allreduce", "combinations.py line 90"]


@pytest.mark.parametrize(
    ("meta", "where"),
    [
        ({"cores": 2}, " on 2 cores"),
        ({"cores": 1}, " on 1 core"),
        ({}, ""),
        ({"cores": "\x1b"}, ""),
    ],
)
def test_waiting_for_a_core_is_told_once_a_run(script, meta, where):
    program = script(16)
    program.step("main", w=100_000_000, cpu=[25_000_000] * 16)
    program.step("main foo", w=2, cpu=[2] * 16)
    text = printed(Trace((program.run(meta=meta),)))
    line = f"waiting for a core: 1.20 s of 16 processes{where}"
    assert text.splitlines()[1] == line
    assert text.count("waiting") == 1


def test_nothing_is_said_of_cores_where_cpu_time_was_not_measured(broadcasts):
    assert "core" not in printed(Trace((broadcasts,)))
