"""Formulas that fit equally are combined to one, where that predicts what was left out better."""

import numpy as np
import pytest

from bsplib.profiler.models import combined
from bsplib.profiler.models.combined import choose_combined
from bsplib.profiler.models.select import choose
from bsplib.profiler.models.terms import column

GRID = np.meshgrid(2.0 ** np.arange(6, 14), 2.0 ** np.arange(0, 6))
VALUES = dict(zip(("N", "P"), (each.ravel() for each in GRID), strict=True))
LAW = {
    "1": 400.0,
    "log2(P)": 900.0,
    "P*log2(P)": 60.0,
    "N/P": 20.0,
    "(N/P)*log2(N/P)": 3.0,
    "(N/P)*log2(P)**2": 4.0,
    "(N/P)*log2(P)": 9.0,
}


def times_of(law, values, noise=0.0):
    exact = sum(factor * column(term, values) for term, factor in law.items())
    return exact * np.exp(np.random.default_rng(1).normal(0, noise, len(exact)))


def errors(rival, values, times):
    predicted = sum(
        factor * column(term, values)
        for term, factor in zip(rival.terms, rival.coefficients, strict=True)
    )
    return np.abs(predicted / times - 1)


@pytest.mark.lengthy
def test_the_combination_of_formulas_predicts_the_cells_between_better():
    inside = np.random.default_rng(3).permutation(len(VALUES["N"])) < 24
    some, rest = ({name: row[side] for name, row in VALUES.items()} for side in (inside, ~inside))
    times, wanted = times_of(LAW, some, 0.03), times_of(LAW, rest)
    alone, together = choose(some, times, "P"), choose_combined(some, times, "P")
    assert len(together.taken.terms) > len(alone.taken.terms)
    assert together.rivals[0] == alone.taken
    assert min(together.taken.coefficients) > 0
    before, after = (errors(each.taken, rest, wanted) for each in (alone, together))
    assert after.mean() < before.mean()


@pytest.mark.lengthy
def test_a_combination_that_goes_beyond_all_its_formulas_is_not_taken(monkeypatch):
    inside = np.random.default_rng(3).permutation(len(VALUES["N"])) < 24
    some = {name: row[inside] for name, row in VALUES.items()}
    times = times_of(LAW, some, 0.03)
    monkeypatch.setattr(combined, "_INSIDE", 1.01)
    assert choose_combined(some, times, "P") == choose(some, times, "P")


@pytest.mark.parametrize(
    "some",
    [
        {"N": VALUES["N"][:8]},
        {name: row[:12] for name, row in VALUES.items()},
    ],
    ids=["one variable", "few measurements"],
)
def test_of_one_variable_or_few_measurements_nothing_is_combined(some):
    law = {"1": 400.0, "N": 3.0}
    times = times_of(law, some, 0.05)
    assert choose_combined(some, times) == choose(some, times)
