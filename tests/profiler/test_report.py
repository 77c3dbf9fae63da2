"""The report on the terminal: verdict, table, order, width, one node."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from bsplib.errors import UsageError
from bsplib.machine import Machine
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import RowChoice, print_report
from bsplib.recording.records import Frame, Run, Trace
from bsplib.sync_kinds import Kind
from tests.commands import printed_by

MACHINE = {"name": "test machine", "source": "", "g": 1e-9, "l": 5e-6, "speed": 1e9}
"""1 ns for each byte, 5 µs for each superstep."""


def profiles(*runs, library=False):
    """Profiles of runs on ``MACHINE``."""
    entries = Profile(Trace(runs), "x.bsp", library=library).runs
    return [entry.on(Machine(**MACHINE), speed="1x") for entry in entries]


def shown(entries, *, width=200, **options):
    """What a terminal without colour shows of profiles."""
    return printed_by(print_report, entries, width=width, **options)


def printed(*runs, library=False, **options):
    """What a terminal without colour shows of runs on ``MACHINE``."""
    return shown(profiles(*runs, library=library), **options)


def lines(text):
    """The lines of the first table below its header, without what is said below it."""
    body = re.split(r"─+\n", text)[1]
    return list(takewhile_row(body.splitlines()))


def takewhile_row(found):
    for line in found:
        if line.startswith(("  and ", "  left out", "* critical", "no critical")):
            return
        yield line


def cells(line):
    """The cells of a line; a loss and its share are one."""
    return re.split(r"\s{2,}", re.sub(r" +((?:\d+|<1)%)(?=  )", r" \1", line.strip()))


def rows(text):
    """The cells of the lines of the table."""
    return [cells(line) for line in lines(text)]


def names(text):
    """The names in the table, without marks and callers."""
    return [cells(line[2:])[0].partition(" (from")[0] for line in lines(text)]


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


# -- rows --------------------------------------------------------------------------------------


def test_each_node_has_a_row_and_the_greatest_loss_is_first(broadcasts):
    six, four, two = (f"{number}.00 ms (50% | 0%)" for number in (6, 4, 2))
    one = "bcast_onestage"
    calls, even = "500 ns (100% | 100%)", "1.00 µs (100% | 100%)"
    kb = [f"{number}.00 kB (100% | 100%)" for number in (0, 2, 4, 6)]
    assert rows(printed(broadcasts)) == [
        ["* main", "3.00 ms 50%", "6.03 ms", "4", six, calls, six, kb[3]],
        [f"* {one} (from foo, bar)", "3.00 ms 50%", "6.02 ms", "3", six, "0 s", six, kb[3]],
        [f"* app.py line 9 (from {one})", "3.00 ms 50%", "6.02 ms", "3", six, "0 s", six, kb[3]],
        ["* foo (from main)", "2.00 ms 33%", "4.01 ms", "2", four, "0 s", four, kb[2]],
        ["bar (from main)", "1.00 ms 17%", "2.01 ms", "2", two, calls, two, kb[1]],
        ["bcast_twostage (from bar)", "0 s", "6.00 µs", "1", even, calls, "0 s", "0 B"],
        ["app.py line 34 (from bcast_twostage)", "0 s", "6.00 µs", "1", even, calls, "0 s", "0 B"],
    ]


def test_in_the_order_of_the_call_tree_rows_are_indented_by_their_depth(broadcasts):
    text = printed(broadcasts, choice=RowChoice("tree"))
    order = [
        (cell_len(line[2:]) - cell_len(line[2:].lstrip()), line[2:].split()[0])
        for line in lines(text)
    ]
    assert order == [
        (0, "main"),
        (2, "foo"),
        (4, "bcast_onestage"),
        (6, "app.py"),
        (2, "bar"),
        (4, "bcast_twostage"),
        (6, "app.py"),
    ]
    assert "bcast_onestage (from foo, bar)" in text
    assert "bar (from main)" not in text


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("loss", ["main", "slow", "app.py line 11"]),
        ("time", ["main", "slow", "app.py line 11"]),
        ("comp", ["main", "slow", "app.py line 11"]),
        ("comm", ["main", "calls", "app.py line 31"]),
        ("idle", ["main", "slow", "app.py line 11"]),
        ("h", ["main", "heavy", "app.py line 21"]),
        ("supersteps", ["main", "often", "app.py line 41"]),
        ("name", ["app.py line 11", "app.py line 21", "app.py line 31"]),
        ("tree", ["main", "slow", "app.py line 11"]),
    ],
)
def test_rows_are_sorted_by_what_is_asked_for(script, sort, first):
    program = script(2)
    program.step("main slow:11", w=[900_000, 0])
    program.step("main heavy:21", puts=[(0, 1, 10**5)])
    program.step("main calls:31", calls=[10_000, 10_000])
    for _ in range(3):
        program.step("main often:41", w=10)
    text = printed(program.run(), choice=RowChoice(sort))
    assert names(text)[:3] == first


def test_rows_that_are_left_out_are_summed_without_counting_any_loss_twice(broadcasts):
    text = printed(broadcasts, choice=RowChoice("time", top=1))
    assert names(text) == ["main"]
    rest = next(line for line in text.splitlines() if line.startswith("  and "))
    assert rest == "  and 6 more nodes: loss 3.00 ms, time 6.03 ms in the cost centres among them"
    text = printed(broadcasts, choice=RowChoice("time", top=6))
    assert "  and 1 more node: loss 0 s, time 6.00 µs in the cost centres among them" in text


@pytest.mark.parametrize(
    ("depth", "shown"),
    [(0, {"main"}), (1, {"main", "foo", "bar"})],
)
def test_a_depth_is_a_number_of_calls_from_main(broadcasts, depth, shown):
    assert set(names(printed(broadcasts, choice=RowChoice(depth=depth)))) == shown


# -- what is said around the table ---------------------------------------------------------------


def test_a_long_sentence_goes_on_below_itself_indented(broadcasts):
    text = printed(broadcasts, width=60)
    head = text.partition("\n\n")[0].splitlines()
    assert len([line for line in head if not line.startswith("  ")]) == 4
    assert all(cell_len(line) <= 60 for line in head)


def test_a_program_is_named_with_its_arguments(script):
    program = script(1)
    program.step("main", w=1)
    run = program.run(meta={"program": "sort.py", "arguments": ["--size", "10 000"]})
    assert printed(run).startswith("run 1: sort.py --size '10 000', 1 process, ")
    run = program.run(meta={"program": "sort.py", "arguments": ["x" * 100]})
    text = printed(run, width=80)
    assert re.match(r"run 1: sort.py x+…x+\n  1 process, backend unknown, ", text)
    assert cell_len(text.splitlines()[0]) == 78


def test_where_nothing_is_critical_no_row_is_marked(broadcasts):
    text = printed(broadcasts, path="h-imb")
    assert "no critical path: h-relation, absolute imbalance is 0 everywhere" in text
    assert not any(line.startswith("*") for line in text.splitlines())


def test_critical_rows_are_red_where_there_is_colour(broadcasts):
    text = printed(broadcasts, path="comp-imb", colours="standard")
    red = [line for line in text.splitlines() if "\x1b[1;31m" in line]
    assert len(red) == 4
    assert all("*" in line for line in red)


def test_where_the_figures_are_not_known_a_sentence_says_why(script):
    program = script(2)
    program.step("main", w=5, kind=Kind.END)
    text = shown(Profile(Trace((program.run(),))).runs)
    words = "transfers and latency: g and l are 0: the run has no superstep that ended with a sync"
    assert f"\n{words}" in text


def test_where_g_and_l_cannot_be_told_apart_a_sentence_says_it(script):
    program = script(2)
    for _ in range(3):
        program.step("main", w=5, puts=[(0, 1, 100)], transfer=7)
    text = shown(Profile(Trace((program.run(),))).runs)
    assert "All is said to be the cost of supersteps, since each superstep moves 100 bytes." in text


@pytest.mark.parametrize("cores", [2, 1, None, "\x1b"])
def test_waiting_for_a_core_is_told_once_a_run(script, cores):
    program = script(16)
    program.step("main", w=100_000_000, cpu=[98_000_000] * 16)
    program.step("main foo", w=2, cpu=[2] * 16)
    text = printed(program.run(meta={} if cores is None else {"cores": cores}))
    assert "\nAll of it: useful computation 98%, waiting for a core 2%.\n" in text
    assert text.count("waiting for a core") == 1


# -- width ---------------------------------------------------------------------------------------

COLUMNS_AT = {
    50: ["loss", "time"],
    80: ["loss", "time", "steps", "computation"],
    100: ["loss", "time", "steps", "computation", "h-relation"],
    130: ["loss", "time", "steps", "computation", "communication", "h-relation"],
    160: ["loss", "time", "steps", "computation", "communication", "idle time", "h-relation"],
}


@pytest.fixture(scope="module")
def large(script):
    """About 300 nodes, 22 callers of one function, long names and deep calls."""
    program = script(4)
    for number in range(120):
        w = [1_000_000 * (1 + number % 7), 1000, 10, 0]
        calls = [1000, 100_000, 500, 1000]
        program.step(f"main Solver.level_{number // 10} stage_{number}:{number}", w, calls=calls)
    for number in range(22):
        program.step(f"main caller_{number:02} shared:900", w=[0, 50_000, 0, 0], puts=[(0, 1, 8)])
    deep = " ".join(f"inner_{number}" for number in range(40))
    program.step(f"main {deep} {'a_very_long_name.' * 9}end:901", w=[3_000_000, 0, 0, 0])
    return profiles(program.run(meta={"program": "large.py", "backend": "shm"}))


@pytest.mark.lengthy
@pytest.mark.parametrize("width", COLUMNS_AT)
@pytest.mark.parametrize("sort", ["loss", "tree"])
def test_no_number_is_cut_and_no_row_folded_at_any_width(large, width, sort):
    text = shown(large, width=width, choice=RowChoice(sort, top=40))
    assert max(map(cell_len, text.splitlines())) <= width
    assert len(lines(text)) == 40
    number = r"\S+ (?:s|ms|µs|ns)"
    for line in lines(text):
        assert re.search(rf"(?:{number} +(?:\d+|<1)%|0 s)  .*$", line), line


@pytest.mark.lengthy(values="all")
@pytest.mark.parametrize("width", COLUMNS_AT)
def test_narrow_terminals_have_fewer_columns_and_say_which_are_missing(large, width):
    text = shown(large, width=width, choice=RowChoice(top=40))
    head = re.split(r"─+\n", text)[0].splitlines()[-1]
    assert re.split(r"\s{2,}", head.strip()) == COLUMNS_AT[width]
    missing = [title for title in COLUMNS_AT[160] if title not in COLUMNS_AT[width]]
    assert (f"left out on {width} columns" in text) == bool(missing)
    for title in missing:
        assert title.replace("steps", "supersteps") in text.partition("left out on")[2]


@pytest.mark.lengthy
def test_deep_rows_have_their_depth_instead_of_an_indentation(large):
    text = shown(large, width=100, choice=RowChoice("tree"))
    assert re.search(r"^. \(30\) +inner_29 ", text, re.MULTILINE)


def test_a_file_gets_all_columns(broadcasts, monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    print_report(Profile(Trace((broadcasts,))).runs)
    text = capsys.readouterr().out
    assert "left out" not in text
    assert "communication" in text


# -- one node ------------------------------------------------------------------------------------


def sandwich(text):
    """The rows above and below a node."""
    table = re.search(
        r"callers[^\n]*\n(.*?)\ncallees[^\n]*\n(.*?)\n(?:\* crit|no crit)", text, re.DOTALL
    )
    above, below = (part.splitlines() for part in table.groups())
    return [[cells(line[2:]) for line in part] for part in (above[:-1], below)]


def test_a_node_is_shown_between_its_callers_and_callees(broadcasts):
    callers, callees = sandwich(printed(broadcasts, node="bcast_onestage"))
    assert [row[:2] for row in callers] == [["foo", "2.00 ms 33%"], ["bar", "1.00 ms 17%"]]
    assert [row[:2] for row in callees] == [["app.py line 9", "3.00 ms 50%"]]


def test_of_a_node_its_losses_are_told_with_its_place(broadcasts):
    text = printed(broadcasts, node="bcast_onestage")
    first = text.splitlines()[1]
    assert first.startswith(
        "3.00 of 6.03 ms (50%) are lost in bcast_onestage (app.py line 9), called by foo at "
    )
    text = printed(broadcasts, node="bar")
    assert text.splitlines()[1].startswith("3.00 of 6.03 ms (50%) are lost")
    table = text.partition("\n\n")[2].partition("critical path")[0]
    assert "foo" not in table.replace("(from foo, bar)", "")
    assert re.search(r"^bar: app.py:\d+, id n[0-9a-f]{16}$", text, re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["bcast_twostage", "app.py line 34", "app.py:34", "twostage", "LINE 34"]
)
def test_a_node_is_found_by_name_place_or_part_of_its_name(broadcasts, name):
    assert re.search(
        r"^(bcast_twostage|app.py line 34): app.py", printed(broadcasts, node=name), re.M
    )


def test_a_name_of_several_nodes_is_refused_with_their_ids(broadcasts):
    with pytest.raises(UsageError, match=r"'bcast' may be 2 nodes: bcast_onestage = n\w+ \(app.py"):
        printed(broadcasts, node="bcast")


def test_an_id_tells_nodes_of_equal_names_apart(script):
    program = script(1)
    program.step("main one.py/step:7", w=1)
    program.step("main two.py/step:7", w=1)
    run = program.run()
    with pytest.raises(UsageError, match=r"'step' may be 2 nodes: step = n[0-9a-f]+") as caught:
        printed(run, node="step")
    for name in re.findall(r"step = (n[0-9a-f]+)", str(caught.value)):
        assert f"id {name}" in printed(run, node=name)


def test_a_name_of_no_node_is_refused_with_those_close_to_it(broadcasts):
    with pytest.raises(
        UsageError, match="no node is called 'bcast_twostag3'; close to it are bcast_t"
    ):
        printed(broadcasts, node="bcast_twostag3")
    with pytest.raises(UsageError, match=r"no node is called '\\x1b'; bsp report lists them"):
        printed(broadcasts, node="\x1b")


# -- untrusted text --------------------------------------------------------------------------


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
    text = printed(run)
    assert text.splitlines()[0].startswith(f"run 1: {shown}, 1 process, backend [")
    assert text.splitlines()[0].endswith(f"not complete: {shown}")
    assert rows(text)[0][0] == shown
    assert len(rows(text)) == 3
    assert all(char.isprintable() or char == "\n" for char in text + printed(run, node="foo"))
