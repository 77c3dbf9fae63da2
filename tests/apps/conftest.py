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
