"""Terms chosen by the program: which formula, and how good where it was not measured."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.experiments.formula import FormulaError, read_formula
from bsplib.profiler.models.fit import fit
from bsplib.profiler.models.nested_regions import distance, regions
from bsplib.profiler.models.select import choose
from bsplib.profiler.models.terms import library, processes_of


def grid(sizes, counts):
    size, count = (each.ravel() for each in np.meshgrid(np.array(sizes, float), counts))
    return {"N": size, "P": np.array(count, float)}


SMALL = grid(2.0 ** np.arange(10, 17), [1, 2, 4, 8])
LARGE = grid(2.0 ** np.arange(18, 21), [16, 64])


def times_of(law, values):
    return read_formula(f"({law})*law[0]").columns(values)[0][:, 0]


@pytest.mark.parametrize(
    "law",
    [
        "1e-9*N*log2(N)/P + 1e-5",
        "2e-5*P + 3e-9*(N/P)*log2(N/P)",
        "1e-9*(N/P)*log2(N/P) + 5e-9*N*(P - 1)/P + 1e-5*log2(P)",
        "1e-12*N**2/P + 4e-9*N",
    ],
)
def test_a_law_is_predicted_far_beyond_its_measurements(law):
    times = times_of(law, SMALL)
    choice = choose(SMALL, times)
    predicted = fit(choice.formula, SMALL, times).predict(LARGE)
    assert predicted == pytest.approx(times_of(law, LARGE), rel=0.05)


def test_noise_adds_no_terms():
    times = times_of("1e-9*N*log2(N)", SMALL | {"P": np.ones(1)})
    noisy = times * (1 + 0.02 * np.random.default_rng(3).standard_normal(len(times)))
    choice = choose({"N": SMALL["N"]}, noisy)
    assert choice.formula == "f[0]*N*log2(N)"


def test_of_formulas_that_are_as_good_the_simplest_is_taken():
    size = 2.0 ** np.arange(4, 12)
    choice = choose({"N": size}, 3e-9 * size)
    assert choice.formula == "f[0]*N"
    assert all(rival.weight >= 2 for rival in choice.rivals)


def test_a_difference_is_one_term_whose_coefficient_is_positive():
    times = times_of("1e-6 + 4e-9*N*(P - 1)/P", SMALL)
    choice = choose(SMALL, times)
    fitted = fit(choice.formula, SMALL, times)
    assert "(P - 1)" in choice.formula
    assert all(value >= 0 for value in fitted.segments[0].coefficients.values())


@pytest.mark.lengthy
def test_two_sizes_may_be_multiplied():
    random = np.random.default_rng(1)
    rows, columns = 2.0 ** random.integers(4, 10, (2, 30))
    choice = choose({"rows": rows, "columns": columns}, 1e-9 * rows * columns)
    assert choice.formula == "f[0]*rows*columns"


def test_an_unusual_term_has_to_predict_much_better_than_a_usual_one():
    size = 2.0 ** np.arange(10, 18)
    noisy = 1e-9 * size * (1 + 0.01 * np.random.default_rng(5).standard_normal(len(size)))
    assert choose({"N": size}, noisy).formula == "f[0]*N"
    bent = 1e-9 * size**1.25
    assert choose({"N": size}, bent).formula == "f[0]*N**1.25"


def test_a_cost_that_rises_to_a_new_level_is_not_taken_for_a_power():
    def law(size):  # an element costs 1 ns in a small cache, and up to 4 ns beyond it
        return 1e-9 * size * (1 + 3 / (1 + (2.0**15 / size) ** 1.5))

    size, far = 2.0 ** np.arange(10, 18), 2.0 ** np.arange(18, 22)
    choice = choose({"N": size}, law(size))
    assert "N**2/(N + " in choice.formula
    predicted = fit(choice.formula, {"N": size}, law(size)).predict({"N": far})
    assert predicted == pytest.approx(law(far), rel=0.15)


def test_levels_are_some_of_the_measured_sizes_of_a_process():
    values = grid(2.0 ** np.arange(10, 17), [1, 4])
    texts = {term.text for term in library(values, "P", levels=True)}
    assert {"(N/P)**2/((N/P) + 65536)", "(N/P)**2*log2(N/P)/((N/P) + 16384)"} <= texts
    assert not [text for text in texts if text.endswith("+ 32768)")]  # too near to the others
    assert not [term for term in library(values, "P") if " + " in term.text]
    assert not [text for text in texts if text.endswith("+ 256)")]  # nothing is far below it


def test_a_rich_law_without_noise_is_found_from_few_processes():
    law = "300 + 20*P + 90*log2(P) + 12*(N/P)*log2(N/P) + 15*N/P + 6*N*(P - 1)/P + 9*(N/P)*log2(P)"
    values = grid(2.0 ** np.arange(4, 10), [1, 2, 4, 8])
    times = times_of(law, values)
    predicted = fit(choose(values, times).formula, values, times).predict(LARGE)
    assert predicted == pytest.approx(times_of(law, LARGE), rel=0.1)


def test_of_formulas_that_are_nearly_as_good_the_one_in_the_middle_is_taken():
    random = np.random.default_rng(8)
    size = 2.0 ** np.arange(10, 18)
    times = 1e-9 * size**1.1 * (1 + 0.05 * random.standard_normal(len(size)))
    choice = choose({"N": size}, times)
    formulas = [choice.formula, *(rival.formula for rival in choice.rivals)]
    assert len(formulas) >= 5
    far = {"N": np.array([2.0**21])}
    predicted = [float(fit(each, {"N": size}, times).predict(far)[0]) for each in formulas]
    assert np.quantile(predicted, 0.2) <= predicted[0] <= np.quantile(predicted, 0.8)


def test_logarithms_are_not_tried_where_values_are_below_one():
    terms = library({"x": np.array([0.1, 1, 10])}, None)
    assert terms
    assert not [term for term in terms if "log" in term.text]


def test_values_below_zero_have_no_roots():
    size = np.array([-4.0, -3, -2, -1, 0, 1, 2, 3])
    choice = choose({"x": size}, 3 + size**2)
    assert fit(choice.formula, {"x": size}, 3 + size**2).predict({"x": 5}) == pytest.approx(28)


def test_the_number_of_processes_is_known_by_its_name():
    assert processes_of(["N", "P"]) == "P"
    assert processes_of(["size", "nprocs"]) == "nprocs"
    assert processes_of(["N", "M"]) is None
    assert processes_of(["p", "threads"]) is None  # which of the two is not known


def test_a_few_points_are_too_few_to_choose_terms():
    with pytest.raises(FormulaError, match=r"2 different points are too few .* measure at least 4"):
        choose({"N": np.array([1.0, 1, 2])}, np.array([1.0, 1, 2]))


# -- regions -----------------------------------------------------------------------------------


def test_regions_leave_out_the_largest_of_one_variable_or_of_several():
    found = regions(SMALL, 4)
    cuts = {(SMALL["N"][inside].max(), SMALL["P"][inside].max()) for inside in found}
    assert (2.0**16, 4.0) in cuts
    assert (2.0**15, 8.0) in cuts
    assert (2.0**14, 4.0) in cuts
    assert (2.0**16, 8.0) not in cuts  # this is no smaller region
    assert min(count for _, count in cuts) == 4  # three values of each stay


def test_distance_counts_in_widths_of_the_region():
    region = {"N": np.array([16.0, 256])}
    away = distance(region, {"N": np.array([4096.0, 256, 64, 8, 16])})
    assert away == pytest.approx([1, 0, 0, 0.25, 0])


def test_what_did_not_vary_in_a_region_is_infinitely_far():
    region = {"N": np.array([16.0, 256]), "P": np.array([2.0, 2])}
    away = distance(region, {"N": np.array([256.0, 256]), "P": np.array([2.0, 4])})
    assert away.tolist() == [0, np.inf]
