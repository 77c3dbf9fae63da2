"""Tuning finds what a parameter trades, and the value that is best on each Machine."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bsplib import UsageError
from bsplib.machine import known_machines, load_machine
from bsplib.profiler.timeline import lay_out
from bsplib.profiler.tune import SweepOptions, find_app, find_trade, judge, parse_parameter, sweep
from bsplib.profiler.tune import table as tables
from bsplib.profiler.tune.best import TuneVerdict, _verdict, measured
from bsplib.profiler.tune.trade_off import trend
from bsplib.recording.trace import read_trace
from bsplib.tools.cli import main as bsp

APP = '''
"""Samples more with a greater grain, and then works more evenly."""

import click

from bsplib.apps.command import ProgramRun, place_options


def sample(bsp, grain):
    bsp.charge(grain * 1e-4 if bsp.pid == 0 else 0.0)
    if bsp.pid:
        bsp.send(0, bytes(8 * grain))
    bsp.sync()


def exchange(bsp, grain):
    excess = 400_000 // grain if bsp.pid == 0 else 0
    bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(100_000 + excess))
    bsp.sync()


def work(bsp, grain):
    bsp.charge(1e-3 + (0.01 / grain if bsp.pid == 0 else 0.0))
    bsp.sync()


def main(bsp, grain):
    sample(bsp, grain)
    exchange(bsp, grain)
    work(bsp, grain)


@click.command()
@click.option("--grain", default=4, type=click.IntRange(1, 4096))
@click.option("--share", default=0.5)
@click.option("--fast/--slow")
@click.option("--word", default="a")
@click.option("--fail", default=99)
@place_options
def command(grain, share, fast, word, fail, place: ProgramRun):
    print("a line that nobody wants to see")
    if grain >= fail:
        raise click.ClickException(f"a grain of {grain} is more than there is")
    place.run(main, grain)
'''
VALUES = (1, 2, 4, 8, 16, 32, 64)
MACHINE = "ibm-sp2-pvm"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("app") / "trading_app.py"
    file.write_text(APP, encoding="utf-8")
    before = list(sys.path)
    yield file
    sys.path[:] = before
    sys.modules.pop("trading_app", None)


@pytest.fixture(scope="module")
def app(path):
    return find_app(str(path))


@pytest.fixture(scope="module")
def points(app):
    parameter = parse_parameter("grain=1:64:x2")
    return sweep(app, parameter, SweepOptions(nprocs=4, backend="sim", machine=MACHINE))


def cost(machine, grain, nprocs=4, ratio=1.0):
    """What a run of the application costs, reckoned by hand."""
    w = grain * 1e-4 + (1e-3 + 0.01 / grain)
    excess = 400_000 // grain
    if machine.h == "sum":
        h = 8 * grain * (nprocs - 1) + 200_000 + excess
    else:
        h = 8 * grain * (nprocs - 1) + 100_000 + excess
    return w * ratio + machine.g * h + 3 * machine.l


# -- the parameter ---------------------------------------------------------------------------------


class TestRange:
    @given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 9))
    def test_steps_are_those_of_a_range_with_its_end(self, first, length, step):
        found = parse_parameter(f"n={first}:{first + length}:+{step}")
        assert found.values == tuple(range(first, first + length + 1, step))
        assert not found.geometric

    @given(st.integers(1, 50), st.integers(0, 5000), st.integers(2, 9))
    def test_multiples_go_as_far_as_the_end(self, first, length, factor):
        values = parse_parameter(f"n={first}:{first + length}:x{factor}").values
        assert values[0] == first
        assert all(after == factor * before for before, after in pairwise(values))
        assert values[-1] <= first + length < factor * values[-1]

    def test_values_that_are_equal_multiples_of_each_other_are_geometric(self):
        assert parse_parameter("n=1:8:x2").geometric
        assert parse_parameter("n=4,1,2").geometric
        assert not parse_parameter("n=1,2,5").geometric
        assert not parse_parameter("n=1:1").geometric

    def test_without_a_step_all_integers_are_meant(self):
        assert parse_parameter("n=3:7").values == (3, 4, 5, 6, 7)

    @pytest.mark.parametrize("name", ["sample-size", "sample_size", "--sample-size"])
    def test_a_name_may_be_written_in_any_way(self, name):
        assert parse_parameter(f"{name}=1:2").option == "--sample-size"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "'' is not a parameter with values; write NAME=A:B"),
            ("grain", "'grain' is not a parameter with values"),
            ("=1:4", "'=1:4' is not a parameter with values"),
            ("grain=1:4:2", "--set grain '1:4:2': write the step as \\+2 or x2"),
            ("grain=a:4", "--set grain 'a:4': 'a' is no number"),
            ("grain=1:4.5:+0.5", "--set grain '1:4.5:\\+0.5' has to have integers only"),
            ("grain=5:4", "--set grain '5:4' is no rising range"),
            ("grain=1:4:x1", "is no rising range"),
            ("grain=0:4:x2", "is no rising range"),
            ("grain=1:4:+0", "is no rising range"),
            ("grain=1:5000", "has more than 1000 values"),
        ],
    )
    def test_what_has_no_values_is_told(self, text, message):
        with pytest.raises(UsageError, match=message):
            parse_parameter(text)


# -- the application -------------------------------------------------------------------------------


class TestApplication:
    def test_it_may_be_a_module(self):
        app = find_app("bsplib.apps.sorting.bitonic_sort")
        app.check(parse_parameter("size=1:4"))

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("bsplib.apps.nothing", "there is no module bsplib.apps.nothing"),
            ("nothing.at.all", "there is no module nothing.at.all"),
            ("", "'' is no name of a module"),
            (".apps", "'.apps' is no name of a module"),
            ("no/such/file.py", "there is no file no/such/file.py"),
            ("bsplib.apps.command", "bsplib.apps.command has no click command named 'command'"),
        ],
    )
    def test_one_that_is_not_there_is_told(self, name, message):
        with pytest.raises(UsageError, match=message):
            find_app(name)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("nothing=1:2", "has no option --nothing with a value; it has --grain, --share"),
            ("fast=1:2", "has no option --fast with a value"),
            ("share=1:2", "--share of .* does not take integers; its type is float"),
            ("word=1:2", "--word of .* does not take integers; its type is text"),
            ("grain=0:2", "does not take --grain 0: 0 is not in the range"),
            ("grain=4000:4200", "does not take --grain 4097"),
            ("backend=1:2", "does not take --backend 1"),
        ],
    )
    def test_a_parameter_that_it_does_not_have_is_told(self, app, text, message):
        with pytest.raises(UsageError, match=message):
            app.check(parse_parameter(text))

    def test_an_option_that_takes_words_as_well_is_one(self):
        find_app("bsplib.apps.sorting.sample_sort").check(parse_parameter("oversampling=4:4096:x2"))

    def test_the_options_that_it_lacks_are_named_with_the_way_out(self, tmp_path):
        path = tmp_path / "bare.py"
        path.write_text(
            "import click\n\n\n@click.command()\n@click.option('--grain', default=1)\n"
            "@click.option('--nprocs', default=2)\ndef command(grain, nprocs):\n    pass\n"
        )
        result = tune(str(path), "--set", "grain=1:2", "-n", 2, "--backend", "sim")
        assert result.exit_code == 1
        assert (
            "bare.py has no option --backend and no --machine and no --profile, which each run is "
            "given; let its command take --backend, --machine, --profile and pass" in result.output
        )

    def test_what_it_lacks_itself_is_not_said_to_be_its_own_lack(self, tmp_path, monkeypatch):
        (tmp_path / "lacking_app.py").write_text("import no_such_library_at_all\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ModuleNotFoundError, match="no_such_library_at_all"):
            find_app("lacking_app")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--fail", "4", "--grain", "4"], "--grain 4: a grain of 4 is more than there is"),
            (["--nothing"], "--nothing: No such option"),
            (["--nprocs", "5000", "--backend", "sim"], "nprocs is 5000; it may be 1 to 4096"),
            (["--help"], "--help recorded 0 runs; an application that is tuned has"),
        ],
    )
    def test_an_end_that_is_not_well_is_told(self, app, tmp_path, arguments, message):
        with pytest.raises(UsageError, match=message):
            app.run(arguments, tmp_path / "trace.bsp")

    def test_it_runs_silently_and_its_trace_says_how_it_was_called(self, app, tmp_path, capfd):
        line = ["--grain", "3", "--backend", "sim", "--nprocs", "2"]
        run = app.run(line, tmp_path / "trace.bsp")
        assert run.meta["arguments"][: len(line)] == line
        assert run.meta["program"] == "trading_app.py"
        assert capfd.readouterr() == ("", "")


# -- the runs --------------------------------------------------------------------------------------


class TestSweep:
    def test_there_is_a_run_for_every_value(self, points):
        assert tuple(point.value for point in points) == VALUES
        for point in points:
            assert point.run.nprocs == 4
            assert f"--grain {point.value} " in " ".join(point.run.meta["arguments"])

    def test_every_value_costs_what_is_reckoned_by_hand(self, points):
        machine = load_machine(MACHINE)
        for point in points:
            assert point.machine == machine
            assert point.total_s == pytest.approx(cost(machine, point.value), rel=1e-6)
            assert point.measured_s == pytest.approx(point.total_s, rel=1e-6)

    def test_progress_is_told_of_every_run(self, app):
        told = []
        options = SweepOptions(nprocs=2, backend="sim", repeats=2)
        sweep(app, parse_parameter("grain=1:3"), options, lambda: told.append(1))
        assert len(told) == 1 + 2 * 3

    def test_traces_are_kept_if_asked(self, app, tmp_path):
        folder = tmp_path / "traces"
        options = SweepOptions(nprocs=2, backend="sim", repeats=2, keep=folder)
        for _ in range(2):  # a second time they are replaced
            sweep(app, parse_parameter("grain=1:2"), options)
        names = ["grain-1-2.bsp", "grain-1.bsp", "grain-2-2.bsp", "grain-2.bsp"]
        assert sorted(file.name for file in folder.iterdir()) == names
        for name in names:
            (run,) = read_trace(folder / name).runs
            assert run.nprocs == 2

    def test_a_folder_that_cannot_be_is_told(self, app, tmp_path):
        options = SweepOptions(nprocs=2, backend="sim", keep=tmp_path / "no" / "folder")
        with pytest.raises(UsageError, match="cannot be created: No such file"):
            sweep(app, parse_parameter("grain=1:2"), options)

    def test_of_every_computation_the_least_of_all_runs_counts(self, app, monkeypatch):
        """Each further run charges more in one superstep, and less in the other."""
        module = sys.modules["trading_app"]
        grains = iter((1, 2, 40, 5))
        inside = module.main
        monkeypatch.setattr(module, "main", lambda bsp, grain: inside(bsp, next(grains)))
        options = SweepOptions(nprocs=1, backend="sim", repeats=3)
        (point,) = sweep(app, parse_parameter("grain=1:1"), options)
        # The first run warms up. Of the others grain 2 samples least, grain 40 works least.
        assert point.total_s == pytest.approx(2 * 1e-4 + 1e-3 + 0.01 / 40)
        assert point.measured_s == pytest.approx(min(cost_alone(grain) for grain in (2, 40, 5)))

    def test_runs_that_made_other_supersteps_are_not_mixed(self, app, monkeypatch):
        module = sys.modules["trading_app"]
        grains = iter((1, 2, 40, 5))
        inside = module.main

        def main(bsp, grain):
            grain = next(grains)
            bsp.charge(0.0)
            if grain == 5:
                bsp.sync()
            inside(bsp, grain)

        monkeypatch.setattr(module, "main", main)
        options = SweepOptions(nprocs=1, backend="sim", repeats=3)
        (point,) = sweep(app, parse_parameter("grain=1:1"), options)
        best = min(cost_alone(grain) for grain in (2, 40, 5))
        assert point.total_s == point.measured_s == pytest.approx(best)

    @pytest.mark.lengthy
    def test_real_processes_are_tuned_as_well(self, app):
        found = sweep(app, parse_parameter("grain=1:64:x8"), SweepOptions(nprocs=3, backend="shm"))
        trade = find_trade(found)
        evened = {centre.function for centre in trade.evened["h"]}  # times vary, h does not
        assert "exchange" in evened
        assert "sample" not in evened
        assert all(point.measured_s > 0 for point in found)


def cost_alone(grain):
    """Of a run on one process, on a Machine where communication is free."""
    return grain * 1e-4 + 1e-3 + 0.01 / grain


# -- the trade -------------------------------------------------------------------------------------


def functions(centres):
    return [centre.function for centre in centres]


class TestTrade:
    def test_it_is_found_who_pays_and_who_gains_by_what(self, points):
        trade = find_trade(points)
        assert functions(trade.pays) == ["sample"]
        assert functions(trade.evened["h"]) == ["exchange"]
        assert functions(trade.evened["comp"]) == ["work"]
        assert functions(trade.gains) == ["exchange", "work"]
        assert functions(trade.rest) == ["main"]

    def test_the_costs_of_both_sides_are_those_of_the_traces(self, points):
        trade = find_trade(points)
        machine = load_machine(MACHINE)
        for grain, pays, gains in zip(
            VALUES, trade.of(trade.pays), trade.of(trade.evened["h"]), strict=True
        ):
            assert pays.h.maximum == 24 * grain
            assert pays.comp.maximum == pytest.approx(grain * 1e-4)
            assert pays.seconds == pytest.approx(
                grain * 1e-4 + machine.g * 24 * grain + machine.l, rel=1e-6
            )
            excess = 400_000 // grain
            assert gains.imbalance("h") == pytest.approx(
                (100_000 + excess) / (100_000 + 2 * excess / 4)  # both ends of it have it
            )

    def test_all_parts_add_up_to_the_whole(self, points):
        trade = find_trade(points)
        parts = [trade.of(centres) for centres in (trade.pays, trade.gains, trade.rest)]
        for point, *costs in zip(points, *parts, strict=True):
            assert sum(cost.seconds for cost in costs) == pytest.approx(point.total_s)

    def test_balance_is_one_where_there_is_nothing(self, points):
        trade = find_trade(points)
        assert [costs.imbalance("h") for costs in trade.of(trade.rest)] == [1.0] * len(VALUES)

    def test_one_value_trades_nothing(self, points):
        trade = find_trade(points[:1])
        assert (trade.pays, trade.gains) == ((), ())

    def test_in_the_other_order_the_other_side_pays(self, points):
        """What gets more even as the grain grows gets dearer as it falls."""
        trade = find_trade(points[::-1])
        assert functions(trade.pays) == ["exchange", "work"]
        assert functions(trade.evened["comp"]) == ["sample"]

    @pytest.mark.parametrize(
        ("amounts", "tau"),
        [([1, 2, 3], 1), ([3, 2, 1], -1), ([1, 1, 1], 0), ([1, 3, 2, 4], 2 / 3), ([5], 0)],
    )
    def test_a_trend_is_kendalls_tau(self, amounts, tau):
        assert trend(np.array(amounts, float)) == pytest.approx(tau)


# -- the best --------------------------------------------------------------------------------------


class TestBest:
    def test_every_machine_with_an_l_is_priced_by_the_formula(self, points):
        for verdict in judge(points):
            machine = load_machine(verdict.name)
            if machine.l is None or machine.l < 0:
                assert verdict.totals_s == ()
                continue
            ratio = verdict.ratio or 1.0
            expected = [cost(machine, grain, ratio=ratio) for grain in VALUES]
            assert verdict.totals_s == pytest.approx(expected, rel=1e-6)
            assert verdict.best == VALUES[int(np.argmin(expected))]

    def test_all_of_the_database_are_there_and_that_of_the_runs_is_first(self, points):
        names = [verdict.name for verdict in judge(points)]
        assert names[0] == MACHINE
        assert sorted(names) == known_machines()

    def test_a_machine_with_figures_of_ones_own_is_another_one_than_that_of_its_name(self, app):
        options = SweepOptions(nprocs=4, backend="sim", machine="ideal:g=1e-6,l=1e-3")
        points = sweep(app, parse_parameter("grain=1:2"), options)
        own, *others = judge(points)
        assert own.name == "ideal as given"
        assert own.totals_s == tuple(point.total_s for point in points)
        (ideal,) = [verdict for verdict in others if verdict.name == "ideal"]
        assert max(ideal.totals_s) < min(own.totals_s)

    def test_a_machine_of_ones_own_comes_before_those_of_the_database(self, app, tmp_path):
        file = tmp_path / "mine.toml"
        file.write_text(
            'name = "mine"\nsource = "made up"\ng_s_per_byte = 1e-9\nl_s = 1e-6\n', "utf-8"
        )
        options = SweepOptions(nprocs=2, backend="sim", machine=str(file))
        names = [
            verdict.name for verdict in judge(sweep(app, parse_parameter("grain=1:2"), options))
        ]
        assert names == ["mine", *known_machines()]

    def test_the_dearer_communication_is_the_finer_is_the_best(self, points):
        best = {verdict.name: verdict.best for verdict in judge(points) if verdict.totals_s}
        assert (best["ideal"], best[MACHINE], best["coaxial-lan-pvm"]) == (8, 16, 64)

    def test_speeds_scale_computation_where_both_are_known(self, app, tmp_path):
        options = []
        for speed in (1e8, 4e8):
            file = tmp_path / f"{speed:g}.toml"
            file.write_text(
                f'name = "{speed:g}"\nsource = "made up"\ng_s_per_byte = 0.0\nl_s = 0.0\n'
                f"speed_flop_per_s = {speed}\n",
                "utf-8",
            )
            options.append(file)
        parameter = parse_parameter("grain=1:2")
        points = sweep(
            app, parameter, SweepOptions(nprocs=1, backend="sim", machine=str(options[0]))
        )
        timelines = [lay_out(point.run) for point in points]
        slow, fast = (
            _verdict(str(file), load_machine(str(file)), points, timelines) for file in options
        )
        assert (slow.ratio, fast.ratio) == (1.0, 0.25)
        assert slow.totals_s == pytest.approx([4 * total for total in fast.totals_s])

    def test_values_within_two_percent_are_as_good(self):
        verdict = TuneVerdict("x", (1, 2, 3, 4), (1.03, 1.0, 1.019, 5.0))
        assert (verdict.best, verdict.near) == (2, (3,))

    def test_of_equal_ones_the_least_value_is_the_best(self):
        assert TuneVerdict("x", (1, 2, 3), (2.0, 1.0, 1.0)).best == 2

    def test_what_was_measured_has_a_best_as_well(self, points):
        took = [cost(load_machine(MACHINE), grain) for grain in VALUES]
        assert measured(points).best == VALUES[int(np.argmin(took))] == 16

    @pytest.mark.parametrize(
        ("totals", "text"),
        [
            ((3.0, 1.0, 2.0), "Best on x: grain = 2"),
            ((3.0, 1.0, 1.01), "Best on x: grain = 2 (equally good: 3)"),
            ((1.0, 2.0, 3.0), "Best on x: grain = 1; this is an end of the range, and"),
        ],
    )
    def test_the_conclusion_says_how_sure_it_is(self, totals, text):
        said = tables.conclusion("grain", TuneVerdict("x", (1, 2, 3), totals))
        assert said.startswith(text)
        assert ("end of the range" in said) == ("end of the range" in text)


# -- the command -----------------------------------------------------------------------------------


def tune(*line):
    return CliRunner().invoke(bsp, ["tune", *map(str, line)], terminal_width=100)


LINE = ["--set", "grain=1:64:x2", "--nprocs", "4", "--backend", "sim", "--machine", MACHINE]


class TestCommand:
    def test_it_prints_the_trade_and_names_the_best(self, path):
        result = tune(path, *LINE, "--repeats", 1)
        assert result.exit_code == 0, result.output
        output = " ".join(result.output.split())
        assert "With a greater grain these cost more: sample (trading_app.py line 13)" in output
        assert "a more balanced h-relation: exchange (trading_app.py line 19)" in output
        assert "a more balanced computation: work (trading_app.py line 24)" in output
        for name in known_machines():
            assert name in output
        assert "Not priced, because l is not known: cray-t3e-mpi" in output
        assert f"Best on {MACHINE}: grain = 16" in output
        assert "nobody wants to see" not in output

    @pytest.mark.parametrize("width", ["60", "80", "200"])
    def test_every_value_has_its_row_however_wide_the_terminal_is(self, path, width, monkeypatch):
        monkeypatch.setenv("COLUMNS", width)
        rows = [line.split() for line in tune(path, *LINE, "--repeats", 1).output.splitlines()]
        assert [row[0] for row in rows if row and row[0].isdecimal()] == list(map(str, VALUES))

    @pytest.mark.parametrize("ending", ["png", "svg"])
    @pytest.mark.lengthy
    def test_it_draws(self, path, tmp_path, ending):
        file = tmp_path / f"plot.{ending}"
        result = tune(path, *LINE, "--repeats", 1, "--plot", file)
        assert result.exit_code == 0, result.output
        assert f"drawn in {file}" in result.output
        assert file.stat().st_size > 10_000

    def test_further_options_go_to_the_application(self, path):
        result = tune(path, *LINE, "--repeats", 1, "--", "--fail", "16")
        assert result.exit_code == 1
        assert "--grain 16: a grain of 16 is more than there is" in result.output

    @pytest.mark.lengthy
    def test_the_sort_trades_the_sample_against_the_exchange(self):
        """Stages 2 and 3 against stage 6, as in the paper."""
        result = tune(
            "bsplib.apps.sorting.sample_sort",
            *("--set", "oversampling=1:256:x4", "--nprocs", 8, "--backend", "sim"),
            *("--repeats", 1, "--", "--size", 20000),
        )
        assert result.exit_code == 0, result.output
        more, even = result.output.split("With a greater oversampling these")[1:3]
        assert "collect" in more
        assert "have a more balanced h-relation" in even
        assert "exchange" in even

    @pytest.mark.lengthy
    def test_an_application_without_a_trade_is_drawn_as_well(self, tmp_path):
        file = tmp_path / "plot.png"
        result = tune(
            "bsplib.apps.broadcast",
            *("--set", "size=8:8", "--nprocs", 2),
            *("--backend", "sim", "--repeats", 1, "--plot", file),
            *("--", "--onestage", 1, "--twostage", 1),
        )
        assert result.exit_code == 0, result.output
        assert (
            "No cost centre clearly costs more or becomes more balanced as size grows."
            in result.output
        )
        assert file.stat().st_size > 10_000

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (["bsplib.apps.nothing", *LINE], "there is no module bsplib.apps.nothing"),
            (["bsplib.apps.broadcast", *LINE], "bsplib.apps.broadcast has no option --grain"),
            (["bsplib.apps.broadcast", "--set", "size=9:2"], "--set size '9:2' is no rising range"),
            (
                ["bsplib.apps.broadcast", "--set", "size=a:2"],
                "--set size 'a:2': 'a' is no number",
            ),
            (
                ["bsplib.apps.broadcast", "--set", "size=1:2", "--plot", "x.doc"],
                "no suffix of a",
            ),
            (
                ["bsplib.apps.broadcast", "--set", "size=1:1", "--machine", "cray-t3e-mpi"],
                "Cray T3E, MPI has no l",
            ),
        ],
    )
    def test_what_cannot_be_is_one_sentence(self, line, message):
        result = tune(*line)
        assert result.exit_code == 1
        assert message in result.output
        assert len(result.output.splitlines()) == 1
