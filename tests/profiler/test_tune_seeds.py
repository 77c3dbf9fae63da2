"""Tuning over several seeds, with what theory demands, and against the measurement."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from bsplib.profiler.tune import table as tables
from bsplib.profiler.tune.app import find_app
from bsplib.profiler.tune.best import TuneVerdict
from bsplib.profiler.tune.outcome import Tuning
from bsplib.profiler.tune.parameter import parse_parameter
from bsplib.profiler.tune.seeds import SeedBand, SeedSpread, find_spread, mean_verdicts, sweep_seeds
from bsplib.profiler.tune.sweep import SweepOptions
from bsplib.profiler.tune.trade_off import find_trade
from bsplib.tools.cli import main as bsp
from tests.undisturbed import undisturbed

APP = '''
"""Sends less to process 1 with a greater grain, and by its seed more."""

import click

from bsplib.apps.command import ProgramRun, place_options

THEORY = {"grain": lambda options: 10 * options["nprocs"] + options["share"]}


def main(bsp, grain, seed):
    bsp.charge(grain * 1e-4)
    if bsp.pid == 0:
        bsp.send(1, bytes(3000 // grain + 100 * seed))
    bsp.sync()


@click.command()
@click.option("--grain", default=4)
@click.option("--share", default=5)
@click.option("--seed", default=7)
@place_options
def command(grain, share, seed, place: ProgramRun):
    place.run(main, grain, seed)
'''
VALUES = (1, 2, 4)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("app") / "seeded_app.py"
    file.write_text(APP, encoding="utf-8")
    before = list(sys.path)
    yield file
    sys.path[:] = before
    sys.modules.pop("seeded_app", None)


@pytest.fixture(scope="module")
def sweeps(path):
    parameter = parse_parameter("grain=1:4:x2")
    options = SweepOptions(nprocs=2, backend="sim", machine="shared-memory")
    return undisturbed(lambda: sweep_seeds(find_app(str(path)), parameter, options, 3))


def tune(*line):
    return CliRunner().invoke(bsp, ["tune", *map(str, line)], terminal_width=100)


def test_every_seed_has_a_sweep_of_its_own(sweeps):
    assert [[point.value for point in points] for points in sweeps] == [list(VALUES)] * 3
    commands = [points[0].run.meta["arguments"] for points in sweeps]
    assert [argv[argv.index("--seed") + 1] for argv in commands] == ["0", "1", "2"]


def test_traces_of_seeds_are_kept_apart(path, tmp_path):
    options = SweepOptions(nprocs=2, backend="sim", keep=tmp_path / "all")
    sweep_seeds(find_app(str(path)), parse_parameter("grain=1:2"), options, 2)
    kept = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.bsp"))
    assert kept == [f"all/seed-{seed}/grain-{value}.bsp" for seed in (0, 1) for value in (1, 2)]


def test_bands_hold_the_least_the_middle_and_the_greatest_over_the_seeds(sweeps):
    spread = find_spread(sweeps, find_trade(sweeps[0]))
    for number, value in enumerate(VALUES):
        totals = sorted(points[number].total_s for points in sweeps)
        assert spread.total_s[number] == SeedBand(*totals)
        assert totals[2] - totals[0] == pytest.approx(200 * 4.8e-10)
        assert totals[0] == pytest.approx(value * 1e-4 + 3000 // value * 4.8e-10 + 1.7e-6)


def test_a_band_that_overlaps_with_that_of_a_neighbour_is_unclear():
    bands = (
        SeedBand(1.3, 1.4, 1.5),
        SeedBand(1.1, 1.2, 1.4),
        SeedBand(1.05, 1.06, 1.08),
        SeedBand(1, 1.01, 1.02),
    )
    spread = SeedSpread((1, 2, 4, 8), 3, "h", bands, bands)
    assert spread.unclear == (1, 2)


@pytest.mark.lengthy
def test_the_bands_of_sample_sort_overlap_at_few_samples():
    """max/avg of h at s = 8 differs by more over the seeds than s = 4 and s = 16 do."""
    app = find_app("bsplib.apps.sorting.sample_sort")
    options = SweepOptions(nprocs=16, backend="sim", arguments=("--size", "16384"))
    swept = sweep_seeds(app, parse_parameter("oversampling=4:16:x2"), options, 10)
    spread = find_spread(swept, find_trade(swept[0]))
    assert spread.imbalance[1].width > 0.06
    assert 1.0 < spread.imbalance[1].least < 1.12 < spread.imbalance[1].greatest < 1.3


def test_costs_are_means_over_the_seeds():
    one, two = TuneVerdict("x", (1, 2), (1.0, 2.0)), TuneVerdict("x", (1, 2), (3.0, 2.0))
    gap = TuneVerdict("y", (1, 2), ())
    assert mean_verdicts([[one, gap], [two, gap]]) == [TuneVerdict("x", (1, 2), (2.0, 2.0)), gap]


def test_theory_knows_the_options_and_the_number_of_processes(path):
    app = find_app(str(path))
    grain, seed = parse_parameter("grain=1:2"), parse_parameter("seed=1:2")
    assert app.demanded(grain, (), 4) == 45
    assert app.demanded(grain, ("--share", "6"), 4) == 46
    assert app.demanded(seed, (), 4) is None


@pytest.mark.lengthy
def test_the_command_shows_the_band_and_theory(path, tmp_path):
    file = tmp_path / "plot.png"
    line = ["--set", "grain=1:4:x2", "-n", 2, "--backend", "sim", "--plot", file]
    result = tune(path, *line)
    assert result.exit_code == 0, result.output
    for text in ("Over 5 seeds", "median", "Theory demands grain = 25, which is outside"):
        assert text in result.output
    assert "shared-memory (of the runs)" in result.output
    assert file.stat().st_size > 10_000


def test_one_seed_shows_no_band(path):
    line = ["--set", "grain=1:4:x2", "-n", 2, "--backend", "sim", "--seeds", 1]
    result = tune(path, *line)
    assert result.exit_code == 0, result.output
    assert "seeds" not in result.output


def test_an_application_without_a_seed_has_one(path):
    line = ["--set", "size=8:8", "-n", 2, "--backend", "sim", "--seeds", 3]
    result = tune("bsplib.apps.broadcast", *line)
    assert result.exit_code == 1
    assert "bsplib.apps.broadcast has no option --seed, and so only one seed" in result.output


@pytest.mark.parametrize(
    ("model", "took", "disagrees"),
    [
        ((1.0, 2.0, 3.0), (3.0, 2.0, 1.0), True),
        ((1.0, 2.0, 3.0), (1.1, 2.0, 3.0), False),
        ((1.0, 1.01, 3.0), (1.5, 1.0, 3.0), False),
        ((), (3.0, 2.0, 1.0), False),
    ],
)
def test_model_and_measurement_disagree_where_no_value_is_good_for_both(
    sweeps, model, took, disagrees
):
    trade = find_trade(sweeps[0])
    verdict, measured = TuneVerdict("x", VALUES, model), TuneVerdict("as measured", VALUES, took)
    parameter = parse_parameter("grain=1:4:x2")
    spread = find_spread(sweeps, trade)
    tuning = Tuning(parameter, sweeps[0], trade, spread, [verdict], measured)
    assert tuning.disagrees == disagrees
    if disagrees:
        said = tables.disagreement("grain", verdict, measured)
        assert "the measured times choose grain = 4, the model 1, with which the runs" in said
        assert "took 200% longer" in said
