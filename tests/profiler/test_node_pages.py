"""What the first use of memory takes in computations, by the pages that were counted."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.profiler.models.nodes.pages import Paged, page_seconds, slower_forms
from bsplib.profiler.models.nodes.work import ChainWork, fit_works
from bsplib.profiler.models.terms import library

SIZES = 2.0 ** np.arange(10, 19)
VALUES = {"n": SIZES}
WITH_P = {**VALUES, "p": np.ones(len(SIZES))}
PAGE_S, ITEM_S = 2e-6, 2e-8
KEPT = 300.0
"""Pages of the runs whose memory is used again."""


def jumping():
    """Return a computation in proportion to n whose pages jump at the largest sizes."""
    pages = np.where(SIZES > 2.0**16, KEPT + SIZES / 40, KEPT)
    return ITEM_S * SIZES + PAGE_S * pages + 1e-3, pages


def test_the_time_of_a_page_is_found_where_pages_jump():
    seconds, pages = jumping()
    terms = library(VALUES, "p", between=False)
    assert page_seconds([Paged(seconds, pages)], terms, VALUES) == pytest.approx(PAGE_S, rel=0.3)


def test_few_pages_tell_no_time():
    seconds, _ = jumping()
    terms = library(VALUES, "p", between=False)
    few = Paged(seconds, KEPT + SIZES / 1000)
    assert page_seconds([few], terms, VALUES) == 0


def test_a_jump_of_pages_makes_no_power_of_a_size():
    seconds, pages = jumping()
    nothing = np.zeros(len(SIZES))
    work = ChainWork(seconds, nothing, pages, nothing, nothing)
    law = fit_works({"": work}, WITH_P, VALUES, 0.2)[""]
    far = 2.0**21
    truth = ITEM_S * far + PAGE_S * (KEPT + far / 40) + 1e-3
    found = law.at({"n": far, "p": 1.0}, 0.5)
    assert found.value == pytest.approx(truth, rel=0.25)
    assert found.low <= truth <= found.high


def test_a_form_in_proportion_is_kept_only_where_pages_differ():
    seconds, pages = jumping()
    (term,) = [each for each in library(VALUES, "p", between=False) if each.text == "n"]
    (form,) = slower_forms(VALUES, Paged(seconds, pages), [term])
    assert form.at({"n": SIZES[-1:]})[0] == pytest.approx(seconds[-1])
    assert not slower_forms(VALUES, Paged(seconds, np.full(len(pages), KEPT)), [term])


def test_growth_that_noise_hides_is_predicted_by_its_likeliest_part():
    rng = np.random.default_rng(4)
    grows = 1e-7 * SIZES
    noisy = (8e-3 + 2e-8 * SIZES) * np.exp(rng.normal(0, 0.05, len(SIZES)))
    nothing = np.zeros(len(SIZES))
    works = {
        name: ChainWork(seconds, *[nothing] * 4)
        for name, seconds in (("grows", grows), ("hidden", noisy))
    }
    far = {"n": 2.0**21, "p": 1.0}
    found = fit_works(works, WITH_P, VALUES, 0.2)["hidden"].at(far, 0.5)
    truth = 8e-3 + 2e-8 * far["n"]
    assert found.low <= truth <= found.high
    assert abs(found.value / truth - 1) < 0.5
