"""What the clock of a virtual processor counts: computation between primitives, or charges."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import bsplib
from bsplib.backends.launching import Transfer
from bsplib.backends.sim import port
from bsplib.core.clock import Clock
from bsplib.directions import Direction
from bsplib.machine import Machine, load_machine, speed
from bsplib.machine.measured import Curve, Measured
from bsplib.recording.trace import read_trace
from bsplib.running import process
from bsplib.running.machine_prices import MachinePrices
from bsplib.running.options import overriding

FREE = load_machine("ideal")
PRICED = Machine("by hand", "made up", g=1e-9, l=1e-6)
MS = 10**6


class Thread:
    """The CPU time of the thread, which passes only where a test says so."""

    def __init__(self):
        self.now_ns = 0

    def compute(self, ms):
        self.now_ns += round(ms * MS)


@pytest.fixture
def thread(monkeypatch):
    """The thread that all virtual processors share."""
    thread = Thread()
    monkeypatch.setattr(port, "Clock", partial(Clock, read=lambda: thread.now_ns))
    monkeypatch.setattr(process, "empty_stretch_ns", lambda: 0)
    return thread


@pytest.fixture
def simulate(tmp_path):
    """Run on virtual processors; return results, times, and what was recorded."""

    def run_it(main, *args, nprocs=2, machine=FREE, **more):
        told = []
        path = tmp_path / "virtual.bsp"
        with overriding(report_times=told.append):
            results = bsplib.run(
                main, *args, nprocs=nprocs, backend="sim", machine=machine, profile=path, **more
            )
        return SimpleNamespace(results=results, times=told[-1], run=read_trace(path).runs[-1])

    return run_it


def ms(seconds):
    return round(seconds * 1e3, 6)


# -- what is measured -----------------------------------------------------------------------------


class Slow:
    """A payload that takes the thread long to pickle."""

    def __init__(self, thread):
        self.thread = thread

    def __reduce__(self):
        self.thread.compute(1000)
        return int, (7,)


def test_time_inside_primitives_is_not_counted(simulate, thread):
    def main(bsp):
        thread.compute(3)
        bsp.send(0, Slow(thread))
        thread.compute(1)
        bsp.sync()
        thread.compute(2)
        return ms(bsp.time())

    done = simulate(main)
    assert done.results == [6, 6]
    assert ms(done.times.computation_s) == 12
    records = done.run.records
    assert set(records["comm_calls"]) == {0}
    assert set((records["arrive"] - records["start"])[records["superstep"] == 0]) == {4 * MS}


def test_another_process_and_the_simulator_do_not_count(simulate, thread):
    def main(bsp):
        thread.compute((5, 70, 900)[bsp.pid])
        bsp.sync()
        return ms(bsp.time())

    done = simulate(main, nprocs=3)
    assert done.results == [900] * 3
    assert ms(done.times.computation_s) == 975


def test_the_bodies_of_loops_over_messages_and_of_scopes_are_computation(simulate, thread):
    def main(bsp):
        for _ in range(3):
            bsp.send(bsp.pid, 0)
        bsp.sync()
        for _ in bsp.messages():
            thread.compute(1)
        with bsp.scope():
            bsp.zeros(3)
            thread.compute(10)
        with bsp.partition([1, 2]) as sub:
            thread.compute(100)
            sub.sync()
        return ms(bsp.time())

    assert simulate(main).results == [113, 113]


def test_what_combines_values_is_computation_and_sending_them_is_not(simulate, thread):
    def add(a, b):
        thread.compute(5)
        return a + b

    def main(bsp):
        total = bsp.allreduce(1, op=add)
        return total, ms(bsp.time())

    assert simulate(main, nprocs=4).results == [(4, 15)] * 4


def test_collecting_garbage_is_not_counted(simulate, thread):
    class Burden:
        def __del__(self):
            thread.compute(1000)

    def main(bsp):
        thread.compute(1)
        ring = [Burden()]
        ring.append(ring)
        del ring
        gc.collect()
        thread.compute(1)
        return ms(bsp.time())

    assert simulate(main, nprocs=1).results == [2]


def test_the_time_of_many_empty_calls_is_next_to_nothing(simulate):
    """With the real clock: what the clock costs to read is no computation of the program."""

    def main(bsp):
        begun = time.perf_counter()
        for _ in range(2000):
            bsp.time()
        return bsp.time() / (time.perf_counter() - begun)

    least_share = min(simulate(main, nprocs=1).results[0] for _ in range(5))
    assert least_share < 0.25


# -- scaled to the Machine ------------------------------------------------------------------------


@pytest.fixture
def fast(monkeypatch):
    """This computer makes 4 Gflop/s."""
    monkeypatch.setattr(speed, "own_speed", lambda: 4e9)


def working(thread):
    def main(bsp):
        thread.compute(10)
        bsp.sync()
        return ms(bsp.time())

    return main


@pytest.mark.parametrize(("flops", "expected"), [("1e9", 40), ("4e9", 10), ("8e9", 5)])
def test_computation_takes_longer_on_a_machine_that_is_slower(
    simulate, thread, fast, flops, expected
):
    done = simulate(working(thread), machine=f"ideal:speed={flops}")
    assert done.results == [expected] * 2
    assert ms(done.times.computation_s) == 2 * expected
    assert done.run.meta["virtual_time"] == {
        "seconds_per_cpu_second": expected / 10,
        "speed_here": 4e9,
        "speed_there": float(flops),
    }


def test_virtual_processors_compute_with_one_blas_thread(monkeypatch):
    """The clock would not count what other threads compute."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)

    def threads(_=None):
        return {pool["num_threads"] for pool in threadpool_info()}

    with threadpool_limits(2):
        assert bsplib.run(threads, nprocs=2, backend="sim") == [{1}, {1}]
        assert threads() == {2}


def test_where_the_machine_says_no_speed_it_is_as_fast_as_this_computer(simulate, thread):
    done = simulate(working(thread))
    assert done.results == [10, 10]
    assert done.run.meta["virtual_time"] == {
        "seconds_per_cpu_second": 1.0,
        "speed_here": None,
        "speed_there": None,
    }


def test_charges_are_seconds_of_the_machine_and_not_scaled(simulate, fast):
    def main(bsp):
        bsp.charge(0.5)
        bsp.sync()
        return bsp.time()

    assert simulate(main, machine="ideal:speed=1e9").results == [0.5, 0.5]


def test_the_speed_of_this_computer_is_measured_once():
    assert speed.own_speed() == speed.own_speed() > 1e6
    there = Machine("m", "made up", g=0.0, l=0.0, speed=speed.own_speed() / 3)
    assert speed.time_scale(there, 4) == pytest.approx(3)
    assert speed.time_scale(FREE, 4) == 1


# -- charges --------------------------------------------------------------------------------------


LATE = pytest.mark.filterwarnings("ignore:charge. what was computed before:UserWarning")


@LATE
def test_what_was_measured_before_the_first_charge_stays(simulate, thread):
    def main(bsp):
        thread.compute(3)
        bsp.sync()
        thread.compute(4)
        bsp.charge(0.020)
        thread.compute(1000)
        at_once = ms(bsp.time())
        bsp.sync()
        thread.compute(1000)
        bsp.charge(0.001)
        return at_once, ms(bsp.time())

    done = simulate(main)
    assert done.results == [(27, 28)] * 2
    assert ms(done.times.computation_s) == 56


def test_a_long_computation_before_a_charge_in_the_first_superstep_stays(simulate, thread):
    def main(bsp):
        thread.compute(3)
        bsp.charge(0.020)
        bsp.charge(0.0)
        return ms(bsp.time())

    with pytest.warns(
        UserWarning, match=r"^charge: what was computed before .* charge\(0\)"
    ) as found:
        assert simulate(main).results == [23, 23]
    assert {each.filename for each in found} == {__file__}


def charge_in_a_sub_group(bsp):
    with bsp.partition([1, 2]) as sub:
        bsp.charge(1e-6)
        sub.sync()


def test_a_charge_on_the_parent_of_an_open_sub_group_leaves_a_trace_that_can_be_read(simulate):
    """The trace once went back in time, so that the reader refused it."""
    done = simulate(charge_in_a_sub_group)
    records = done.run.records
    assert done.run.complete
    inside = records[(records["group"] > 0) & (records["superstep"] == 0)]
    assert set(inside["arrive"] - inside["start"]) == {1000}
    times = [records[name] for name in ("start", "arrive", "released", "end")]
    assert all((before <= after).all() for before, after in pairwise(times))


# -- prices ---------------------------------------------------------------------------------------


def to_all(bsp, charges):
    if charges:
        bsp.charge(0)
    x = bsp.zeros(bsp.nprocs)
    for _ in range(5):
        for pid in range(bsp.nprocs):
            bsp.put(pid, 1.0, x, offset=bsp.pid)
        bsp.sync()
    return bsp.time()


@pytest.mark.parametrize("charges", [True, False])
@pytest.mark.lengthy
def test_64_processes_that_put_to_all_pay_g_h_and_l_to_the_digit(simulate, charges):
    done = simulate(to_all, charges, nprocs=64, machine=PRICED)
    records = done.run.records
    synced = records[records["superstep"] < 5]
    price_ns = 63 * 8 + 1000
    assert set(synced["end"] - synced["released"]) == {price_ns}
    assert set(synced["comm_calls"]) == {0}
    if charges:
        assert {round(seconds * 1e9, 3) for seconds in done.results} == {5 * price_ns}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("rule", "h"), [("max", 5000), ("sum", 5100)])
def test_an_oblivious_superstep_pays_for_what_its_sources_receive_too(simulate, seed, rule, h):
    """Process 1 waits for process 0, which moved 100 bytes out and 5000 in."""
    machine = Machine("by hand", "made up", g=1e-9, l=1e-6, h=rule)

    def main(bsp):
        bsp.charge((0.0, 0.0, 1.0)[bsp.pid])
        if bsp.pid == 0:
            bsp.send(1, bytes(100))
        if bsp.pid == 2:
            bsp.send(0, bytes(5000))
        bsp.oblsync((1, 1, 0)[bsp.pid])
        return bsp.time()

    done = simulate(main, nprocs=3, machine=machine, sim_seed=seed)
    price = h * 1e-9 + 1e-6
    price_of_2 = 5000e-9 + 1e-6
    assert done.results == pytest.approx([1 + price, price, 1 + price_of_2], abs=1e-9)


# -- what is recorded -----------------------------------------------------------------------------


class Looked(list):
    """A list that counts how often it is gone through."""

    times = 0

    def __iter__(self):
        self.times += 1
        return super().__iter__()


PROBED = replace(
    PRICED,
    measured=(Measured(4, 1e-6, patterns={"all-to-all": Curve((0, 1000), (1e-6, 1e-3))}),),
)


@pytest.mark.parametrize("machine", [PRICED, PROBED], ids=["by g and l", "by a probe"])
def test_what_processes_send_is_summed_up_once_for_an_oblivious_superstep(machine):
    """To price it for each of p processes would else take p times as long."""
    prices, nprocs = MachinePrices(machine).oblivious(4), 4
    posts = [
        Looked(Transfer(pid, to, Direction.OUT, 100, 1) for to in range(nprocs) if to != pid)
        for pid in range(nprocs)
    ]
    for sent in posts:
        prices.add(sent)
    looked = [sent.times for sent in posts]
    assert len({prices.price((pid, *range(nprocs))) for pid in range(nprocs)}) == 1
    assert [sent.times for sent in posts] == looked


def test_stacks_have_no_more_frames_than_those_of_real_processes(tmp_path):
    def inner(bsp):
        bsp.sync()
        bsp.allreduce(1)
        with bsp.partition([1, 2]) as sub:
            sub.oblsync(0)

    def main(bsp):
        inner(bsp)
        bsp.broadcast(3)

    stacks = {}
    for backend in ("shm", "sim"):
        path = tmp_path / f"{backend}.bsp"
        bsplib.run(main, nprocs=2, backend=backend, profile=path, lines=False)
        stacks[backend] = set(read_trace(path).runs[0].stacks)
    assert stacks["shm"] == stacks["sim"]
