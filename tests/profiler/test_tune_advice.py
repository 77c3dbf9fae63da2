"""What bsp tune says of its table: what is told apart, what helps, what splitters predict."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from click.testing import CliRunner

from bsplib.profiler.tune import table as tables
from bsplib.profiler.tune.app import find_app
from bsplib.profiler.tune.balance import find_balance, predict_balance, samples_of
from bsplib.profiler.tune.best import TuneVerdict, advise
from bsplib.profiler.tune.parameter import parse_parameter
from bsplib.profiler.tune.seeds import confirmed, find_spread, sweep_seeds
from bsplib.profiler.tune.sweep import SweepOptions
from bsplib.profiler.tune.trade_off import find_trade
from bsplib.tools.cli import main as bsp

SORT = '''
"""A sample sort that cuts at values of keys, so that equal keys stay together."""

import click
import numpy as np

from bsplib.apps.command import ProgramRun, place_options


def main(bsp, size, factor, distinct, seed):
    rng = bsp.rng(seed)
    keys = np.sort(rng.integers(0, distinct, size // bsp.nprocs))
    bsp.charge(len(keys) * 1e-8)
    sample = sum(map(list, bsp.allgather(rng.choice(keys, factor))), [])
    splitters = np.sort(sample)[factor::factor][: bsp.nprocs - 1]
    for pid, part in enumerate(np.split(keys, np.searchsorted(keys, splitters, "right"))):
        bsp.send(pid, part)
    bsp.sync()
    bsp.charge(sum(len(part) for _, _, part in bsp.messages()) * 1e-8)


@click.command()
@click.option("--size", default=8000)
@click.option("--factor", default=4)
@click.option("--distinct", default=2**60)
@click.option("--seed", default=0)
@place_options
def command(size, factor, distinct, seed, place: ProgramRun):
    place.run(main, size, factor, distinct, seed)
'''


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("app") / "cutting_sort.py"
    file.write_text(SORT, encoding="utf-8")
    before = list(sys.path)
    yield file
    sys.path[:] = before
    sys.modules.pop("cutting_sort", None)


def tune(*line):
    done = CliRunner().invoke(bsp, ["tune", *map(str, line)], terminal_width=100)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


# -- what is told apart ---------------------------------------------------------------------------


def test_costs_that_overlap_with_those_of_the_best_are_not_told_apart():
    advice = advise((1, 2, 4), [(1.0, 1.3, 2.0), (1.2, 1.1, 2.1), (1.1, 1.4, 2.2)])
    assert (advice.best, advice.wins, advice.alike) == (1, 2, (2,))
    assert not advice.is_open


def test_one_seed_tells_values_apart_that_differ_by_more_than_two_percent():
    advice = advise((1, 2, 4), [(1.0, 1.01, 1.03)])
    assert advice.alike == (2,)
    assert advise((1, 2), [(1.0, 1.02)]).is_open
    assert not advise((1,), [(1.0,)]).is_open


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [(1.0, 1.3), (1.3, 1.1)],
            "These values cannot be told apart on x: the costs of all overlap over the seeds with "
            "those of grain = 1.",
        ),
        (
            [(1.0, 1.01)],
            "These values cannot be told apart on x: the costs of all are within 2%",
        ),
        ([(1.0, 2.0), (1.1, 2.1)], "Best on x: grain = 1, the cheapest with 2 of 2 seeds"),
    ],
)
def test_a_recommendation_has_its_doubt(rows, said):
    totals = tuple(float(np.mean(each)) for each in zip(*rows, strict=True))
    verdict = TuneVerdict("x", (1, 2), totals)
    assert tables.conclusion("grain", verdict, advise((1, 2), rows)).startswith(said)


# -- what helps -----------------------------------------------------------------------------------


@pytest.mark.lengthy
def test_of_five_distinct_keys_no_factor_helps(path):
    said = tune(
        *(path, "--set", "factor=2:32:x4", "-n", 16, "--backend", "sim", "--seeds", 3),
        *("--", "--distinct", 5),
    )
    assert (
        "No factor helps: the keys are not divided any further: at most 5 of 16 processes receive "
        "anything in main (cutting_sort.py line 18), as with 5 distinct keys."
    ) in said
    assert "the balance of all cost centres" in said
    assert "have a more balanced h-relation" not in said
    assert "Best on" not in said


@pytest.mark.lengthy
def test_what_is_even_is_not_said_to_become_more_balanced():
    """On two processes with one Machine's chance alone, max/avg of h is 1.00 throughout."""
    app = find_app("bsplib.apps.sorting.sample_sort")
    options = SweepOptions(nprocs=2, backend="sim", arguments=("--size", "4096"))
    sweeps = sweep_seeds(app, parse_parameter("oversampling=1:64:x8"), options, 3)
    trade = confirmed(find_trade(sweeps[0]), sweeps)
    spread = find_spread(sweeps, trade)
    for centre in trade.evened["h"]:
        first, *_, last = (costs.imbalance("h") for costs in trade.costs[centre])
        assert first - last >= 0.01
    assert spread.found == any(trade.evened.values())


@pytest.mark.lengthy
def test_a_centre_that_evens_with_some_seeds_only_does_not_count(path):
    options = SweepOptions(nprocs=8, backend="sim", arguments=("--distinct", "3"))
    sweeps = sweep_seeds(find_app(str(path)), parse_parameter("factor=2:32:x4"), options, 3)
    assert not any(confirmed(find_trade(sweeps[0]), sweeps).evened["h"])


# -- what splitters predict -----------------------------------------------------------------------


@pytest.mark.parametrize(("samples", "p"), [(1, 4), (8, 16), (64, 64)])
def test_the_shares_between_splitters_scatter_as_order_statistics_do(samples, p):
    rng = np.random.default_rng(5)
    found = []
    for _ in range(200):
        cuts = np.sort(rng.random(samples * p))[samples - 1 : -1 : samples][: p - 1]
        found.append(p * np.diff([0, *cuts, 1]).max())
    band = predict_balance(samples, p, 0)
    assert band.median == pytest.approx(np.median(found), rel=0.07)
    inside = np.mean([band.least <= each <= band.greatest for each in found])
    assert 0.8 < inside < 0.99


def test_the_samples_between_splitters_are_found_in_the_scatter_of_one_run():
    rng = np.random.default_rng(3)
    found = [samples_of(rng.dirichlet(np.full(32, 8.0))) for _ in range(200)]
    assert np.median(found) == pytest.approx(8, rel=0.1)
    assert samples_of(np.ones(4)) is None


def test_shares_are_even_where_all_keys_are_samples():
    assert predict_balance(np.inf, 8, 0) == (1, 1, 1)
    assert predict_balance(1.0, 1, 0) == (1, 1, 1)


@pytest.mark.lengthy
def test_the_balance_of_every_factor_is_predicted_before_its_runs(path):
    options = SweepOptions(nprocs=16, backend="sim")
    sweeps = sweep_seeds(find_app(str(path)), parse_parameter("factor=2:32:x4"), options, 3)
    balance = find_balance(sweeps, None)
    assert balance is not None
    assert (balance.fitted, balance.receivers, balance.helpless) == (True, 16, "")
    assert balance.inside == 3
    (p4, medians), *_ = balance.elsewhere
    assert p4 == 4
    assert list(medians) == sorted(medians, reverse=True)


def test_the_sample_sort_says_how_many_samples_lie_between_its_pivots():
    app = find_app("bsplib.apps.sorting.sample_sort")
    samples = app.samples_between(parse_parameter("oversampling=1:2"), ("--size", "4096"))
    assert samples is not None
    assert samples(4, 8) == pytest.approx(4 * 8 / (1 - 256 / 4096))
    assert samples(64, 8) == np.inf


@pytest.mark.lengthy
def test_the_table_has_prediction_beside_measurement_and_theory_its_reason():
    said = tune(
        *("bsplib.apps.sorting.sample_sort", "--set", "oversampling=1:64:x8", "-n", 8),
        *("--backend", "sim", "--seeds", 3, "--", "--size", 8192),
    )
    assert "max/avg: predicted from the samples that the program draws, and measured" in said
    assert "The same predicted for other numbers of processes" in said
    assert "Of 3 measured medians over 3 seeds 3 are in the predicted range" in said
    assert "with it the chance that any process gets more than 1.1 times its share" in said
