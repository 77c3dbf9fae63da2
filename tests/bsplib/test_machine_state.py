"""The price of a superstep by what came before it: late processes, and swept caches."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

import bsplib
from bsplib.machine import Machine, load_machine
from bsplib.machine.measured import Curve, HRelation, Measured
from bsplib.machine.probing.state import (
    PASSES,
    SIZES,
    WAITS_S,
    cache_bytes,
    measure_before,
    measure_passes,
)

STATE = {
    "late": Curve((0, 1_000_000), (0.0, 4e-5)),
    "evicted": Curve((0, 1000), (0.0, 2e-3)),
    "evicting": 1e-3,
    "passes": Curve((1000, 10_000, 20_000), (1e-6, 1e-5, 4e-5)),
}
PLAIN = Measured(2, 1e-6, patterns={"exchange": Curve((0, 1000), (1e-6, 1e-3))})
TWO = Measured(2, 1e-6, patterns=PLAIN.patterns, **STATE)
PROBED = Machine("m", "x", 1e-9, 1e-6, measured=(TWO,))


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(PROBED.text())
    return str(path)


def price(machine=PROBED, pattern="exchange", nprocs=2, **relation):
    return machine.parts_of(HRelation(**relation), pattern, nprocs)


def test_a_late_process_lengthens_the_sync():
    assert price(h=0) == (0, 1e-6)
    assert price(h=0, wait=5e-4) == pytest.approx((0, 2.1e-5))
    transfer_s, sync_s = price(h=1000, calls=1, wait=1e-3)
    assert (transfer_s, sync_s) == pytest.approx((1e-3 - 1e-6, 4.1e-5))


def test_bytes_cost_more_the_longer_ago_the_last_sync_was():
    warm = price(h=500, calls=1)[0]
    assert price(h=500, calls=1, apart=5e-4)[0] == pytest.approx(warm + 5e-4)
    assert price(h=500, calls=1, apart=1e-3)[0] == pytest.approx(warm + 1e-3)
    assert price(h=500, calls=1, apart=1.0)[0] == pytest.approx(warm + 1e-3)
    assert price(h=0, apart=1.0) == (0, 1e-6)


def test_the_state_is_interpolated_between_numbers_of_processes():
    four = Measured(4, 1e-6, late=Curve((0, 1_000_000), (0.0, 8e-5)))
    machine = Machine("m", "x", 1e-9, 1e-6, measured=(TWO, four))
    assert price(machine, None, 3, h=0, wait=1e-3)[1] == pytest.approx(6.1e-5)


def test_a_machine_without_state_is_priced_as_before():
    machine = Machine("m", "x", 1e-9, 1e-6, measured=(PLAIN,))
    assert not machine.has_state
    assert price(machine, h=500, calls=1, wait=1.0, apart=1.0) == price(machine, h=500, calls=1)


def test_the_state_is_read_again_from_a_file_and_from_a_trace(write):
    assert load_machine(write) == PROBED
    assert load_machine(write).has_state
    assert Machine.of(json.loads(json.dumps(asdict(PROBED)))) == PROBED


def test_virtual_processors_pay_for_who_comes_late(write):
    def main(bsp):
        bsp.charge(0)
        bsp.sync()
        bsp.charge(1e-3 * bsp.pid)
        bsp.sync()
        return bsp.time()

    times = bsplib.run(main, nprocs=2, backend="sim", machine=write)
    assert times == pytest.approx([1e-3 + 4.2e-5] * 2, abs=2e-9)


def test_virtual_processors_pay_for_what_they_computed_before(write):
    def main(bsp):
        bsp.charge(5e-4)
        bsp.send(1 - bsp.pid, bytes(1000))
        bsp.sync()
        return bsp.time()

    times = bsplib.run(main, nprocs=2, backend="sim", machine=write)
    assert times == pytest.approx([5e-4 + 1e-3 + 1e-3] * 2, abs=2e-9)


def test_the_time_before_main_is_no_part_of_the_first_superstep(write):
    def main(bsp):
        bsp.charge(0)
        bsp.send(1 - bsp.pid, bytes(1000))
        bsp.sync()
        return bsp.time()

    assert bsplib.run(main, nprocs=2, backend="sim", machine=write) == pytest.approx([1e-3] * 2)


@pytest.mark.slow
@pytest.mark.fresh
def test_a_probe_measures_the_state():
    before = measure_before(2, "shm", 1e-6)
    assert before.late.nbytes == tuple(round(wait * 1e9) for wait in WAITS_S)
    assert before.evicted.nbytes == (0, *SIZES)
    for curve in (before.late, before.evicted):
        assert list(curve.seconds) == sorted(curve.seconds)
        assert curve.seconds[0] == 0
    assert 0 < before.evicting_s < 1
    assert cache_bytes() >= 2**15


def test_computation_may_be_slower_where_processes_use_more_memory_than_the_caches_hold():
    assert PROBED.memory_slowdown(2, 100, 10_000) == pytest.approx(1)
    assert PROBED.memory_slowdown(2, 10_000, 20_000) == pytest.approx(2)
    assert PROBED.memory_slowdown(2, 20_000, 10_000) == 1
    assert PROBED.memory_slowdown(64, 1000, 30_000) == pytest.approx(7e-5 / 30_000 / 1e-9)
    assert Machine("m", "x", 1e-9, 1e-6).memory_slowdown(2, 1000, 20_000) == 1
    assert replace(PROBED, measured=(PLAIN,)).memory_slowdown(2, 1000, 20_000) == 1


def test_between_numbers_of_processes_the_slowdown_by_memory_is_interpolated():
    four = Measured(4, 1e-6, passes=Curve((1000, 20_000), (1e-6, 2e-5)))
    machine = replace(PROBED, measured=(TWO, four))
    assert machine.memory_slowdown(3, 1000, 20_000) == pytest.approx(1.5)


@pytest.mark.slow
def test_a_probe_measures_passes_over_arrays():
    passes = measure_passes(2, "shm")
    assert passes.nbytes == PASSES
    each = [seconds / size for size, seconds in zip(PASSES, passes.seconds, strict=True)]
    assert each == sorted(each)
    assert 0 < each[-1] < 1e-6
