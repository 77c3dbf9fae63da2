"""What several runs of one program say together."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bsplib
from bsplib.profiler.profile import Profile
from bsplib.profiler.repeats import gathered, next_run_s
from bsplib.recording.records import Doing, Frame, Trace
from tests.commands import run_bsp
from tests.scripted import sampled


def repeated(script, *excesses, disturbed=None, place="main relax"):
    """One run for each excess of process 1, of which one may be disturbed by something else."""
    runs = []
    for number, excess in enumerate(excesses):
        program = script(2)
        for _ in range(10):
            program.step(place, w=[100, 100 + excess])
        program.step("main other", w=[5000 * (number == disturbed), 0])
        runs.append(program.run(meta={"repeat": [number, len(excesses)], "backend": "shm"}))
    return Profile(Trace(tuple(runs))).runs


@pytest.mark.lengthy
def test_the_run_of_median_time_is_shown_with_the_interval_of_each_sentence(script):
    (repeats,) = gathered(repeated(script, 100, 120, 90, 110, 80))
    assert repeats.median.number == 1
    (interval,) = repeats.intervals()
    assert interval.is_sure
    assert str(interval).startswith("400 ns to 600 ns, in 5 of 5 runs")
    assert repeats.elapsed() == "1.80 µs to 2.20 µs in 5 runs"


@pytest.mark.lengthy
def test_a_sentence_says_between_which_times_a_further_run_would_lie_if_mended(script):
    (repeats,) = gathered(repeated(script, 100, 120, 90, 110, 80))
    (interval,) = repeats.intervals()
    told = [1500e-9, 1600e-9, 1450e-9, 1550e-9, 1400e-9]  # the computation evenly shared
    assert interval.without_s == pytest.approx(next_run_s(told))
    assert str(interval).endswith("; 9 of 10 mended runs would take 1.32 µs to 1.69 µs")


@pytest.mark.lengthy
def test_what_happened_in_one_run_only_is_told_apart_and_comes_last(script):
    (repeats,) = gathered(repeated(script, 100, 1000, 800, disturbed=0))
    assert repeats.median.number in {1, 3}
    doubtful = [each for each in repeats.intervals() if not each.is_sure]
    for interval in doubtful:
        assert str(interval).startswith("only in 1 of 3 runs")
    assert repeats.intervals()[-len(doubtful) or None :] == doubtful or not doubtful


@pytest.mark.lengthy
def test_a_loss_of_several_places_is_the_same_one_whichever_loses_most(script):
    runs, stack = [], (Frame("/home/app.py", "main", 1, 5), Frame("/home/app.py", "slow", 20, 21))
    for number in range(3):
        program = script(2)
        for step in range(20):
            more = 10 * (step % 2 == number % 2)
            program.step(f"main phase{step % 2}", w=[100 + more, 10])
        slow = [(0, step, stack, Doing.COMPUTING) for step in range(20)]
        run = sampled(program.run(meta={"repeat": [number, 3], "backend": "shm"}), *slow)
        runs.append(run)
    (repeats,) = gathered(Profile(Trace(tuple(runs))).runs)
    (interval,) = repeats.intervals()
    assert (interval.found, interval.is_sure) == (3, True)


def test_runs_that_were_not_repeated_stay_alone(script):
    program = script(2)
    program.step("main", w=[10, 20])
    runs = Profile(Trace((program.run(), program.run()))).runs
    assert [repeats.runs for repeats in gathered(runs)] == [(runs[0],), (runs[1],)]


@pytest.mark.lengthy
def test_a_script_is_recorded_so_often_into_one_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work.py").write_text(
        "import bsplib\n"
        "def main(bsp):\n"
        "    bsp.charge(1e-3 * bsp.pid)\n"
        "    bsp.sync()\n"
        "bsplib.run(main, nprocs=2)\n"
        "bsplib.run(main, nprocs=3)\n"
    )
    command = ["run", "--backend", "sim", "--repeat", "3", "--profile", "r.bsp", "work.py"]
    subprocess.run([sys.executable, "-m", "bsplib", *command], check=True)
    runs = bsplib.load("r.bsp").runs
    assert [run.run.repeat for run in runs] == [(0, 3), (0, 3), (1, 3), (1, 3), (2, 3), (2, 3)]
    assert [[run.nprocs for run in each.runs] for each in gathered(runs)] == [[2] * 3, [3] * 3]
    report = run_bsp("report", "r.bsp")
    assert report.output.count("the run of median time; ") == 2
