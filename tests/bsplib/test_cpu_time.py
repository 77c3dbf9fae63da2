"""What the system says of the processes in the records: CPU time, waits for a core, faults."""

from __future__ import annotations

import os
import time

import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.survey import waiting_ns
from bsplib.recording.records import NOT_MEASURED
from bsplib.sync_kinds import Kind
from tests.recordings import record_run

WORK_NS = 20_000_000


@pytest.fixture
def one_core():
    """Let this process, and those that it starts, use one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.fixture
def record(tmp_path):
    def record_it(main, nprocs=2, backend="shm"):
        path = tmp_path / "trace.bsp"
        path.unlink(missing_ok=True)
        return record_run(path, main, nprocs=nprocs, backend=backend, lines=False)

    return record_it


def compute(work_ns=WORK_NS):
    """Use CPU time."""
    end = time.thread_time_ns() + work_ns
    while time.thread_time_ns() < end:
        pass


def equal_work(bsp):
    for _ in range(2):
        compute()
        bsp.sync()


@pytest.mark.lengthy
@pytest.mark.usefixtures("one_core")
def test_cpu_time_counts_what_was_computed_between_syncs(record):
    run = record(equal_work)
    syncs = run.records[run.records["kind"] == Kind.SYNC]
    assert (syncs["comp_cpu"] >= WORK_NS).all()
    assert (run.records["comp_cpu"] != NOT_MEASURED).all()
    assert run.meta["cpu_measured"] is True


@pytest.mark.usefixtures("one_core")
def test_virtual_processors_have_no_cpu_time(record):
    run = record(lambda bsp: bsp.sync(), backend="sim")
    assert (run.records["comp_cpu"] == NOT_MEASURED).all()
    assert run.meta["cpu_measured"] is False


@pytest.mark.lengthy
@pytest.mark.usefixtures("one_core")
def test_cpu_time_in_a_sub_group_belongs_to_it_alone(record):
    def main(bsp):
        with bsp.partition([1, 2]) as sub:
            compute()
            sub.sync()
            with sub.split(0) as inner:
                compute()
                inner.sync()
        bsp.sync()

    run = record(main)
    outer = run.records[run.records["group"] == 0]
    assert (outer["comp_cpu"] < WORK_NS).all()
    for pid in range(2):
        mine = run.records[(run.records["pid"] == pid) & (run.records["group"] > 0)]
        # A sync of the sub-group, split's own, the sync inside it, and two ends.
        assert sorted(mine["comp_cpu"] >= WORK_NS) == [False] * 3 + [True] * 2


@pytest.mark.lengthy
@pytest.mark.usefixtures("one_core")
def test_equal_work_is_in_balance_although_the_processes_wait_for_a_core(record):
    shares = []
    for _ in range(3):  # other programs on this core disturb a recording
        run = record(equal_work, nprocs=4)
        assert waiting_ns(run) > 0
        graph = build(run).graph
        (leaf,) = (
            data
            for _, data in graph.nodes(data=True)
            if data["node"].kind == "cost_centre" and data["node"].sync == "sync"
        )
        shares.append(leaf["cost"].comp.percentages()[1])
    assert max(shares) > 50, shares


@pytest.mark.usefixtures("one_core")
def test_stacks_are_those_of_the_program_where_cpu_time_is_measured(record):
    def main(bsp):
        bsp.sync()
        bsp.oblsync(0)
        with bsp.partition([1, 2]) as sub:
            sub.sync()
        bsp.allreduce(1)

    run = record(main)
    first = main.__code__.co_firstlineno
    calls = {tuple(frame.function.rpartition(".")[2] for frame in stack) for stack in run.stacks}
    assert calls == {("main",), ("main", "allreduce")}
    lines = {stack[0].line - first for stack in run.stacks}
    assert lines <= {1, 2, 3, 4, 5}
    assert {1, 2, 4, 5} <= lines
