"""Programs on hundreds of virtual processors, in seconds on one real processor."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from bsplib.apps.broadcast import broadcast
from bsplib.apps.sorting import bitonic_sort

NPROCS = 512
pytestmark = pytest.mark.timeout(300)  # seconds on a machine that is not busy


@pytest.mark.slow
def test_the_broadcast_of_figure_3_reaches_512_processors():
    """Two broadcasts in one stage, and one in two: a quarter of a million puts."""
    results = bsplib.run(broadcast.main, 2048, 1, 1, nprocs=NPROCS, backend="sim")
    assert len(results) == NPROCS
    assert all(np.array_equal(values, broadcast.reference(2048)) for values in results)


@pytest.mark.lengthy
@pytest.mark.slow
def test_512_processors_sort_65536_keys():
    keys = np.random.default_rng(3).integers(0, 1 << 30, 1 << 16)
    blocks = bsplib.run(bitonic_sort.main, keys, nprocs=NPROCS, backend="sim")
    assert {len(block) for block in blocks} == {(1 << 16) // NPROCS}
    assert np.array_equal(np.concatenate(blocks), np.sort(keys))
