"""Memory of arrays that were freed is used for the next ones, without page faults."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from tests.processes import run_python

PAGE = resource.getpagesize()
ROUNDS = 20


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def compute(bsp, nbytes):
    """Return how many pages are new in each round of some operations."""
    x = np.ones(nbytes // 8)
    for _ in range(3):
        x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[:-2] + x[2:])
    before = faults()
    for _ in range(ROUNDS):
        x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[:-2] + x[2:])
    after = faults()  # before the sync: in the simulator, another process runs in it
    bsp.sync()
    return (after - before) / ROUNDS


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("nbytes", [600_000, 8_000_000])
def test_a_loop_over_arrays_has_no_page_faults(run, nbytes):
    assert max(run(compute, nbytes)) < 0.2 * nbytes / PAGE


@pytest.mark.lengthy
def test_settings_of_the_user_are_kept():
    """The program prints how many pages are new in each round."""
    program = (
        "import bsplib\nfrom tests.bsplib.test_temporaries import compute\n"
        "print(bsplib.run(compute, 600_000, nprocs=1)[0])"
    )
    environment = {"MALLOC_MMAP_THRESHOLD_": "100000", "PATH": "/usr/bin:/bin"}
    told = run_python("-c", program, env=environment, check=True)
    assert float(told.stdout) > 600_000 / PAGE
