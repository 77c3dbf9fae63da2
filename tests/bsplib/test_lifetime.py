"""A run is recorded from the call to the return, as a stopwatch of the caller shows it."""

from __future__ import annotations

import time

import pytest

import bsplib
from bsplib.recording import lifetimes
from bsplib.recording.lifetimes import Caller, lifetime_of, stolen_ns
from bsplib.recording.records import NOT_MEASURED, Host, Lifetime
from bsplib.recording.trace import read_heads, read_trace


def main(bsp):
    time.sleep(0.02)
    bsp.sync()


@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_the_moments_of_a_run_are_in_order_and_cover_what_passed(tmp_path, kind):
    path = tmp_path / "run.bsp"
    began = time.perf_counter_ns()
    bsplib.run(main, nprocs=2, backend=kind, profile=path)
    passed = time.perf_counter_ns() - began
    (run,) = read_trace(path).runs
    life = run.lifetime
    assert life == read_heads(path)[0].lifetime
    for pid in range(2):
        assert life.called <= life.started[pid] <= life.ready[pid] <= 0
        last = run.records["end"][run.records["pid"] == pid].max()
        assert last <= life.finished[pid] <= life.collected
    assert life.collected <= life.returned
    assert life.returned - life.called <= passed or kind == "sim"


def test_a_run_that_fails_has_no_results_to_collect(tmp_path):
    def fails(bsp):
        bsp.sync()
        if bsp.pid:
            raise ValueError
        bsp.sync()

    with pytest.raises(ValueError):  # noqa: PT011  # raised above
        bsplib.run(fails, nprocs=2, profile=tmp_path / "run.bsp")
    (run,) = read_trace(tmp_path / "run.bsp").runs
    assert run.lifetime.collected is None
    assert run.lifetime.finished[1] is None


def test_processes_of_a_pool_start_with_each_run(tmp_path):
    with bsplib.Pool(nprocs=2, profile=tmp_path / "pool.bsp") as pool:
        pool.run(main)
        pool.run(main)
    for run in read_trace(tmp_path / "pool.bsp").runs:
        assert all(run.lifetime.called <= started for started in run.lifetime.started)


def caller(**moments):
    noted = Caller(is_virtual=False, called=100)
    noted.collected, noted.returned = 900, 950
    return noted


NOTED = {"began": 500, "started": 200, "ready": 450, "finished": 800}


def test_moments_become_times_of_the_records():
    life = lifetime_of([NOTED, {}], [None, None], caller())
    assert life == Lifetime(-400, (-300, None), (-50, None), (300, None), 400, 450)


def test_without_a_process_on_the_host_of_the_caller_nothing_is_known():
    assert lifetime_of([NOTED], [Host("far", 0, 1)], caller()) is None
    assert lifetime_of([NOTED], [None], None) is None


def test_moments_of_a_damaged_file_that_cannot_be_true_are_left_out():
    assert lifetime_of([NOTED | {"started": 460}], [None], caller()) is None
    assert lifetime_of([NOTED | {"started": -(2**60)}], [None], caller()) is None


def test_stolen_time_does_not_fall():
    assert -1 <= stolen_ns() <= stolen_ns()


@pytest.mark.parametrize(
    ("before", "after", "is_virtual", "steal_ns"),
    [
        (10, 25, False, 15),
        (25, 10, False, 0),
        (10, 25, True, NOT_MEASURED),
        (NOT_MEASURED, 25, False, NOT_MEASURED),
        (10, NOT_MEASURED, False, NOT_MEASURED),
    ],
)
def test_the_time_that_is_stolen_from_a_run_is_a_difference(
    monkeypatch, before, after, is_virtual, steal_ns
):
    noted = Caller(is_virtual=is_virtual, stolen_before=before)
    monkeypatch.setattr(lifetimes, "stolen_ns", lambda: after)
    noted.end(is_complete=True)
    assert noted.steal_ns == steal_ns
