"""Several runs of one program: what it takes when nothing disturbs it."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.profiler.models.undisturbed_time import between, undisturbed
from bsplib.sync_kinds import Kind


def twice(script, first, second, **more):
    """Two runs of a superstep and an end, with these computations."""
    runs = []
    for w in (first, second):
        program = script(2)
        program.step("main", w=w[:2], puts=[(0, 1, 8), (1, 0, 8)], **more)
        program.step("main", w=w[2:], kind=Kind.END)
        runs.append(program.run())
    return runs


def total_ns(runs):
    return undisturbed(runs).booking.total_s * 1e9


def test_every_stretch_counts_as_long_as_it_took_at_least(script):
    runs = twice(script, [10, 40, 5, 1], [30, 20, 2, 9])
    # 10 and 20 to the sync, 2 and 1 after it; no run took less than 36.
    assert total_ns(runs) == pytest.approx(20 + 2)
    assert total_ns(runs[:1]) == pytest.approx(40 + 5)


def test_so_does_every_communication(script):
    one, other = twice(script, [10, 10, 5, 5], [10, 10, 5, 5], calls=[3, 3], transfer=7)
    other.records["end"][:2] += 100
    other.records["start"][2:] += 100
    other.records["arrive"][2:] += 100
    other.records["released"][2:] += 100
    other.records["end"][2:] += 100
    other.records["comm_calls"][:2] = 2
    other.records["start"][:2] += 1  # as much computation as before
    quickest = undisturbed([one, other])
    booking = quickest.booking
    assert booking.comp_s.sum() * 1e9 == pytest.approx(15)
    assert booking.comm_s.sum() * 1e9 == pytest.approx(3 + 7)  # and not 2 + 107


def test_what_comes_between_two_steps_is_told_apart(script):
    runs = twice(script, [10, 40, 5, 1], [30, 20, 2, 9])
    quickest = undisturbed(runs)
    assert between(quickest.timeline, 0, 1).tolist() == [False, False, True, True]
    assert between(quickest.timeline, -1, 0).tolist() == [True, True, False, False]
    assert between(quickest.timeline, 1, 1).tolist() == [False] * 4
    later = quickest.booking.comp_s[between(quickest.timeline, 0, 1)]
    assert later.sum() * 1e9 == pytest.approx(2)


def test_the_order_of_the_records_makes_no_difference(script):
    runs = twice(script, [10, 40, 5, 1], [30, 20, 2, 9])
    shuffled = runs[1].records[[1, 0, 3, 2]]
    order = np.array([1, 0, 3, 2])
    runs[1].traffic["record"] = order[runs[1].traffic["record"]]
    runs[1].records[:] = shuffled
    assert total_ns(runs) == pytest.approx(20 + 2)


def test_runs_of_different_programs_are_refused(script):
    program = script(2)
    program.step("main")
    with pytest.raises(ValueError, match="the runs do not have the same supersteps"):
        undisturbed([*twice(script, [1] * 4, [1] * 4), program.run()])
