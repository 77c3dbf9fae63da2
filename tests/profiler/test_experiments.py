"""The formulas of experiments fitted to their traces, and coefficients that divide alone."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import bsplib
from bsplib.profiler.predict import TimingsError, fit_experiment
from bsplib.profiler.predict.experiments import passages
from bsplib.profiler.predict.fit import fit_formula
from bsplib.recording.trace import read_trace
from tests.commands import run_bsp

pytestmark = pytest.mark.lengthy(values="all")  # they share the runs of a sweep

FORMULA = "f[0]*P + f[1]*N/P"


def main(bsp, n, formula=FORMULA):
    bsp.charge(0)
    with bsp.experiment("f", formula, N=n):
        bsp.charge(2e-4 * bsp.nprocs + 1e-6 * n / bsp.nprocs)
    with bsp.experiment("g", "g[0]*N", N=n):
        bsp.charge(1e-8 * n)


def sweep(path, formula=FORMULA):
    for n in (256, 512, 1024, 2048, 4096):
        for nprocs in (1, 2, 4):
            bsplib.run(main, n, formula, nprocs=nprocs, backend="sim", profile=path)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("experiments") / "runs.bsp"
    sweep(path)
    return path


@pytest.mark.lengthy
def test_the_formula_of_the_program_is_fitted_to_what_its_blocks_took(path):
    model = fit_experiment(path, "f")
    assert model.fit.coefficients == pytest.approx([2e-4, 1e-6], rel=1e-6)
    predicted = model.predict(N=2**20, P=32)
    assert predicted.times[0] == pytest.approx(2e-4 * 32 + 2**15 * 1e-6, rel=1e-6)
    assert predicted.low[0] < predicted.times[0] < predicted.high[0]


@pytest.mark.lengthy
def test_the_command_fits_the_experiment_that_is_named(path):
    first = run_bsp("predict", path, "--region", "f")
    assert first.exit_code == 0, first.output
    assert first.output.startswith("time = f[0]*P + f[1]*N/P\n")
    one = run_bsp("predict", path, "--region", "g", "--at", "N=2^20,P=2", "--model-out", "-")
    found = json.loads(one.output)
    assert found["formula"] == "g[0]*N"
    assert found["coefficients"]["g[0]"]["value"] == pytest.approx(1e-8, rel=1e-3)


@pytest.mark.lengthy
def test_several_files_count_as_one(path, tmp_path):
    other = tmp_path / "other.bsp"
    bsplib.run(main, 8192, nprocs=8, backend="sim", profile=other)
    assert len(fit_experiment([path, other], "f").timings) == 16
    assert run_bsp("predict", path, other, "--region", "f").exit_code == 0


def test_another_formula_may_be_fitted(path):
    done = run_bsp("predict", path, "--region", "f", "--formula", "a[0]*P + a[1]*N/P + a[2]")
    assert "time = a[0]*P + a[1]*N/P + a[2]" in done.output


SENTENCES = {
    "no such experiment": (
        ["--region", "h"],
        "has no region 'h'; choose one of f, g with --region",
    ),
    "no such variable": (["--region", "f", "--by", "M"], "has no column 'M'; it has N, P"),
    "no such counter": (
        ["--region", "f", "--time", "pages"],
        "has no metric 'pages'; choose one of time, h with --time",
    ),
    "too many parameters": (
        ["--region", "f", "--formula", "+".join(f"a[{n}]*N**{n}" for n in range(20))],
        "20 parameters need as many measurements, and there are 15",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_what_cannot_be_fitted_is_told_in_one_sentence(path, case):
    options, sentence = SENTENCES[case]
    done = run_bsp("predict", path, *options)
    assert done.exit_code != 0
    *_, last = done.output.strip().splitlines()
    assert last.startswith("Error: ")
    assert sentence in last


@pytest.mark.lengthy
def test_a_program_that_was_changed_needs_a_choice_between_its_formulas(path, tmp_path):
    other = tmp_path / "other.bsp"
    sweep(other, "f[0]*P + f[1]*N")
    with pytest.raises(TimingsError, match=r"f has 2 formulas, f\[0\]\*P \+ f\[1\]\*N/P"):
        fit_experiment([path, other], "f")
    with pytest.raises(TimingsError, match="has 2 regions; choose one of f, g with --region"):
        fit_experiment(path)


def shifts(bsp, n):
    x = bsp.zeros(n)
    with bsp.experiment("shift", "f[0]*N", N=n):
        bsp.put((bsp.pid + 1) % bsp.nprocs, np.ones(n), x)
        bsp.sync()


def test_the_h_relation_of_recorded_runs_may_be_fitted(tmp_path):
    path = tmp_path / "runs.bsp"
    for n in (10, 20, 40, 80):
        bsplib.run(shifts, n, nprocs=2, backend="sim", profile=path)
    assert fit_experiment(path, time="h").fit.coefficients == pytest.approx([8])


DAMAGED = {
    "no block of that number": lambda told: told["passed"][0].__setitem__(0, 7),
    "an infinite time": lambda told: told["passed"][0].__setitem__(3, 10**400),
    "a value that is no number": lambda told: told["passed"][0][5].update(N="many"),
    "no list": lambda told: told.update(passed=3),
    "no name": lambda told: told["blocks"][0].__setitem__(0, 3),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_blocks_that_cannot_be_are_refused_in_one_sentence(path, case):
    run = read_trace(path).runs[0]
    told = json.loads(json.dumps(run.meta["blocks"]))
    DAMAGED[case](told[0])
    damaged = dataclasses.replace(run, meta=run.meta | {"blocks": told})
    with pytest.raises(TimingsError, match="the trace says of its blocks what cannot be: "):
        passages(damaged)


# -- coefficients that divide alone ------------------------------------------------------------

SIZES = np.unique(np.round(2 ** np.arange(2, 13, 0.4)))


def initialisation(noise, seed=0):
    """Times of the paper's loop over an N x N matrix, whose rows leave the cache at N = 256."""
    word = np.where(SIZES <= 256, 1e-9, 4e-9)
    exact = 5e-8 + 3e-8 * SIZES + word * SIZES**2
    return exact * np.exp(np.random.default_rng(seed).normal(0, noise, len(SIZES)))


@pytest.mark.parametrize("noise", [0.0, 0.005, 0.02])
def test_of_the_matrix_initialisation_only_the_coefficient_of_memory_changes(noise):
    """Table 2 of Gonzalez et al.: A0 and A1 hold everywhere, A2 on both sides of C0."""
    found = fit_formula("A[0] + A[1]*N + A[2]*N**2", {"N": SIZES}, initialisation(noise))
    assert found.breaks == (f"N > {SIZES[SIZES <= 256][-1]:g}",)
    assert "A[3]*(N**2)*above(N, " in found.formula.text
    _, _, near, more = found.coefficients[:4]
    assert near == pytest.approx(1e-9, rel=max(5 * noise, 1e-6))
    assert near + more == pytest.approx(4e-9, rel=max(5 * noise, 1e-6))


def test_where_every_coefficient_jumps_each_has_two_values():
    times = (5e-8 + 3e-8 * SIZES) * np.where(SIZES <= 256, 1, 2.5)
    found = fit_formula("A[0] + A[1]*N", {"N": SIZES}, times)
    far = SIZES > 256
    assert found.breaks
    assert found.predict({"N": SIZES[far]}) == pytest.approx(times[far], rel=0.01)
