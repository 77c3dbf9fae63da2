"""The price of a superstep by what came before it: late processes, and swept caches."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import bsplib
from bsplib.directions import Direction
from bsplib.machine import Machine, load_machine
from bsplib.machine.measured import Begun, Curve, HRelation, Measured
from bsplib.machine.probing.state import (
    PASSES,
    SIZES,
    WAITS_S,
    cache_bytes,
    measure_before,
    measure_passes,
)
from bsplib.profiler.models.prediction import predict
from bsplib.profiler.prices import choose_prices
from bsplib.recording.trace import read_trace

STATE = {
    "late": Curve((0, 1_000_000), (0.0, 4e-5)),
    "evicted": Curve((0, 1000), (0.0, 2e-3)),
    "evicting": 1e-3,
    "apart": Curve((0, 10_000_000_000), (0.0, 0.0)),
    "placed": Curve((0, 800), (0.0, 4e-3)),
    "fetched": Curve((0, 800), (0.0, 8e-3)),
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


def test_a_collective_takes_longer_where_its_code_has_left_the_caches():
    puts, collectives = Curve((0, 1000), (0.0, 3e-3)), Curve((8, 1000), (1e-4, 5e-3))
    entry = replace(TWO, evicted_puts=puts, evicted_collectives=collectives)
    machine = replace(PROBED, measured=(entry,))
    for relation, more in (({"copied": 4}, 1e-4), ({"put": 4}, 4 / 1000 * 3e-3)):
        warm, cold = (
            price(machine, h=4, calls=1, apart=apart, **relation)[0] for apart in (0.0, 1.0)
        )
        assert cold - warm == pytest.approx(more)


def test_bytes_cost_more_the_longer_ago_the_last_sync_was():
    warm = price(h=500, calls=1)[0]
    assert price(h=500, calls=1, apart=5e-4)[0] == pytest.approx(warm + 5e-4)
    assert price(h=500, calls=1, apart=1e-3)[0] == pytest.approx(warm + 1e-3)
    assert price(h=500, calls=1, apart=1.0)[0] == pytest.approx(warm + 1e-3)
    assert price(h=0, apart=1.0) == (0, 1e-6)


def test_any_sync_costs_more_after_a_computation():
    machine = replace(PROBED, measured=(replace(TWO, apart=Curve((0, 1000), (0.0, 7e-6))),))
    assert price(machine, h=0, apart=5e-7) == pytest.approx((0, 4.5e-6))
    more = [price(each, h=500, calls=1, apart=1e-6) for each in (machine, PROBED)]
    assert more[0][0] == pytest.approx(more[1][0])
    assert more[0][1] == pytest.approx(more[1][1] + 7e-6)


def test_elements_by_index_cost_more_than_a_block_of_as_many_bytes():
    block = price(h=800, calls=1)[0]
    assert price(h=800, calls=1, placed=400)[0] == pytest.approx(block + 2e-3)
    assert price(h=800, calls=1, placed=400, fetched=400)[0] == pytest.approx(block + 6e-3)


def test_the_first_supersteps_with_calls_cost_more():
    first = Curve((0, 1, 2), (0.0, 1e-4, 7e-4))
    machine = replace(PROBED, measured=(replace(TWO, first=first),))
    warm = price(h=8, calls=1)[0]
    more = [price(machine, h=8, calls=1, fresh=left)[0] - warm for left in (2, 1, 0)]
    assert more == pytest.approx([7e-4, 1e-4, 0])
    begun = Begun()
    assert [begun.fresh(calls) for calls in (0, 3, 0, 1, 1)] == [0, 2, 0, 1, 0]


def test_the_first_collectives_cost_more_also_after_other_calls():
    curves = (Curve((0, 1, 2), (0.0, 1e-4 * way, 1e-3 * way)) for way in (1, 2, 3))
    names = "first", "first_messages", "first_collectives"
    machine = replace(PROBED, measured=(replace(TWO, **dict(zip(names, curves, strict=True))),))
    for way, factor in (("put", 1), ("pickled", 2), ("copied", 3)):
        warm, new = (price(machine, h=8, calls=1, fresh=left, **{way: 8})[0] for left in (0, 2))
        assert new - warm == pytest.approx(1e-3 * factor)
    begun = Begun()
    calls = [(3, 0), (2, 2), (1, 0), (4, 1), (2, 2), (1, 0)]
    assert [begun.fresh(*each) for each in calls] == [2, 2, 1, 1, 0, 0]


def test_first_collectives_have_the_same_price_on_virtual_processors_and_in_a_replay(tmp_path):
    first = Curve((0, 1, 2), (0.0, 1e-4, 7e-4))
    machine = replace(PROBED, measured=(replace(TWO, first=first),))

    def main(bsp):
        bsp.charge(1e-3)
        for _ in range(3):
            bsp.send(1 - bsp.pid, np.zeros(4))
            bsp.sync()
        for _ in range(3):
            bsp.allgather(np.zeros(4))

    (tmp_path / "machine.toml").write_text(machine.text())
    path = tmp_path / "run.bsp"
    bsplib.run(main, nprocs=2, backend="sim", machine=str(tmp_path / "machine.toml"), profile=path)
    (run,) = read_trace(path).runs
    found = predict(run, choose_prices(run), ["BSP"]).totals["BSP"]
    assert found.total_s == pytest.approx(run.records["end"].max() / 1e9, abs=1e-8)
    assert found.comm_s > 2 * (7e-4 + 1e-4)


@pytest.mark.parametrize("how", ["put_at", "get_at"])
def test_elements_by_index_have_the_same_price_on_virtual_processors_and_in_a_replay(
    how, write, tmp_path
):
    def main(bsp):
        x = bsp.zeros(100)
        bsp.charge(0)
        bsp.sync()
        where = np.full(50, 1 - bsp.pid), np.arange(50)
        if how == "put_at":
            bsp.put_at(*where, 1.0, x)
        else:
            bsp.get_at(*where, x)
        bsp.sync()
        return bsp.time()

    trace = tmp_path / "trace.bsp"
    times = bsplib.run(main, nprocs=2, backend="sim", machine=write, profile=trace)
    elements_s = {"put_at": 2e-3, "get_at": 4e-3}[how]
    block_s = 1e-6 + 0.4 * (1e-3 - 1e-6)
    assert times == pytest.approx([1e-6 + block_s + elements_s] * 2, abs=2e-9)
    (run,) = read_trace(trace).runs
    expected = {"put_at": Direction.OUT_BY_INDEX, "get_at": Direction.IN_BY_INDEX}[how]
    assert run.traffic["direction"].tolist() == [expected] * 2
    assert run.traffic["bytes"].tolist() == [400] * 2
    found = predict(run, choose_prices(run), ["BSP", "OBSP*"])
    for model in ("BSP", "OBSP*"):
        assert found.totals[model].total_s == pytest.approx(times[0], abs=2e-9)


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


# -- kinds of calls -------------------------------------------------------------------------------


CALLS = replace(
    PLAIN,
    call=1e-6,
    get=2e-6,
    message=3e-6,
    pickle=5e-6,
    unpickle=7e-6,
    pickle_byte=1e-8,
    puts=Curve((0, 1000), (0.5e-6, 2e-3)),
    gets=Curve((0, 1000), (0.5e-6, 5e-4)),
)
BY_KIND = Machine("m", "x", 1e-9, 1e-6, measured=(CALLS,))


def test_bytes_that_are_put_or_got_cost_as_an_exchange_by_such_calls():
    total = [
        sum(price(BY_KIND, h=800, calls=1, **kind))
        for kind in ({"messages": 1}, {"put": 800}, {"got": 800, "gets": 1})
    ]
    assert total == pytest.approx([float(curve.at(800)) for curve in exchanges()])


def test_calls_cost_as_messages_where_these_take_no_time():
    """Who describes a Machine by hand may enter such a curve."""
    nothing = {"exchange": Curve((0, 1000), (0.0, 0.0))}
    machine = replace(BY_KIND, measured=(replace(CALLS, patterns=nothing),))
    assert price(machine, h=800, put=800, calls=1) == price(machine, h=800, messages=1, calls=1)
    relation = HRelation(np.array([0, 800]), np.array([0, 1]), put=np.array([0, 800]))
    assert np.isfinite(machine.measured[0].seconds(relation, "exchange")).all()


def exchanges():
    return PLAIN.patterns["exchange"], CALLS.puts, CALLS.gets


def test_each_further_call_costs_by_its_kind():
    one = price(BY_KIND, h=8, calls=1)[0]
    for kind, more in (({}, 0), ({"gets": 11}, 2e-6), ({"messages": 11}, 3e-6)):
        found = price(BY_KIND, h=8, calls=11, **kind)[0]
        assert found - one == pytest.approx(10 * (1e-6 + more))


def test_objects_cost_their_senders_and_receivers_by_number_and_bytes():
    plain = price(BY_KIND, h=100, calls=1, messages=1)[0]
    found = price(BY_KIND, h=100, calls=1, messages=1, objects=1, unpickled=3, pickled=100)[0]
    assert found - plain == pytest.approx(5e-6 + 3 * 7e-6 + 100 * 1e-8)


PROGRAMS = {
    "puts": lambda bsp, x, other: bsp.put(other, np.ones(20), x, offset=0),
    "gets": lambda bsp, x, other: bsp.get(other, x[:30]),
    "arrays": lambda bsp, x, other: bsp.send(other, np.ones(20)),
    "objects": lambda bsp, x, other: bsp.send(other, {"a": 1, "b": np.ones(9)}),
    "numbers": lambda bsp, x, other: bsp.send(other, np.float64(1)),
    "collective": lambda bsp, x, other: bsp.allgather(np.ones(7)),
    "collective of objects": lambda bsp, x, other: bsp.allgather({"a": bsp.pid}),
    "messages to one": lambda bsp, x, other: bsp.pid and [bsp.send(0, ["b"]) for _ in range(3)],
}


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("count", [2, 3])
def test_calls_of_a_kind_have_the_same_price_on_virtual_processors_and_in_a_replay(
    kind, count, tmp_path
):
    def main(bsp):
        x = bsp.zeros(100)
        bsp.charge(0)
        bsp.sync()
        PROGRAMS[kind](bsp, x, (bsp.pid + 1) % bsp.nprocs)
        bsp.sync()
        return bsp.time()

    (tmp_path / "machine.toml").write_text(BY_KIND.text())
    machine, trace = str(tmp_path / "machine.toml"), tmp_path / "trace.bsp"
    times = bsplib.run(main, nprocs=count, backend="sim", machine=machine, profile=trace)
    (run,) = read_trace(trace).runs
    found = predict(run, choose_prices(run), ["BSP", "OBSP*"])
    for model in ("BSP", "OBSP*"):
        assert found.totals[model].total_s == pytest.approx(max(times), abs=2e-9)


def test_the_arrays_inside_an_object_are_no_part_of_its_pickle(tmp_path):
    def main(bsp):
        if bsp.pid == 0:
            bsp.send(1, {"x": np.ones(1000)})
        bsp.sync()

    trace = tmp_path / "trace.bsp"
    bsplib.run(main, nprocs=2, backend="sim", profile=trace)
    (run,) = read_trace(trace).runs
    out, pickled = run.traffic
    assert (out["direction"], out["bytes"], out["messages"]) == (Direction.OUT, 8000, 0)
    assert (pickled["direction"], pickled["messages"]) == (Direction.OUT_PICKLED, 1)
    assert 0 < pickled["bytes"] < 500


def test_a_machine_that_was_probed_before_says_that_it_lacks_prices_of_calls():
    assert PLAIN.lacks_calls
    assert not CALLS.lacks_calls
