"""A part of a program lasts from the first process that begins to the last one that ends."""

from __future__ import annotations

import pytest

import bsplib
from bsplib.apps.spans import least, timed


def test_a_part_lasts_from_the_first_begin_to_the_last_end():
    late, early = [(3.0, 5.0)], [(1.0, 2.0)]
    assert least([late, early]) == 4.0


def test_the_least_of_all_rounds_counts():
    first, second = [(0.0, 2.0), (5.0, 6.0)], [(0.0, 1.0), (5.0, 6.5)]
    assert least([first, second]) == 1.5


def test_processes_that_have_other_numbers_of_rounds_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        least([[(0.0, 1.0)], []])


def work(bsp):
    bsp.charge(0)
    return timed(bsp, lambda: bsp.charge(1e-3 * (1 + bsp.pid)))


@pytest.mark.parametrize("nprocs", [1, 3])
def test_all_processes_begin_together(nprocs):
    spans = bsplib.run(work, nprocs=nprocs, backend="sim")
    assert len({began for began, _ in spans}) == 1
    assert least([[span] for span in spans]) == pytest.approx(1e-3 * nprocs)
