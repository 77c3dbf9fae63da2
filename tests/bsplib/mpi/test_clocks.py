"""Differences of clocks: how they are measured, and what the processes agree on."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue

import numpy as np
import pytest

from bsplib.backends.base import Stopped
from bsplib.backends.mpi import clocks
from bsplib.backends.mpi.clocks import Clocks, Sample, sample
from tests.hosts.launching import mpiexec
from tests.mpi_installations import ALL
from tests.processes import run_command

HOUR_NS = 3600 * 10**9
SIZE = len(clocks.clock_key())
RUNNING = bytes(1)


class Request:
    """A transfer between threads that has not been completed yet."""

    def __init__(self, queue=None, buffer=None):
        self._queue, self._buffer = queue, buffer

    def Test(self):  # noqa: N802  # as in mpi4py
        if self._queue is None:
            return True
        try:
            self._buffer[:] = self._queue.get_nowait()
        except Empty:
            return False
        self._queue = None
        return True

    Wait = Test


class Comm:
    """What threads need of a communicator to measure their clocks."""

    def __init__(self, rank, queues):
        self.rank, self._queues = rank, queues

    def Isend(self, array, to, tag):  # noqa: N802
        self._queues.setdefault((self.rank, to, tag), SimpleQueue()).put(array.copy())
        return Request()

    def Irecv(self, array, source, tag):  # noqa: N802
        return Request(self._queues.setdefault((source, self.rank, tag), SimpleQueue()), array)


def aligned(shifts, keys, *, stop=RUNNING):
    """Let threads align clocks that are ``shifts`` ns ahead; return their Clocks and Alignments."""
    queues = {}
    made = [
        Clocks(
            Comm(rank, queues),
            lambda: bool(stop[0]),
            key=key,
            clock=lambda shift=shift: time.perf_counter_ns() + shift,
        )
        for rank, (shift, key) in enumerate(zip(shifts, keys, strict=True))
    ]
    with ThreadPoolExecutor(len(made)) as threads:
        waiting = [threads.submit(each.align, len(made), again=False) for each in made]
        return made, [each.result(timeout=30) for each in waiting]


# -- one round trip -------------------------------------------------------------------------------


def test_the_offset_is_that_of_the_middle_of_the_round_trip_and_its_error_at_most_half_of_it():
    found = sample(1000, 50_150, 1301)
    assert found == Sample(301, 50_150 - 1150)
    assert found.bound_ns == 151


# -- the processes together -----------------------------------------------------------------------


def test_each_process_finds_its_offset_within_the_bound():
    shifts = [0, HOUR_NS, -HOUR_NS, 5]
    made, found = aligned(shifts, [bytes([number] * SIZE) for number in range(4)])
    for shift, each, alignment in zip(shifts, made, found, strict=True):
        assert abs(alignment.offset_ns + shift) <= alignment.bound_ns
        assert each.offset_ns == alignment.offset_ns
    assert found[0] == (found[0].host, 0, 0)
    assert all(alignment.bound_ns > 0 for alignment in found[1:])


def test_processes_of_one_clock_have_the_same_offset_and_those_of_process_0_none():
    here, there = b"h" * SIZE, b"t" * SIZE
    _, found = aligned([0, HOUR_NS, 0, HOUR_NS], [here, there, here, there])
    assert found[1] == found[3]
    assert found[0] == found[2] == (found[0].host, 0, 0)


def test_clocks_are_measured_again_only_for_more_processes_or_where_it_is_asked_for():
    made, _ = aligned([0], [b"k" * SIZE])
    (each,) = made
    measured = []
    each._measured = lambda nprocs: measured.append(nprocs) or (1, 2)
    for nprocs, again in ((1, False), (4, False), (2, False), (4, True), (5, False)):
        alignment = each.align(nprocs, again=again)
    assert measured == [4, 4, 5]
    assert alignment[1:] == (1, 2)


def test_a_stopped_run_ends_the_measurement():
    stop = bytearray(1)
    lonely = Clocks(Comm(1, {}), lambda: bool(stop[0]), key=b"k" * SIZE)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lonely.align, 2, again=False)
        assert not waiting.done()
        stop[0] = 1
        with pytest.raises(Stopped):
            waiting.result(timeout=30)


# -- which processes have one clock ---------------------------------------------------------------


def test_a_process_has_the_same_clock_each_time():
    assert clocks.clock_key() == clocks.clock_key()


def test_where_the_system_does_not_tell_each_process_has_a_clock_of_its_own(monkeypatch):
    def nothing(_):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_bytes", nothing)
    assert clocks.clock_key() != clocks.clock_key()


def test_the_key_can_travel_as_an_array():
    assert np.frombuffer(clocks.clock_key(), np.uint8).shape == (SIZE,)


# -- across hosts ---------------------------------------------------------------------------------

ALIGN = """
import json, sys
from mpi4py import MPI
from bsplib.backends.mpi.clocks import Clocks

comm = MPI.COMM_WORLD
found = Clocks(comm, lambda: False).align(comm.size, again=False)
everywhere = comm.gather(found)
if comm.rank == 0:
    print(json.dumps(everywhere))
"""
HOSTS_APART_NS = 10**12
"""The clock of each of the test's hosts is so far ahead of that of the one before."""


@pytest.mark.slow
@pytest.mark.lengthy
@pytest.mark.parametrize("mpi", ALL, ids=lambda mpi: mpi.distribution)
def test_the_clocks_of_four_hosts_are_measured_within_the_bound(hosts, mpi):
    if not mpi.is_here():
        pytest.skip(f"{mpi.title} is not installed: pip install -e '.[dev]'")
    line = mpiexec(hosts, mpi, 8, 2, sys.executable, "-c", ALIGN)
    done = run_command(*line)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found[::2] == found[1::2]  # two processes on each host
    assert [host for host, _, _ in found[::2]] == hosts.names
    for number, (_, offset_ns, bound_ns) in enumerate(found[::2]):
        assert abs(offset_ns + number * HOSTS_APART_NS) <= bound_ns
        # A message takes at least 1 ms each way, and no bound can be better than that.
        assert (bound_ns >= 10**6) == (number > 0)
