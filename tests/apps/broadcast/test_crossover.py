"""The crossover of broadcasts is as predicted, if communication costs what the Machine says."""

from __future__ import annotations

import math

import pytest
from click.testing import CliRunner

import bsplib
from bsplib import Machine
from bsplib.apps.broadcast import broadcast, crossover
from bsplib.apps.broadcast.crossover import BroadcastSample, Crossover
from bsplib.apps.broadcast.crossover_views import sentences

ONE, TWO = broadcast.bcast_onestage, broadcast.bcast_twostage


def machine(h="max", g=1e-8, latency=1e-4):
    return Machine("a machine", "made up", g=g, l=latency, h=h)


def measure_of(one, two, chosen, nprocs=4):
    return bsplib.run(
        crossover.main, one, two, nprocs=nprocs, backend="sim", machine=chosen, repeats=2
    )[0]


def measure(nprocs, chosen):
    return measure_of(ONE, TWO, chosen, nprocs)


def samples(*rows):
    return Crossover(4, machine(), tuple(BroadcastSample(*row) for row in rows))


class TestPrediction:
    @pytest.mark.parametrize("nprocs", [3, 4, 16, 100])
    def test_equation_8_is_that_of_the_paper(self, nprocs):
        found = Crossover(nprocs, machine(), ())
        assert found.equation_8 == pytest.approx(1e-4 / (nprocs * 1e-8 - 2 * 1e-8))

    @pytest.mark.parametrize("nprocs", [3, 4, 16, 100])
    @pytest.mark.parametrize("h", ["max", "sum"])
    def test_both_cost_the_same_at_the_predicted_size(self, nprocs, h):
        chosen = machine(h)
        predicted = crossover.predict(chosen, nprocs)
        if (nprocs, h) == (3, "sum"):
            assert predicted == math.inf
            return
        one, two = crossover.costs(chosen, nprocs, predicted)
        assert one == pytest.approx(two)
        one, two = crossover.costs(chosen, nprocs, 2 * predicted)
        assert two < one

    @pytest.mark.parametrize("nprocs", [1, 2])
    def test_with_two_processes_or_one_two_stages_never_pay(self, nprocs):
        assert Crossover(nprocs, machine(), ()).equation_8 == math.inf
        assert crossover.predict(machine(), nprocs) == math.inf


class TestMeasured:
    @pytest.mark.parametrize("nprocs", [4, 8, 16])
    @pytest.mark.parametrize("h", ["max", "sum"])
    def test_virtual_processors_cross_where_their_machine_says(self, nprocs, h):
        found = measure(nprocs, machine(h))
        below, above = found.measured
        assert below <= found.predicted <= above
        assert found.interpolated == pytest.approx(found.predicted, rel=0.05)

    def test_virtual_processors_take_what_the_costs_say(self):
        found = measure(4, machine())
        for sample in found.samples:
            expected = crossover.costs(found.machine, 4, sample.nbytes)
            assert (sample.one_s, sample.two_s) == pytest.approx(expected)

    @pytest.mark.parametrize(("latency", "measured"), [(1e-7, (512, 1024)), (3e-2, None)])
    def test_sizes_go_on_until_the_crossover_is_passed(self, latency, measured):
        """Two stages that end 100 supersteps more cross at 101 times the size."""

        def dearer(bsp, values):
            TWO(bsp, values)
            for _ in range(100):
                bsp.sync()

        found = measure_of(ONE, dearer, machine(latency=latency))
        assert found.measured == measured
        if measured is None:
            assert found.samples[-1].nbytes == 1 << 24

    def test_sizes_go_on_below_the_prediction(self):
        """One stage that ends 9 supersteps more crosses nowhere above zero."""

        def dearer(bsp, values):
            ONE(bsp, values)
            for _ in range(9):
                bsp.sync()

        assert measure_of(dearer, TWO, machine()).measured == (0, 8)

    def test_a_measured_line_gives_back_g_and_l(self):
        g, latency = measure(8, machine()).fitted
        assert (g, latency) == pytest.approx((1e-8, 1e-4))

    def test_real_processes_are_measured(self):
        found = bsplib.run(crossover.main, ONE, TWO, nprocs=3, backend="shm", repeats=1)[0]
        assert [sample.nbytes for sample in found.samples] == sorted(
            {sample.nbytes for sample in found.samples}
        )
        assert all(sample.one_s > 0 and sample.two_s > 0 for sample in found.samples)

    def test_the_last_size_at_which_one_stage_was_no_slower_counts(self):
        found = samples((8, 1, 2), (16, 3, 2), (32, 2, 2), (64, 4, 2), (128, 8, 2))
        assert found.measured == (32, 64)
        assert found.interpolated == pytest.approx(32)

    def test_between_two_sizes_the_crossover_is_interpolated(self):
        assert samples((16, 1, 2), (64, 4, 2)).interpolated == pytest.approx(32)

    def test_two_stages_may_be_faster_at_all_sizes(self):
        found = samples((8, 3, 2), (16, 4, 2))
        assert found.measured == (0, 8)
        assert found.interpolated is None
        assert sentences(found)[-1] == "measured: at all measured sizes, from 8 B on"

    def test_two_stages_may_be_faster_at_none(self):
        found = samples((8, 1, 2), (16, 2, 3))
        assert found.measured is None
        assert (
            sentences(found)[-1]
            == "measured: at no measured size; one stage was not slower at 16 B"
        )

    def test_times_that_fall_with_the_size_give_no_g(self):
        assert samples((8, 3, 2), (16, 2, 2), (32, 1, 2)).fitted is None


LINE = ["--crossover", "--backend", "sim", "--nprocs", "16", "--machine", "ibm-sp2-pvm"]


class TestCommandLine:
    @pytest.mark.lengthy
    def test_it_prints_what_was_predicted_and_measured(self):
        result = CliRunner().invoke(broadcast.command, LINE)
        assert result.exit_code == 0, result.output
        assert "16 processes, Machine IBM SP2, PVM" in result.output
        assert "equation 8, n > l / (p g - 2 g): from 167 B on" in result.output
        assert "with p - 1 and h = in + out: from 192 B on" in result.output
        assert "between 128 B and 256 B" in result.output

    @pytest.mark.parametrize("ending", ["png", "svg"])
    @pytest.mark.slow
    def test_it_is_drawn_if_asked(self, tmp_path, ending):
        path = tmp_path / f"plot.{ending}"
        result = CliRunner().invoke(broadcast.command, [*LINE, "--plot", str(path)])
        assert result.exit_code == 0, result.output
        assert f"drawn in {path}" in result.output
        head = path.read_bytes()[:200]
        assert head.startswith(b"\x89PNG") if ending == "png" else b"<?xml" in head

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (["--nprocs", "2"], "no crossover with nprocs = 2, where two stages are never"),
            (["--machine", "ideal"], "no crossover on the Machine 'ideal', whose g is 0"),
            (["--machine", "cray-t3e-mpi"], "Cray T3E, MPI has no l"),
            (["--plot", "plot.doc"], "plot.doc has no suffix of a known format; use "),
            (["--plot", "no/such/plot.png"], "there is no folder "),
        ],
    )
    def test_what_cannot_be_is_one_sentence(self, line, message):
        result = CliRunner().invoke(broadcast.command, [*LINE, *line])
        assert result.exit_code == 1
        assert message in result.output
        assert len(result.output.splitlines()) == 1
