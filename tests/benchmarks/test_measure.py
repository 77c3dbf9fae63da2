"""Cases take turns; ratios are taken within a turn; goals are judged by their medians."""

from __future__ import annotations

from itertools import count

import pytest

from benchmarks import goals, provenance
from benchmarks.goals import BYTES, MORE, SECONDS, Goal
from benchmarks.measure import Case, Section, comparison, summary
from bsplib import core

THEIRS = [1.0, 2.0, 4.0]
OURS = [3.0, 2.0, 2.0]  # 3, 1 and 1/2 times theirs


def told(name, seconds, **options):
    """A case that takes as long as it is told."""
    return Case(name, iter(seconds).__next__, **options)


@pytest.fixture
def measured():
    """Measure cases that take as long as they are told; return their figures."""

    def of(*cases, quick=False, **options):
        section = Section("A section", "call", lambda _: cases, **{"warm_up": 0, **options})
        return section.measured(quick=quick)["cases"]

    return of


def test_the_summary_has_quartiles_of_the_samples_themselves():
    found = summary([5.0, 1.0, 2.0, 4.0, 3.0])
    assert found == {"median": 3.0, "low": 2.0, "high": 4.0, "least": 1.0}
    assert summary([2.0])["high"] == 2.0


def test_cases_take_turns_after_those_that_warm_up(measured):
    clock = count()
    cases = (Case(name, lambda: float(next(clock))) for name in "AB")
    first, second = (case["seconds"] for case in measured(*cases, warm_up=1, repeats=3).values())
    assert (first["least"], first["median"], first["high"]) == (2.0, 4.0, 5.0)
    assert (second["least"], second["median"], second["high"]) == (3.0, 5.0, 6.0)


def test_a_quick_section_takes_as_few_turns_as_have_quartiles(measured):
    assert measured(told("ours", OURS), quick=True, repeats=9)["ours"]["seconds"]["median"] == 2.0


def test_a_comparison_is_the_median_of_the_turns_not_the_ratio_of_medians():
    found = comparison(OURS, THEIRS)
    assert found["times"] == {"median": 1.0, "low": 0.75, "high": 2.0, "least": 0.5}
    assert found["more_s"]["median"] == 0.0


def test_the_greatest_memory_of_all_samples_is_kept(measured):
    sizes = iter([1, 3, 2])
    taken = []

    def sample():
        taken.append(next(sizes))
        return 1.0

    found = measured(Case("read", sample, peak_bytes=lambda: max(taken)), repeats=3)
    assert Goal("A section", "read", 3, kind=BYTES).figure(found) == {"median": 3}


def test_cases_are_compared_with_those_of_their_goals(measured, monkeypatch):
    times = Goal("A section", "ours", 1.0, "theirs")
    more = Goal("A section", "ours", 1.0, "theirs", MORE)
    absent = Goal("A section", "ours", 1.0, "an MPI")
    seconds = Goal("A section", "ours", 1.0, kind=SECONDS)
    monkeypatch.setattr(goals, "GOALS", {"who": (times, more, absent, seconds)})
    found = measured(told("theirs", THEIRS), told("ours", OURS), repeats=3)
    figures = [goal.figure(found) for goal in (times, more, seconds)]
    assert [figure["median"] for figure in figures] == [1.0, 0.0, 2.0]
    assert absent.figure(found) is None


def test_what_was_measured_is_told_with_where_and_when():
    found = provenance.circumstances()
    assert {"python", "numpy", "bsplib"} <= set(found["versions"])
    assert found["machine"]["cores"] >= 1
    assert found["build"]["core"] == core.BUILD
    assert found["commit"]
    assert found["date"]
