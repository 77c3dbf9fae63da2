"""How many files of bsplib a put or get goes through: as many as its reader has to open."""

from __future__ import annotations

import gc
import os
import sys

import numpy as np
import pytest

import bsplib

HOME = os.path.dirname(bsplib.__file__) + os.sep

TRANSFERS = {
    "a whole array": lambda bsp, pid, x: bsp.put(pid, np.ones(100), x),
    "a view": lambda bsp, pid, x: bsp.put(pid, np.ones(10), x[20:30]),
    "an offset": lambda bsp, pid, x: bsp.put(pid, np.ones(10), x, offset=20),
    "a word": lambda bsp, pid, x: bsp.put(pid, 1.0, x, offset=20),
    "a get": lambda bsp, pid, x: bsp.get(pid, x[20:30], np.empty(10)),
}

FURTHER_ON_MPI = {"a view": 1, "a get": 2}
"""The core does not take these on MPI. A get is announced to the process that has the array."""


def files_entered(call):
    """Return the files of bsplib in which functions are called, directly or not."""
    files = set()

    def note(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(HOME):
            files.add(file.removeprefix(HOME))

    gc.disable()  # what bsplib does when garbage is collected belongs to no transfer
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return sorted(files)


def entered(bsp, name):
    """Return the files that the first transfer of a kind enters, and those of the second."""
    x = bsp.zeros(100)
    bsp.sync()
    right = (bsp.pid + 1) % bsp.nprocs
    files = [files_entered(lambda: TRANSFERS[name](bsp, right, x)) for _ in range(2)]
    bsp.sync()
    return files


def apart(files):
    """Return the files above the core, and those of the core."""
    core = [file for file in files if file.startswith("core" + os.sep)]
    return [file for file in files if file not in core], core


@pytest.mark.procs(2)
@pytest.mark.parametrize("name", TRANSFERS)
def test_a_transfer_enters_ten_files_above_the_core_at_most_and_its_like_five(run, backend, name):
    further = FURTHER_ON_MPI.get(name, 0) if backend == "mpi" else 0
    for first, second in run(entered, name):
        assert 0 < len(apart(first)[0]) <= 10, first
        assert len(apart(second)[0]) <= 5 + further, second


@pytest.mark.procs(2)
@pytest.mark.parametrize("name", TRANSFERS)
def test_a_transfer_enters_seven_files_of_the_core_at_most(run, backend, name):
    observer = 2 if backend == "sim" else 0  # which moves the virtual clock: observed, clock
    for files in run(entered, name):
        for each in files:  # they show where the core is interpreted
            assert len(apart(each)[1]) <= 7 + observer, each


@pytest.mark.procs(2)
def test_a_put_by_offset_needs_no_regions_of_views(run):
    first, _ = run(entered, "an offset")[0]
    assert "transfers/place.py" not in first
