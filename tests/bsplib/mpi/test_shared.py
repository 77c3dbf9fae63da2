"""bsplib.shared on ranks: each host has the values once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.backends.proc_visibility import system_key

from ..test_shared import inode
from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(2 * DEADLINE_S)]


def looks(bsp, x, again, part):
    bsp.sync()
    return inode(x), inode(again), float(x.sum()), part.tolist(), x.flags.writeable


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_of_this_host_map_the_memory_of_the_caller(mpi, ranks):
    x = bsplib.shared(np.arange(100_000.0))
    results = bsplib.run(looks, x, x, x[10:20:-3], nprocs=ranks, backend="mpi")
    expected = float(x.sum()), x[10:20:-3].tolist(), False
    assert results == [(inode(x), inode(x), *expected)] * ranks


ELSEWHERE = """
import os
from bsplib.backends.mpi import ranks
from bsplib.backends.table import own_seat

rank = own_seat().rank
if rank >= 2:  # two hosts, as far as the ranks know
    ranks.system_key = lambda: b"another host"

import numpy as np
import bsplib
from tests.bsplib.mpi.test_shared import looks

x = bsplib.shared(np.arange(100_000.0) if rank == 0 else np.zeros(1))
record = bsplib.shared(np.array([(1, "a"), (2, "bcd")], [("key", "i4"), ("name", "U3")]))
empty = bsplib.shared(np.empty((3, 0)))
for _ in range(2):
    found = bsplib.run(looks, x, x, x[20:10:-3])
    assert all(values == [4999950000.0, [20.0, 17.0, 14.0, 11.0], False] for _, _, *values in found)
    files = [first for first, second, *_ in found if first == second]
    print([files.index(file) for file in files])
print(*bsplib.run(lambda bsp, x, y: (x.tolist(), y.shape), record, empty)[2])
"""


def test_ranks_of_another_host_have_one_copy(program, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    command = (sys.executable, "-m", "bsplib", "run", "--backend", "mpi", "-n", "4")
    out, err = program(ELSEWHERE, *command).communicate(timeout=DEADLINE_S)
    assert out.splitlines() == [
        *2 * ["[0, 0, 2, 2]"],
        "[(1, 'a'), (2, 'bcd')] (3, 0)",
    ], err


def test_a_process_of_another_system_start_or_user_has_another_key(monkeypatch):
    here = system_key()
    assert here == system_key()
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    assert system_key() != here
