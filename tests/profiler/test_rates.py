"""The g, l and rule by which losses are priced, when nobody chooses a Machine."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from bsplib.machine import load_machine
from bsplib.profiler.rates import FITTED, fit_line, rates_of_run, rates_on
from tests.recordings import record_run


def ring(bsp):
    x = bsp.zeros(10)
    bsp.put((bsp.pid + 1) % bsp.nprocs, np.ones(10), x)
    bsp.sync()


def recorded(path, **options):
    return record_run(path, ring, nprocs=2, **options)


def test_on_virtual_processors_they_are_those_of_the_machine_of_the_run(tmp_path):
    run = recorded(tmp_path / "t.bsp", backend="sim", machine="cray-t3e-mpi:l=2e-5,speed=3e8")
    rates = rates_of_run(run)
    machine = load_machine("cray-t3e-mpi:l=2e-5,speed=3e8")
    assert (rates.g, rates.l, rates.rule) == (machine.g, 2e-5, machine.h)
    assert (rates.ratio, rates.source) == (1.0, machine.label)


@pytest.mark.lengthy
def test_on_real_processes_a_machine_counts_only_where_the_program_named_it(tmp_path):
    named = recorded(tmp_path / "named.bsp", machine="shared-memory")
    unnamed = recorded(tmp_path / "unnamed.bsp")
    assert rates_of_run(named).source == load_machine("shared-memory").label
    assert named.meta["machine"] == unnamed.meta["machine"]
    assert rates_of_run(unnamed).source in (FITTED, "none")


def communicating(script, steps):
    """Supersteps of two processes with these h and times of communication."""
    program = script(2)
    for h, time in steps:
        program.step("main", w=5, transfer=time, puts=[(0, 1, h)] if h else [])
    return program.run()


def test_they_are_fitted_to_the_run_where_it_names_no_machine(script):
    run = communicating(script, [(h, 3 * h + 500) for h in (0, 10, 100, 1000, 10_000)])
    rates = rates_of_run(run)
    assert rates.g == pytest.approx(3e-9)
    assert rates.l == pytest.approx(500e-9)
    assert (rates.source, rates.note) == (FITTED, "")


def test_a_process_that_had_to_wait_for_a_core_does_not_spoil_the_fit(script):
    steps = [(h, 3 * h + 500) for h in (0, 100, 1000) for _ in range(9)]
    disturbed = communicating(script, [*steps, (0, 10**7), (100, 10**7), (1000, 10**7)])
    rates = rates_of_run(disturbed)
    assert rates.g == pytest.approx(3e-9)
    assert rates.l == pytest.approx(500e-9)


@pytest.mark.parametrize(
    ("steps", "g", "l"),
    [
        ([(10, 1000), (1000, 500)], 0, 700e-9),  # more bytes in less time
        ([(10, 1), (1000, 1000)], None, 0),  # an l below zero
    ],
)
def test_no_rate_is_negative(script, steps, g, l):  # noqa: E741
    rates = rates_of_run(communicating(script, steps))
    assert rates.g >= 0
    assert rates.l >= 0
    assert g is None or rates.g == g
    assert l != 0 or rates.l == 0


@pytest.mark.parametrize(
    ("nbytes", "g", "l", "which"), [(8, 0, 100e-9, "supersteps"), (10**6, 1e-13, 0, "bytes")]
)
def test_where_all_supersteps_move_the_same_bytes_their_number_says_what_costs(
    script,
    nbytes,
    g,
    l,  # noqa: E741  # the name in the field
    which,
):
    rates = rates_of_run(communicating(script, [(nbytes, 100)] * 3))
    assert (rates.g, rates.l) == (pytest.approx(g), pytest.approx(l))
    assert rates.note == (
        f"All is said to be the cost of {which}, since each superstep moves {nbytes} bytes."
    )


def test_another_machine_scales_computation_by_its_speed(script):
    here = asdict(load_machine("origin2000-mpi:speed=1e8,l=1e-5"))
    run = script(2).run(meta={"machine": here})
    there = load_machine("cray-t3e-mpi:speed=3e8,l=2e-5")
    assert rates_on(there, run).ratio == pytest.approx(1 / 3)


def test_a_few_quick_supersteps_do_not_make_the_bytes_of_all_others_cheap():
    """Twenty exchanges of some 5.6 MB take 12 ms each, and one of 4 MB takes 1 ms."""
    h = np.array([4e6, *(5.65e6 + 1e3 * np.arange(20))])
    comm_s = np.array([1e-3, *(12e-3 + 1e-5 * np.arange(20))])
    g, latency = fit_line(h, comm_s, np.ones(21))
    assert g == pytest.approx(12e-3 / 5.65e6, rel=0.05)
    assert latency == 0


def test_a_few_slow_supersteps_do_not_make_those_of_all_others_dear():
    h = np.array([0.0, 1e3, 1e5, 1e6, 1.001e6])
    comm_s = np.array([1e-6, 3e-6, 2.01e-4, 2.001e-3, 9e-3])
    g, latency = fit_line(h, comm_s, np.array([1000.0, 1000.0, 100.0, 100.0, 2.0]))
    assert g == pytest.approx(2e-9, rel=0.05)
    assert latency == pytest.approx(1e-6, rel=0.05)
