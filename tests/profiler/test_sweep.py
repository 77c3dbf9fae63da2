"""``bsp sweep`` finds what a parameter trades, and says what is best as its own table has it."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.machine import load_machine
from bsplib.profiler.sweep.points import Costs, Point, Sweep
from bsplib.profiler.sweep.show import conclusion, sentences
from bsplib.profiler.sweep.verdict import NEAR, judge, moves, rise
from bsplib.recording.trace import read_trace
from tests.commands import run_bsp

MACHINE = "ibm-sp2-pvm"
PROGRAM = f'''
"""Samples more with a greater grain, and then works more evenly."""

import argparse

import bsplib


def sample(bsp, grain):
    bsp.charge(grain * 1e-4 if bsp.pid == 0 else 0.0)
    if bsp.pid:
        bsp.send(0, bytes(8 * grain))
    bsp.sync()


def exchange(bsp, grain):
    excess = 400_000 // grain if bsp.pid == 0 else 0
    bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(100_000 + excess))
    bsp.sync()


def work(bsp, grain, extra):
    bsp.charge(1e-3 + (0.01 / grain if bsp.pid == 0 else 0.0) + extra * 1e-5)
    bsp.sync()


def main(bsp, grain, extra=0):
    sample(bsp, grain)
    exchange(bsp, grain)
    work(bsp, grain, extra)


def theory(grain, nprocs, **_):
    return {{"sampled": 8 * grain * (nprocs - 1)}}


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--grain", type=int, default=4)
    options.add_argument("fail", type=int, nargs="?", default=99)
    chosen = options.parse_args()
    print("a line that nobody wants to see")
    if chosen.grain >= chosen.fail:
        raise SystemExit(3)
    bsplib.run(main, chosen.grain, nprocs=4, backend="sim", machine="{MACHINE}")
'''


def cost(grain, nprocs=4):
    """What a run of the program takes, reckoned by hand."""
    machine = load_machine(MACHINE)
    w = grain * 1e-4 + (1e-3 + 0.01 / grain)
    h = 8 * grain * (nprocs - 1) + 200_000 + 400_000 // grain  # the rule is the sum of in and out
    return w + machine.g * h + 3 * machine.l


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("program.py").write_text(PROGRAM)
    return tmp_path


def sweep(*words, status=0):
    done = run_bsp("sweep", *words)
    assert done.exit_code == status, done.output
    return done.output


def columns(output):
    """The rows of the first table of an output by their first column."""
    table = re.split(r"─ *\n", output)[1]
    rows = [row.split() for row in re.split(r"\n *\n", table)[0].splitlines()]
    return {row[0]: row[1:] for row in rows if row and row[0].isdigit()}


@pytest.mark.lengthy
def test_it_says_what_moves_and_what_is_best(here):
    out = sweep("--set", "grain=1:64:x2", "--repeats", "1", "program.py")
    lines = out.splitlines()
    assert lines[0] == (
        "with a greater grain the h-relation of exchange (program.py line 19) gets more even: "
        "max/avg 1.67 to 1.03"
    )
    assert lines[1].startswith("with a greater grain the computation of work (program.py line 24)")
    assert "with a greater grain sample (program.py line 13) takes longer: " in out
    rows = columns(out)
    assert list(rows) == ["1", "2", "4", "8", "16", "32", "64"]
    for grain, (even, _, time, unit, sampled) in rows.items():
        excess = 400_000 // int(grain)
        assert float(even) == pytest.approx((100_000 + excess) / (100_000 + excess / 2), abs=0.01)
        took = float(time) * {"ms": 1e-3}[unit]
        assert took == pytest.approx(cost(int(grain)), rel=0.01)
        assert int(sampled) == 24 * int(grain)
    best = min((cost(grain), grain) for grain in map(int, rows))[1]
    assert f"Best: grain = {best}, " in out
    assert "nobody" not in out
    (run,) = read_trace("program.sweep/grain=8.bsp").runs
    assert run.meta["arguments"] == ["--grain", "8"]


@pytest.mark.lengthy
def test_values_go_to_braces_and_parameters_and_numbers_of_processes(here):
    out = sweep(
        *("--set", "grain=2,4", "--set", "extra=0,5", "--set", "nprocs=2:4:x2", "--repeats", "1"),
        *("program.py", "--grain={grain}"),
    )
    assert "Best: grain = 4, extra = 0, nprocs = " in out
    names = sorted(path.name for path in Path("program.sweep").iterdir())
    assert len(names) == 8
    (run,) = read_trace("program.sweep/grain=2,extra=5,nprocs=4.bsp").runs
    assert (run.nprocs, run.meta["arguments"]) == (4, ["--grain=2"])
    assert run.meta["parameters"] == {"grain": 2, "extra": 5}


@pytest.mark.lengthy
def test_seeds_are_given_where_the_program_takes_one_and_ties_are_called_ties(here):
    Path("program.py").write_text(
        "import bsplib\n"
        "def main(bsp, block, seed):\n"
        "    bsp.charge(0)\n    bsp.charge(1e-3 * (1 + bsp.rng(seed).random()))\n    bsp.sync()\n"
        "if __name__ == '__main__':\n    bsplib.run(main, 1, 0, nprocs=2, backend='sim')\n"
    )
    out = sweep("--set", "block=1:3", "program.py")
    assert len(list(Path("program.sweep").iterdir())) == 15
    assert "no cost centre steadily rises or falls as block grows" in out
    assert "No block is best: the times of all overlap with those of block = 1" in out


@pytest.mark.lengthy
def test_the_same_command_goes_on_where_it_was(here):
    words = ("--set", "grain=1:8:x2", "--repeats", "1", "program.py")
    out = sweep(*words, "4", status=3)
    assert "stopped at grain=4; the same command goes on there" in out
    first = Path("program.sweep/grain=1.bsp").stat().st_mtime_ns
    assert "2 of 4 runs are in program.sweep already" in sweep(*words, "4", status=3)
    assert Path("program.sweep/grain=1.bsp").stat().st_mtime_ns == first
    assert "already" not in sweep(*words)  # the arguments are others


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--set", "size=1:2", "program.py"], "--set size: program.py has no option --size, no m"),
        (["--set", "grain", "program.py"], "--set 'grain' is no name with values; write --set N="),
        (["--set", "grain=5:4", "program.py"], "--set grain '5:4' is no rising range"),
        (["--set", "grain=1:2", "none.py"], "'none.py' does not exist"),
        (["--set", "grain=1:2", "--plot", "x.doc", "program.py"], "no suffix of a known format"),
        (["--set", "n=1:2", "twice.py"], "twice.py made 2 runs; a script that is swept makes one"),
        (
            ["program.py", "--set", "grain=1:2"],
            "there is no --set before program.py; write bsp sweep --set s=1:64:x2 program.py",
        ),
    ],
)
def test_what_cannot_be_swept_is_one_sentence(here, words, sentence):
    Path("twice.py").write_text(
        "import bsplib\nfor _ in range(2):\n"
        "    bsplib.run(lambda bsp, n: None, 1, nprocs=1, backend='sim')\n"
    )
    done = run_bsp("sweep", *words)
    assert done.exit_code != 0
    assert sentence in done.output
    assert done.output.count("Error: ") == 1


@pytest.mark.lengthy
def test_a_plot_is_drawn(here):
    sweep("--set", "grain=1:8:x2", "--repeats", "1", "--plot", "x.svg", "program.py")
    assert "<svg" in Path("x.svg").read_text()


@pytest.mark.lengthy
def test_what_runs_in_the_folder_are_predicted_from(here):
    sweep("--set", "grain=1:8:x2", "--set", "nprocs=2:8:x2", "--repeats", "1", "program.py")
    done = run_bsp("predict", "program.sweep", "--at", "grain=32,p=16")
    assert done.output.startswith("Believed at grain = 32 on 16 processes of IBM SP2, PVM: ")


# -- what is best, from the same times as the table -----------------------------------------------


def point(value, seed, seconds):
    return Point((value,), seed, seconds, {}, {})


TIMES = st.lists(st.tuples(*[st.integers(10, 16)] * 3), min_size=2, max_size=5)


@given(TIMES)
def test_the_sentence_never_contradicts_the_table(times):
    table = dict(enumerate(times, 1))
    points = [
        point(value, seed, each)
        for value, times in table.items()
        for seed, each in enumerate(times)
    ]
    found = Sweep(("x",), points, {})
    verdict = judge(found.samples())
    text = conclusion(found, verdict)
    medians = {value: median(times) for value, times in table.items()}
    (best,) = verdict.best
    assert medians[best] == min(medians.values())
    told = [
        value
        for value, times in table.items()
        if min(times) > max(table[best]) and medians[value] > (1 + NEAR) * medians[best]
    ]
    if not told:
        assert text.startswith(f"No x is best: the times of all overlap with those of x = {best}")
        return
    assert text.startswith(f"Best: x = {best}, ")
    named = {int(each) for each in re.findall(r"(?<=x = )\d+", text.partition("Not told")[2])}
    assert named - set(told) == set(table) - set(told) - {best}


def test_one_that_is_many_times_faster_is_best_though_a_process_receives_nothing():
    points = [point(value, 0, seconds) for value, seconds in ((1, 3.3e-2), (128, 1e-3))]
    found = Sweep(("block",), points, {})
    assert conclusion(found, judge(found.samples())) == (
        "Best: block = 128, 1.00 ms. block = 1 takes 33 times as long. It is the end of the range: "
        "there may be a better one outside."
    )


def test_of_several_seeds_the_fastest_repeat_counts():
    points = [point(1, seed, seconds) for seed, seconds in ((0, 3), (0, 1), (1, 2), (1, 5))]
    assert Sweep(("x",), points, {}).samples() == {(1,): [1, 2]}


def test_a_trend_needs_most_pairs():
    assert rise([1, 2, 3, 4, 5, 6]) == pytest.approx(4)
    assert rise([3, 1, 2, 3, 1, 2]) == 0
    assert rise([1]) == 0


def test_of_a_time_that_falls_and_rises_it_is_not_said_that_it_does_not_change():
    series = [{"a": Costs(seconds, 100, 100)} for seconds in (20, 15, 13, 12, 13, 14, 16)]
    assert [*sentences("s", moves(series))] == ["no cost centre steadily rises or falls as s grows"]


def test_what_changes_little_does_not_move():
    assert moves([{"a": Costs(1, 100, 99)}, {"a": Costs(1.01, 100, 99.5)}]) == []
