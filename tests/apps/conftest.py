"""What tests of several applications share."""

from __future__ import annotations

import pytest

import bsplib


@pytest.fixture(scope="module")
def pools():
    """Real processes that stay: one pool for each number of them."""
    made = {}
    try:
        yield lambda nprocs: made.setdefault(nprocs, bsplib.Pool(nprocs))
    finally:
        for pool in made.values():
            pool.close()


@pytest.fixture(scope="module")
def run_on(pools):
    """Runs a program on a backend; real processes stay for the next program."""

    def run(main, *args, nprocs, backend, **how):
        if backend == "shm":
            return pools(nprocs).run(main, *args, **how)
        return bsplib.run(main, *args, nprocs=nprocs, backend=backend, **how)

    return run
