"""The equations of Roda et al. and their printed constants."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from bsplib.apps.papers.msteps import (
    CONSTANTS,
    ERRORS,
    MPI,
    PVM,
    VALUES,
    Network,
    Sort,
    Transform,
    actual_of,
    average,
    communication_time,
    error_percent,
    fft_time,
    h_relation,
    message_words,
    psrs_time,
    superstep_time,
)
from bsplib.machine import Machine, load_machine

SP2 = Machine("SP2", "Roda et al. 1999, Table 1", g=1.38e-7 / 4, l=8.08e-5, h="sum")


def test_the_networks_are_those_of_the_machines_that_come_along():
    names = ("origin2000-pvm", "ibm-sp2-pvm", "utp-lan-pvm", "coaxial-lan-pvm")
    for name, network in zip(names, PVM.values(), strict=True):
        machine = load_machine(name)
        assert (machine.g * 4, machine.l) == (pytest.approx(network.g), network.L)
    for name, network in zip(("cray-t3e-mpi", "origin2000-mpi"), MPI.values(), strict=True):
        machine = load_machine(name)
        assert (machine.g * 4, machine.l) == (pytest.approx(network.g), network.L)


def test_the_constants_of_tables_1_to_3_have_their_printed_digits():
    def printed(number):
        digits, exponent = f"{number:.2e}".split("e")
        return f"{digits} x 10^{int(exponent)}"

    tables = [
        [printed(value) for network in networks.values() for value in (network.L, network.g)]
        for networks in (PVM, MPI)
    ]
    assert tables[0] == [
        *("-1.53 x 10^-5", "4.88 x 10^-8", "8.08 x 10^-5", "1.38 x 10^-7"),
        *("3.82 x 10^-3", "6.04 x 10^-6", "1.26 x 10^-2", "1.01 x 10^-5"),
    ]
    assert tables[1] == ["-2.11 x 10^-5", "2.92 x 10^-8", "-1.75 x 10^-3", "5.53 x 10^-8"]
    assert {
        name: [printed(value) for value in vars(of).values()] for name, of in CONSTANTS.items()
    } == {
        "Origin 2000": ["2.39 x 10^-7", "5.52 x 10^-7", "2.84 x 10^-7"],
        "IBM SP2": ["5.86 x 10^-7", "4.81 x 10^-7", "8.69 x 10^-7"],
        "UTP LAN": ["2.65 x 10^-6", "6.04 x 10^-7", "1.44 x 10^-6"],
        "Coaxial LAN": ["2.65 x 10^-6", "6.04 x 10^-7", "1.44 x 10^-6"],
    }


def test_an_h_relation_is_the_most_of_a_process_by_sum_or_maximum():
    """Equation 1: process 1 sends 5 and receives 2, process 2 sends none and receives 6."""
    sent, received = [3, 5, 0], [0, 2, 6]
    assert h_relation(sent, received) == 7
    assert h_relation(sent, received, max) == 6


def test_sum_and_maximum_differ_by_a_factor_of_two_at_most():
    """Section 1, after equation 3."""
    random = np.random.default_rng(0)
    for _ in range(50):
        sent, received = random.integers(0, 9, (2, 4)).tolist()
        most = h_relation(sent, received, max)
        assert most <= h_relation(sent, received) <= 2 * most


def test_a_superstep_on_virtual_processors_takes_the_time_of_equations_2_and_3():
    """On the SP2 of Table 1, with 4-byte words: 0.69 ms + 1000 g + L."""
    network, h = PVM["IBM SP2"], 1000
    assert communication_time(h, network) == pytest.approx(1.38e-4)
    assert superstep_time([6.9e-4, 1e-5], h, network) == pytest.approx(6.9e-4 + 1.38e-4 + 8.08e-5)
    took = bsplib.run(one_superstep, h, nprocs=2, backend="sim", machine=SP2)
    assert max(took) == pytest.approx(superstep_time([6.9e-4, 1e-5], h, network), abs=2e-9)


def one_superstep(bsp, h):
    bsp.charge(6.9e-4 if bsp.pid == 0 else 1e-5)
    if bsp.pid == 0:
        bsp.send(1, np.zeros(h, np.int32))
    bsp.sync()
    return bsp.time()


def test_averages_take_every_pattern_of_equation_12_as_much():
    """H of exchange and ping-pong has p = 2 to 24, and 4 to 24 of the others."""
    pairs = {p: float(p) for p in (2, 4, 6, 8, 16, 24)}
    others = dict.fromkeys((4, 6, 8, 16, 24), 1.0)
    times = {"E": pairs, "PP": pairs, "OA": others, "POA": others, "AO": others, "AA": others}
    assert average(times) == pytest.approx((2 * 10 + 4 * 1) / 6)


@pytest.mark.parametrize("name", CONSTANTS)
def test_equations_15_to_17_written_out_for_eight_processes(name):
    of, network, n = CONSTANTS[name], PVM[name], VALUES
    first = of.D * n / 8 + of.F * n / 8 * 16 + network.L + network.g * n / 8
    second = first + of.R * n / 8 + network.L + network.g * n * 2 / 8
    third = second + of.R * n * 2 / 8 + network.L + network.g * n * 4 / 8
    assert fft_time(n, 8, of, network) == pytest.approx(third + of.R * n / 2, rel=1e-12)


def test_one_process_only_divides_and_transforms():
    assert fft_time(8, 1, Transform(1.0, 10.0, 100.0), Network(1e9, 1e9)) == 8 + 240


def test_the_text_about_the_figures_is_true_of_the_model():
    """Section 4.1: the model predicts falling times for the coaxial network, too."""
    times = [fft_time(VALUES, p, CONSTANTS["Coaxial LAN"], PVM["Coaxial LAN"]) for p in (2, 4, 8)]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(("name", "error"), ERRORS.items())
def test_a_printed_error_belongs_to_one_actual_time(name, error):
    model = fft_time(VALUES, 8, CONSTANTS[name], PVM[name])
    assert error_percent(actual_of(model, error), model) == pytest.approx(error, abs=0.005)


@pytest.mark.parametrize(
    ("n", "p", "message"),
    [
        (12, 4, "N is 12; it is a power of two"),
        (8, 3, "p is 3; it is a power of two"),
        (0, 1, "N is 0; it is a power of two"),
        (4, 8, "there are 4 values for 8 processes"),
    ],
)
def test_a_transform_that_cannot_be_predicted_is_told(n, p, message):
    with pytest.raises(ValueError, match=message):
        fft_time(n, p, CONSTANTS["IBM SP2"], PVM["IBM SP2"])


def test_equations_19_to_25_written_out():
    """N = 64, P = 4, each constant and g a power of ten, L = 0."""
    of = Sort(B=1e1, C=1e2, D=1e3, E=1e4, F=1e5, H=1e6, I=1e7, J=1e8)
    times = psrs_time(64, 4, of, Network(1e-3, 0.0))
    steps = [
        3 * 16 * 1e-3,
        1e1 * 16 * 4 + 1e2 * 4 + 12e-3,
        1e3 * 16 + 1e4 * 3 + 9e-3,
        1e5 * 3 * 4 + 6e-3,
        1e6 * 3 + 2 * 3 * 4 * 1e-3,
        1e7 * 16 + 3e-3,
        1e8 * 3 + 3 * 16 * 1e-3,
    ]
    assert times == pytest.approx(np.cumsum(steps).tolist())


def test_every_m_step_of_the_sort_pays_its_start_and_its_words():
    assert psrs_time(64, 4, Sort(), Network(0.0, 2.0)) == [2.0 * k for k in range(1, 8)]
    words = [48, 12, 9, 6, 24, 3, 48]
    assert psrs_time(64, 4, Sort(), Network(1.0, 0.0)) == np.cumsum(words).tolist()


@pytest.mark.parametrize(("n", "p"), [(64, 1), (15, 4)])
def test_a_sort_that_cannot_be_predicted_is_told(n, p):
    with pytest.raises(ValueError, match="it takes 2 processes, and p squared keys"):
        psrs_time(n, p, Sort(), PVM["IBM SP2"])


@pytest.mark.parametrize("nprocs", [4, 8])
def test_all_patterns_of_a_size_are_one_h_relation(nprocs):
    """Equation 4: h = m_PP = 2 m_E = (p - 1) m_POA = (p - 1) m_AO = 2 (p - 1) m_AA."""
    h = 840
    factors = {"PP": 1, "E": 2, "POA": nprocs - 1, "AO": nprocs - 1, "AA": 2 * (nprocs - 1)}
    assert all(factors[name] * message_words(name, h, nprocs) == h for name in factors)


def test_averages_are_over_processes_first():
    """Equation 11: each pattern counts as much, however many numbers of processes it has."""
    assert average({"E": {2: 1.0, 4: 3.0}, "AA": {4: 10.0}}) == 6.0
