"""What ends a superstep, and that all processes agree on it."""

from __future__ import annotations

import os

import numpy as np
import pytest

import bsplib

from .neighbours import right


def test_results_come_by_pid(run, nprocs):
    assert run(lambda bsp, a, b: (a, b, bsp.pid), 1, b="x") == [
        (1, "x", pid) for pid in range(nprocs)
    ]


def test_time_counts_the_seconds_since_the_run_began_and_does_not_go_back(bsp):
    times = [bsp.time()]
    for _ in range(20):
        bsp.sync()
        times.append(bsp.time())
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] < 3600


@pytest.mark.procs(least=2)
def test_what_a_process_reads_after_the_sync_was_written_before_all_came_there(bsp):
    x = bsp.zeros(bsp.nprocs, int)
    for step in range(50):
        if bsp.pid == step % bsp.nprocs:  # one at a time has much to do
            np.sort(np.random.default_rng(step).random(20_000))
        for pid in range(bsp.nprocs):
            bsp.put(pid, step, x, offset=bsp.pid)
        bsp.sync()
        assert x.tolist() == [step] * bsp.nprocs


@pytest.mark.every_count
def test_gets_read_then_gets_write_then_puts_write_then_messages_come(run, nprocs):
    def main(bsp):
        x = bsp.array([bsp.pid, -1])
        bsp.put(right(bsp), 1000 + bsp.pid, x[:1])  # called first, written last
        bsp.get((bsp.pid - 1) % bsp.nprocs, x[:1], x[1:])
        bsp.get(bsp.pid, x[1:], x[:1])  # reads before the get above writes
        bsp.send(right(bsp), x)  # copied now
        bsp.sync()
        return x.tolist(), bsp.move().tolist()

    left = [(pid - 1) % nprocs for pid in range(nprocs)]
    assert run(main) == [([1000 + at, at], [at, -1]) for at in left]


# -- disagreement ------------------------------------------------------------------------------


@pytest.mark.procs(least=2)
def test_a_process_that_returns_while_others_sync_is_a_mismatch_that_names_both(run):
    def main(bsp):
        bsp.sync()
        if bsp.pid != 1:
            bsp.sync()

    with pytest.raises(
        bsplib.SyncMismatchError, match=r"\[0.*\] (is )?at a sync.*\[1\] (has )?returned from main"
    ) as raised:
        run(main)
    assert raised.value.superstep == 1
    assert "test_sync.py:" in str(raised.value)


@pytest.mark.procs(2, 3)
@pytest.mark.timeout(30)
@pytest.mark.raises(bsplib.SyncMismatchError, match=r"sync")
def test_an_oblsync_between_syncs_on_one_process_only_is_a_mismatch(bsp):
    bsp.sync()
    if bsp.pid == 0:
        bsp.oblsync(0)
    for _ in range(3):
        bsp.sync()


# -- what run itself is asked ----------------------------------------------------------------


def test_run_takes_as_many_processes_as_there_are_cores(backend):
    results = bsplib.run(lambda bsp: bsp.nprocs, backend=backend)
    assert results == [len(os.sched_getaffinity(0))] * len(results)


MOST = {"shm": 256, "sim": 4096, "mpi": 4096}


@pytest.mark.parametrize("which", ["-1", "0", "last + 1"])
def test_run_refuses_a_number_of_processes_that_cannot_be(backend, which):
    count = {"-1": -1, "0": 0, "last + 1": MOST[backend] + 1}[which]
    with pytest.raises(
        bsplib.ProcessRangeError, match=rf"^nprocs is {count}; it may be 1 to {MOST[backend]}\b"
    ) as raised:
        bsplib.run(lambda bsp: None, nprocs=count, backend=backend)
    assert isinstance(raised.value, IndexError)


def test_run_takes_a_numpy_number_of_processes(backend):
    assert len(bsplib.run(lambda bsp: None, nprocs=np.int64(2), backend=backend)) == 2


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bcast", "a group has no attribute 'bcast'; it is called broadcast here"),
        ("Get_rank", "a group has no attribute 'Get_rank'; it is called pid here"),
        ("bsp_barrier", "a group has no attribute 'bsp_barrier'; it is called sync here"),
        ("Allreduce", "a group has no attribute 'Allreduce'; it is called allreduce here"),
        ("Gatherv", "a group has no attribute 'Gatherv'; it is called gather here"),
        ("bsp_put", "a group has no attribute 'bsp_put'; it is called put here"),
        ("bsp_begin", "a group has no attribute 'bsp_begin'; it is called bsplib.run here"),
        ("Wtime", "a group has no attribute 'Wtime'; it is called time here"),
        ("colour", r"a group has no attribute 'colour'(\n|$)"),
    ],
)
def test_names_of_other_libraries_lead_to_the_names_here(run, name, words):
    with pytest.raises(AttributeError, match=words):
        run(lambda bsp: getattr(bsp, name))


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("sync", "; write bsp.sync, where bsp is the group that main is given"),
        ("Bcast", "; write bsp.broadcast, where bsp is the group that main is given"),
        ("begin", "; write bsplib.run"),
        ("COMM_WORLD", ""),
        ("__wrapped__", ""),
    ],
)
def test_names_of_calls_are_no_names_of_the_package(name, way_out):
    with pytest.raises(AttributeError) as caught:
        getattr(bsplib, name)
    assert str(caught.value) == f"module 'bsplib' has no attribute {name!r}{way_out}"


def _put_as_in_c(bsp):
    bsp.put(0, np.ones(8), bsp.zeros(16), 8, 8)


def _send_as_in_mpi(bsp):
    bsp.send("text", dest=0)


def _register_as_in_c(bsp):
    bsp.push_reg(np.zeros(16), 16)


def _reduce_as_in_mpi(bsp):
    bsp.allreduce(1, root=0)


def _ask_as_in_c(bsp):
    return bsp.nprocs()


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize(
    ("main", "way_out"),
    [
        (_put_as_in_c, "[write put(pid, src, dst, *, offset=None, at=None)]"),
        (_send_as_in_mpi, "[write send(pid, payload, tag=None)]"),
        (_register_as_in_c, "[write push_reg(array)]"),
        (_reduce_as_in_mpi, "[write allreduce(x, op=add, *, out=None)]"),
        (_ask_as_in_c, "[nprocs is a number: write nprocs without brackets]"),
    ],
)
def test_calls_that_are_written_as_in_c_or_mpi_say_how_they_are_written_here(run, main, way_out):
    with pytest.raises(TypeError) as raised:
        run(main)
    assert way_out in raised.value.__notes__


@pytest.mark.parametrize("call", [lambda put, bsp: put(1, 2), lambda put, bsp: put(bsp.pid)()])
def test_a_function_of_the_program_that_is_called_wrongly_gets_no_advice(run, call):
    def put(pid):
        return pid

    def main(bsp):
        call(put, bsp)

    with pytest.raises(TypeError) as raised:
        run(main)
    assert not any("write" in note for note in raised.value.__notes__)


def test_a_group_says_which_process_and_superstep_it_is_in(run, nprocs):
    def main(bsp):
        bsp.sync()
        with bsp.partition(range(1, bsp.nprocs + 1)) as sub:
            return repr(bsp), repr(sub)

    inner = "<Group 0 of 1, superstep 0>"
    assert run(main) == [
        (f"<Group {pid} of {nprocs}, superstep 1>", inner) for pid in range(nprocs)
    ]
