"""Table 3 of Gonzalez et al.: the transform of N values as an experiment."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import bsplib
from bsplib.apps.fourier import fft
from bsplib.apps.fourier.common import signal
from bsplib.apps.fourier.experiment import (
    FORMULA,
    PredictedTransform,
    command,
    main,
    printed_coefficients,
    printed_predictions,
    tell,
)
from bsplib.apps.fourier.published import TABLE_3
from bsplib.apps.papers.call import session
from bsplib.profiler.predict.experiments import passages
from bsplib.recording.trace import read_trace


def test_one_formula_with_four_coefficients_gives_all_six_printed_predictions():
    """To the four decimals that are printed; two of the six numbers are no part of the fit."""
    found = printed_predictions()
    assert {p: f"{seconds:.4f}" for p, seconds in found.items()} == {
        p: f"{printed.predicted_s:.4f}" for p, printed in TABLE_3.items()
    }


def test_the_coefficients_are_those_of_times():
    """None is negative, as no part of a time is, though the fit allows it."""
    assert (printed_coefficients() > 0).all()


@pytest.mark.parametrize(
    ("nprocs", "printed"),
    # at P = 16 the paper prints 8.68: its times were rounded after the error was computed
    [(1, "-0.30"), (2, "1.82"), (4, "3.77"), (8, "6.36"), (16, "8.67"), (32, "7.71")],
)
def test_the_errors_are_those_of_the_printed_times(nprocs, printed):
    row = PredictedTransform(
        nprocs, TABLE_3[nprocs].measured_s, TABLE_3[nprocs].predicted_s, 0.0, 0.0
    )
    assert f"{row.error_percent:.2f}" == printed


def test_the_transform_is_measured_with_the_formula_of_the_paper(tmp_path):
    path = tmp_path / "trace.bsp"
    sums = bsplib.run(main, 64, nprocs=4, backend="sim", profile=path)
    found = passages(read_trace(path).runs[0])
    assert np.allclose(sums, 64 * signal(64, 0)[0])
    assert len(found) == 3
    assert {each.formula for each in found} == {FORMULA}
    assert found[0].values == {"N": 64, "P": 4}


@pytest.mark.lengthy
def test_a_large_transform_is_predicted_from_small_ones():
    told = tell((1, 2, 4), 2**12, (256, 512, 1024), backend="sim", repeats=1)
    assert [row.nprocs for row in told.rows] == [1, 2, 4]
    for row in told.rows:
        assert 0 < row.low <= row.predicted <= row.high
        assert row.seconds > 0
    assert told.model.fit.formula.text == FORMULA


@pytest.mark.lengthy
def test_the_command_prints_the_table_and_the_formula():
    done = CliRunner().invoke(
        command, ["--nprocs", "1,2", "--size", "2048", "--sizes", "256:1024:x2", "--backend", "sim"]
    )
    assert done.exit_code == 0, done.output
    assert "predicted" in done.output
    assert f"time = {FORMULA}" in done.output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--nprocs", "3"], "3 is no power of two, for which alone the formula holds"),
        (["--size", "1000"], "1000 is no power of two"),
        (["--sizes", "many"], "--sizes 'many': 'many' is no number"),
        (["--nprocs", "1", "--sizes", "256"], "parameters need as many measurements"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, sentence):
    done = CliRunner().invoke(command, [*options, "--size", "512", *options])
    assert done.exit_code == 1
    assert sentence in done.output.strip().splitlines()[-1]


def test_the_comments_of_figure_5_measure_each_level_of_the_recursion():
    found = {}
    for each in session.run(fft.__file__, ["--size", "64"], nprocs=4, backend="sim"):
        found.setdefault(each.name, []).append(each)
    assert sorted(found) == ["A", "B", "D", "F", "G"]
    # all four processes at the first level, and two halves of two at the second
    levels = {name: sorted(each.values["P"] for each in found[name]) for name in "ABDF"}
    assert list(levels.values()) == [[2, 2, 4]] * 4
    assert [each.values for each in found["G"]] == [{"size": 16, "P": 1}] * 4
    halves = {each.values["P"]: each.values["half"] for each in found["D"]}
    assert halves == {4: 32, 2: 16}
