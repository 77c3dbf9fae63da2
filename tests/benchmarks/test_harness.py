"""Cases take turns; ratios are taken within a turn; goals are judged by their medians."""

from __future__ import annotations

from itertools import count

import pytest

from benchmarks.document import read
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section, comparison, measure, measure_again, summary
from benchmarks.report import goals
from bsplib import core

THEIRS = [1.0, 2.0, 4.0]
OURS = [3.0, 2.0, 2.0]  # 3, 1 and 1/2 times theirs


@pytest.fixture
def measured(tmp_path):
    """Measure cases that take as long as they are told; return what is kept in JSON."""

    def of(*cases, **options):
        section = Section("A section", "call", lambda _: cases, **{"warm_up": 0, **options})
        path = measure("trial", [section], tmp_path)
        return read(path)

    return of


def told(name, seconds, **options):
    """A case that takes as long as it is told."""
    return Case(name, iter(seconds).__next__, **options)


def judged(document):
    return [
        (goal["measured"], goal["met"])
        for section in document["sections"]
        for case in section["cases"]
        for goal in case["goals"]
    ]


def test_a_goal_for_memory_is_judged_by_the_greatest_of_all_samples(measured):
    sizes = iter([2**30, 3 * 2**30, 2 * 2**30])
    taken = []

    def sample():
        taken.append(next(sizes))
        return 1.0

    limits = Goal.peak(3 * 2**30), Goal.peak(2.5 * 2**30)
    document = measured(
        Case("read", sample, goals=limits, peak_bytes=lambda: max(taken)), repeats=3
    )
    assert judged(document) == [(3 * 2**30, True), (3 * 2**30, False)]
    row, _ = goals([document])
    assert (row.goal, row.median) == ("at most 3.00 GiB of memory", "3.00 GiB")


def test_the_summary_has_quartiles_of_the_samples_themselves():
    assert summary([5.0, 1.0, 2.0, 4.0, 3.0]) == {
        "median": 3.0,
        "lower_quartile": 2.0,
        "upper_quartile": 4.0,
        "least": 1.0,
        "greatest": 5.0,
    }


def test_cases_take_turns_after_those_that_warm_up(measured):
    clock = count()
    document = measured(
        *(Case(name, lambda: float(next(clock))) for name in "AB"), warm_up=1, repeats=3
    )
    first, second = (case["seconds"] for case in document["sections"][0]["cases"])
    assert [first[each] for each in ("least", "median", "greatest")] == [2.0, 4.0, 6.0]
    assert [second[each] for each in ("least", "median", "greatest")] == [3.0, 5.0, 7.0]
    assert [case["samples"] for case in document["sections"][0]["cases"]] == [3, 3]


def test_a_comparison_is_the_median_of_the_turns_not_the_ratio_of_medians():
    found = comparison(OURS, THEIRS)
    assert found["ratio"]["median"] == 1.0
    assert found["ratio"]["least"] == 0.5
    assert found["difference_s"]["median"] == 0.0
    assert found["ratio_of_least"] == 2.0
    assert found["difference_of_least_s"] == 1.0


def test_a_goal_is_met_up_to_its_limit_and_not_beyond(measured):
    limits = (
        Goal.times(1.0, "theirs"),
        Goal.times(0.99, "theirs"),
        Goal.more_than("theirs", by_s=0.0),
        Goal.more_than("theirs", by_s=-0.1),
        Goal.seconds(2.0),
        Goal.seconds(1.9),
    )
    document = measured(told("theirs", THEIRS), told("ours", OURS, goals=limits), repeats=3)
    figures = [1.0, 1.0, 0.0, 0.0, 2.0, 2.0]
    assert judged(document) == list(zip(figures, [True, False] * 3, strict=True))


def test_a_goal_beside_a_case_that_is_not_there_is_neither_met_nor_missed(measured):
    goal = Goal.times(1.0, "an MPI")
    document = measured(told("ours", OURS, goals=(goal,), against=("another MPI",)), repeats=3)
    assert judged(document) == [(None, None)]
    (row,) = goals([document])
    assert row.verdict == "not measured"


def sections_of(seconds):
    """Sections named A, B and so on, of a case that takes as long as it is told."""
    return {
        title: Section(title, "call", lambda _, each=each: [told("ours", [each] * 2)], 2, 0)
        for title, each in seconds.items()
    }


def test_sections_measured_again_replace_those_of_before_with_circumstances_of_their_own(tmp_path):
    before = sections_of({"A": 1.0, "gone": 2.0, "C": 3.0})
    measure("trial", before.values(), tmp_path)
    now = sections_of({"B": 4.0, "C": 5.0})
    found = read(measure_again("trial", now.values(), ["A", "B", "C", "D"], tmp_path))
    medians = {each["title"]: each["cases"][0]["seconds"]["median"] for each in found["sections"]}
    assert list(medians.items()) == [("A", 1.0), ("B", 4.0), ("C", 5.0)]
    assert ["circumstances" in each for each in found["sections"]] == [False, True, True]
    assert found["sections"][1]["circumstances"].keys() == found.keys() - {"benchmark", "sections"}


def test_sections_measured_first_are_the_file(tmp_path):
    found = read(measure_again("trial", sections_of({"A": 1.0}).values(), ["A"], tmp_path))
    assert [list(each) for each in found["sections"]] == [["title", "unit", "cases"]]


def test_a_quick_section_takes_as_few_turns_as_have_quartiles():
    section = Section("A section", "call", lambda _: (), repeats=9)
    assert (section.quick().repeats, section.quick().title) == (3, "A section")


def test_what_was_measured_is_told_with_where_and_when(measured):
    document = measured(told("ours", OURS), repeats=3)
    assert {"python", "numpy", "bsplib", "mpi4py", "openmpi", "mpich"} <= set(document["versions"])
    assert document["machine"]["cores"] >= 1
    assert document["build"]["core"] == core.BUILD
    assert document["build"]["python_level"].startswith("-O")
    assert isinstance(document["build"]["python_optimised"], bool)
    assert document["benchmark"] == "trial"
    assert document["commit"]
