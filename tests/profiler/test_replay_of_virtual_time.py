"""A run on virtual processors, replayed on its own Machine, takes the same time again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import bsplib
from bsplib.machine import Machine, Pattern
from bsplib.machine.measured import Curve, Measured
from bsplib.profiler.models.replay import MODELS, measured, replay
from bsplib.profiler.prices import VIRTUAL, ReplayPrices, choose_prices
from bsplib.profiler.timeline import Timeline
from bsplib.recording.trace import read_trace
from bsplib.running.options import overriding
from tests.drawn import examples

MEASURED, CHARGED = "measured", "charged"


PATTERNS = {
    "exchange": Pattern(2.2e-9, 40.1e-9),
    "all-to-one": Pattern(4.4e-9, 70.7e-9),
    "all-to-all": Pattern(5.5e-9, 60.9e-9),
    "ping-pong": Pattern(1.1e-9, -30e-9),  # a gap: the Machine's own g and l hold
}


PROBED = (
    Measured(1, empty=30.1e-9),
    Measured(
        2,
        empty=50.3e-9,
        call=7.3e-9,
        patterns={
            "exchange": Curve((8, 64), (90.4e-9, 300.7e-9)),
            "all-to-all": Curve((0, 16, 100), (70.2e-9, 111.1e-9, 600.9e-9)),
        },
    ),
    Measured(5, empty=90.9e-9, patterns={"all-to-all": Curve((8, 64), (110.5e-9, 400.2e-9))}),
)


def machine(rule, *, patterns=False, probed=False):
    known = PATTERNS if patterns else {}
    measured = PROBED if probed else ()
    return Machine(
        "by hand", "made up", g=3.1e-9, l=50.3e-9, h=rule, patterns=known, measured=measured
    )


@pytest.fixture
def simulate(tmp_path):
    """Run on virtual processors; return what was recorded and the parallel time in ns."""

    def run_it(main, *args, nprocs, machine, **more):
        told = []
        path = tmp_path / "virtual.bsp"
        options = {"nprocs": nprocs, "machine": machine, "profile": path}
        with overriding(report_times=told.append):
            bsplib.run(main, *args, backend="sim", **options, **more)
        return read_trace(path).runs[-1], told[-1].parallel_s * 1e9

    return run_it


def compute(bsp, how, amount):
    """Compute for some time, that is charged or measured."""
    if how == CHARGED:
        bsp.charge(amount * 1e-9)
    else:
        np.sort(np.arange(amount % 300)[::-1])


def exchange(bsp, draw, x, kind):
    """Let every process send and put some things to some others; all draw alike."""
    count = int(draw.integers(0, 2 * bsp.nprocs + 1))
    sources, targets = draw.integers(0, bsp.nprocs, (2, count))
    ways = WAYS if kind == "oblsync" else WAYS + GETS
    sizes, chosen = draw.integers(0, 40, count), draw.integers(0, len(ways), count)
    for source, target, size, way in np.stack([sources, targets, sizes, chosen], 1).tolist():
        if source == bsp.pid:
            (ways[way] if size else WAYS[0])(bsp, target, size, x)
    if kind == "oblsync":
        bsp.oblsync(int((targets == bsp.pid).sum()))
    else:
        ENDS[draw.integers(len(ENDS))](bsp, int(draw.integers(1, 700)))


def indices(target, size):
    return np.full(size, target), np.arange(size)


WAYS = (
    lambda bsp, target, size, _: bsp.send(target, bytes(size)),
    lambda bsp, target, size, _: bsp.send(target, np.ones((size, 2))),
    lambda bsp, target, size, _: bsp.send(target, {"a": np.ones(size), "b": "x" * size}),
    lambda bsp, target, size, _: bsp.send(target, np.float32(size)),
    lambda bsp, target, size, x: bsp.put(target, np.ones(size), x, offset=0),
    lambda bsp, target, size, x: bsp.hpput(target, np.ones(size), x, offset=0),
    lambda bsp, target, size, x: bsp.put_at(*indices(target, size), np.ones(size), x),
)
GETS = (
    lambda bsp, target, size, x: bsp.get(target, x, np.empty(size), offset=0),
    lambda bsp, target, size, x: bsp.hpget(target, x, np.empty(size), offset=0),
    lambda bsp, target, size, x: bsp.get_at(*indices(target, size), x),
)
ENDS = (
    *[lambda bsp, _: bsp.sync()] * 4,
    lambda bsp, size: bsp.broadcast(np.ones(size), root=bsp.nprocs - 1),
    lambda bsp, size: bsp.allreduce(np.ones(size)),
    lambda bsp, size: bsp.allgather({"k": "v" * size}),
    lambda bsp, size: bsp.alltoall([np.ones(size % 50)] * bsp.nprocs),
    lambda bsp, _: bsp.scan(bsp.pid),
    lambda bsp, size: bsp.gather("s" * size),
)
"""What ends a superstep: a sync, or a collective, by the size of its values."""


def perform(bsp, rounds, seed, how):
    """Compute and communicate by chance, in sub-groups that are entered at different times."""
    x = bsp.zeros(64)
    bsp.sync()
    for kind, salt in rounds:
        draw = np.random.default_rng([seed, salt, bsp.nprocs])
        w = draw.integers(0, 2000, (2, bsp.nprocs))
        compute(bsp, how, int(w[0, bsp.pid]))
        if kind == "partition" and bsp.nprocs > 1:
            cut = int(draw.integers(0, bsp.nprocs + 1))
            with bsp.partition([cut, bsp.nprocs]) as sub:
                perform(sub, [("oblsync", salt + 1), ("partition", salt + 2)], seed, how)
        elif kind == "split" and bsp.nprocs > 1:
            with bsp.split((0, 1, None)[bsp.pid % 3]) as sub:  # some are in no sub-group
                if sub is not None:
                    perform(sub, [("sync", salt + 1), ("oblsync", salt + 2)], seed, how)
        compute(bsp, how, int(w[1, bsp.pid]))
        exchange(bsp, draw, x, kind)


def start(bsp, rounds, seed, how):
    if how == CHARGED:
        bsp.charge(0)
    perform(bsp, rounds, seed, how)


def rounds_of(*kinds):
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 2**16)), max_size=5)


def check(run, parallel_ns, model, own):
    """The total is that of the trace and of the run, within 1 ns a superstep."""
    again_ns = replay(Timeline(run), model, choose_prices(run)).total_s * 1e9
    supersteps = len(run.records)
    by_pattern = own.patterns or own.measured
    assert choose_prices(run) == ReplayPrices(own, pattern=VIRTUAL if by_pattern else None)
    assert again_ns == pytest.approx(int(run.records["end"].max()), abs=supersteps)
    assert again_ns == pytest.approx(parallel_ns, abs=supersteps + 1)


ALIKE = examples(12, suppress_health_check=[HealthCheck.function_scoped_fixture])
PROCESSES = st.sampled_from([1, 2, 3, 5, 8])
RULES = st.sampled_from(["max", "sum"])


@pytest.mark.parametrize("how", [CHARGED, MEASURED])
@ALIKE
@given(
    rounds=rounds_of("sync", "oblsync", "partition", "split"),
    seed=st.integers(0, 99),
    nprocs=PROCESSES,
    rule=RULES,
    known=st.sampled_from([{}, {"patterns": True}, {"probed": True}]),
)
def test_any_program_takes_the_same_time_under_obsp(
    simulate, how, rounds, seed, nprocs, rule, known
):
    own = machine(rule, **known)
    run, parallel_ns = simulate(start, rounds, seed, how, nprocs=nprocs, machine=own, sim_seed=seed)
    check(run, parallel_ns, "OBSP*", own)
    timeline = Timeline(run)
    assert measured(timeline).total_s * 1e9 == pytest.approx(int(run.records["end"].max()), abs=1)


@pytest.mark.parametrize("how", [CHARGED, MEASURED])
@ALIKE
@given(
    rounds=rounds_of("sync"),
    seed=st.integers(0, 99),
    nprocs=PROCESSES,
    rule=RULES,
    known=st.sampled_from([{}, {"patterns": True}, {"probed": True}]),
)
def test_a_program_with_global_syncs_only_takes_the_same_time_under_bsp(
    simulate, how, rounds, seed, nprocs, rule, known
):
    own = machine(rule, **known)
    run, parallel_ns = simulate(start, rounds, seed, how, nprocs=nprocs, machine=own)
    check(run, parallel_ns, "BSP", own)


@pytest.mark.slow
@ALIKE
@given(rounds=rounds_of("sync", "oblsync"), seed=st.integers(0, 99), nprocs=PROCESSES)
def test_without_barriers_no_model_is_slower(simulate, rounds, seed, nprocs):
    """MPM <= OBSP* <= BSPWB <= BSP, where there are no sub-groups and h is the greater."""
    own = machine("max")
    run, _ = simulate(start, rounds, seed, CHARGED, nprocs=nprocs, machine=own)
    timeline = Timeline(run)
    order = ("MPM", "OBSP*", "BSPWB", "BSP")
    totals = [replay(timeline, model, ReplayPrices(own)).total_s for model in order]
    assert all(less <= more * (1 + 1e-12) for less, more in pairwise(totals))


def ring(bsp):
    """Three supersteps: nothing, an exchange of 100 bytes, 60 bytes from all to process 0."""
    bsp.charge(0)
    bsp.sync()
    bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(100))
    bsp.sync()
    if bsp.pid:
        bsp.send(0, bytes(20))
    bsp.sync()


def test_a_superstep_costs_what_the_machine_says_of_its_pattern(simulate):
    own = machine("max", patterns=True)
    run, parallel_ns = simulate(ring, nprocs=4, machine=own)
    steps_ns = 50.3 + (220 + 40.1) + (4.4 * 60 + 70.7)
    assert parallel_ns == pytest.approx(steps_ns, abs=4)
    timeline, prices = Timeline(run), choose_prices(run)
    for model in MODELS:
        assert replay(timeline, model, prices).total_s * 1e9 == pytest.approx(steps_ns, abs=3)


def test_computation_is_not_scaled_to_the_speed_of_the_machine_twice(simulate):
    own = Machine("by hand", "made up", g=3e-9, l=5e-8, speed=1e8)
    run, parallel_ns = simulate(start, [("sync", 3)] * 3, 1, MEASURED, nprocs=4, machine=own)
    check(run, parallel_ns, "BSP", own)
    faster = Machine("by hand", "made up", g=3e-9, l=5e-8, speed=2e8)
    assert choose_prices(run, faster).ratio == 0.5
