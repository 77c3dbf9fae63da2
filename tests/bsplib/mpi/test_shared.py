"""bsplib.shared on ranks: each host has the values once."""

from __future__ import annotations

import os

import numpy as np
import pytest

import bsplib
from bsplib.backends.mpi import job
from bsplib.backends.proc_visibility import system_key

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(2 * DEADLINE_S)]


def file_of(array):
    """Which file the memory of an array belongs to; None if to no file."""
    address = array.__array_interface__["data"][0]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            low, _, high = line.split(" ", 1)[0].partition("-")
            if int(low, 16) <= address < int(high, 16):
                return int(line.split()[4])
    return None


def looks(bsp, x, again, part):
    bsp.sync()
    return file_of(x), file_of(again), float(x.sum()), part.tolist(), x.flags.writeable


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_of_this_host_map_the_memory_of_the_caller(mpi, ranks):
    x = bsplib.shared(np.arange(100_000.0))
    results = bsplib.run(looks, x, x, x[10:20:-3], nprocs=ranks, backend="mpi")
    expected = float(x.sum()), x[10:20:-3].tolist(), False
    assert results == [(file_of(x), file_of(x), *expected)] * ranks


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_of_another_host_have_one_copy(mpi, ranks, monkeypatch):
    monkeypatch.setattr(job, "system_key", lambda: b"another host")
    x = bsplib.shared(np.arange(100_000.0))
    for _ in range(2):
        results = bsplib.run(looks, x, x, x[20:10:-3], nprocs=ranks, backend="mpi")
        assert len(set(map(repr, results))) == 1
        first, second, *values = results[0]
        assert first == second != file_of(x)
        assert first not in (0, None)
        assert values == [float(x.sum()), [20.0, 17.0, 14.0, 11.0], False]


def test_arrays_without_elements_and_of_records_come_to_another_host(mpi, monkeypatch):
    monkeypatch.setattr(job, "system_key", lambda: b"another host")
    record = np.array([(1, "a"), (2, "bcd")], [("key", "i4"), ("name", "U3")])
    x, y = bsplib.shared(record), bsplib.shared(np.empty((3, 0)))
    results = bsplib.run(lambda bsp, x, y: (x.tolist(), y.shape), x, y, nprocs=2, backend="mpi")
    assert results == [(record.tolist(), (3, 0))] * 2


def test_a_process_of_another_system_start_or_user_has_another_key(monkeypatch):
    here = system_key()
    assert here == system_key()
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    assert system_key() != here
