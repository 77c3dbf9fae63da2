"""Virtual processors: hundreds in one process, in virtual time, in any order."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.directions import Direction
from bsplib.machine import Machine
from bsplib.primitives import superstep as supersteps
from bsplib.recording.records import RECORD, TRAFFIC
from bsplib.recording.trace import read_trace
from bsplib.running.options import overriding
from bsplib.sync_kinds import Kind
from bsplib.transfers.registry import agreement_of
from tests.processes import run_command

G, L = 1e-6, 1e-3
GREATER = Machine("by hand", "made up", g=G, l=L)
SUM = Machine("by hand, sum", "made up", g=G, l=L, h="sum")


@pytest.fixture
def simulate():
    """Run on virtual processors; return results and times."""
    times = []

    def run_it(main, *args, nprocs, **more):
        results = bsplib.run(main, *args, nprocs=nprocs, backend="sim", **more)
        return results, times.pop()

    with overriding(report_times=times.append):
        yield run_it


@pytest.fixture
def trace(simulate, tmp_path):
    """Run on virtual processors; return the recorded run and the times."""
    numbers = iter(range(1000))

    def run_it(main, *args, **more):
        path = tmp_path / f"{next(numbers)}.bsp"
        _, times = simulate(main, *args, profile=path, **more)
        (run,) = read_trace(path).runs
        return run, times

    return run_it


@pytest.fixture
def bsp(tmp_path):
    """Run the bsp command on a script."""

    def run_it(text, *options):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        return run_command(Path(sys.executable).parent / "bsp", "run", *options, path)

    return run_it


def column(run, pid, name, superstep):
    """A field of the record of a process in a superstep of the root group."""
    records = run.records
    (value,) = records[name][
        (records["pid"] == pid) & (records["superstep"] == superstep) & (records["group"] == 0)
    ]
    return int(value)


# -- many ---------------------------------------------------------------------------------------


@pytest.mark.lengthy
def test_hundreds_of_processes_partition_and_meet_obliviously(simulate):
    def main(bsp):
        with bsp.partition(range(8, bsp.nprocs + 8, 8)) as sub:
            total = sub.allreduce(bsp.pid)
        for lap in range(3):
            bsp.send((bsp.pid + 1) % bsp.nprocs, (bsp.pid, lap))
            bsp.oblsync(1)
            assert bsp.move() == ((bsp.pid - 1) % bsp.nprocs, lap)
        return total

    results, _ = simulate(main, nprocs=264)
    assert results == [sum(range(pid // 8 * 8, pid // 8 * 8 + 8)) for pid in range(264)]


@pytest.mark.lengthy
def test_event_loops_that_meet_are_told_that_they_need_real_processes(simulate):
    async def meet(bsp):
        bsp.sync()

    def main(bsp):
        coroutine = meet(bsp)
        try:
            asyncio.run(coroutine)
        finally:
            coroutine.close()

    with pytest.raises(RuntimeError, match="running event loop") as caught:
        simulate(main, nprocs=2)
    assert "a program that uses asyncio needs backend='shm'" in caught.value.__notes__[0]


@pytest.mark.slow
def test_there_may_be_4096(simulate):
    results, _ = simulate(lambda bsp: bsp.pid, nprocs=4096)
    assert results == list(range(4096))


def test_there_are_at_most_4096():
    for count in (0, -1, 4097):
        with pytest.raises(
            bsplib.ProcessRangeError, match=f"nprocs is {count}; it may be 1 to 4096 on sim"
        ):
            bsplib.run(lambda bsp: None, nprocs=count, backend="sim")


# -- virtual time ---------------------------------------------------------------------------------


def ring(bsp, supersteps):
    """Charge (pid + 1) / 10 s and send 1000 (pid + 1) bytes to the right."""
    for _ in range(supersteps):
        bsp.charge((bsp.pid + 1) / 10)
        bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(1000 * (bsp.pid + 1)))
        bsp.sync()
    bsp.charge(0.05)
    return bsp.time()


def test_a_superstep_takes_the_longest_computation_and_g_h_and_l(simulate):
    """h is the greater of in and out: 4000 bytes out of process 3, and into process 0."""
    ends, times = simulate(ring, 2, nprocs=4, machine=GREATER)
    steps = 2 * (0.4 + 4000 * G + L)
    assert ends == pytest.approx([steps + 0.05] * 4, abs=1e-8)
    assert times.parallel_s == pytest.approx(steps + 0.05, abs=1e-8)
    assert times.computation_s == pytest.approx(2 * (0.1 + 0.2 + 0.3 + 0.4) + 4 * 0.05, abs=1e-8)


def test_a_machine_may_count_h_as_the_sum_of_in_and_out(simulate):
    """The greatest sum is that of process 3: 4000 bytes out and 3000 in."""
    _, times = simulate(ring, 1, nprocs=4, machine=SUM)
    assert times.parallel_s == pytest.approx(0.4 + 7000 * G + L + 0.05, abs=1e-8)


def test_gets_and_puts_count_for_h_and_what_goes_to_oneself_does_not(simulate):
    def main(bsp):
        x = bsp.zeros(1000, np.uint8)
        bsp.charge(0.0)
        bsp.sync()
        before = bsp.time()
        if bsp.pid == 1:
            bsp.get(0, x[:300])  # 300 out of process 0, into 1
            bsp.put(2, np.ones(50, np.uint8), x[:50])
            bsp.put(1, 1, x)
            bsp.send(1, bytes(10**6))
        if bsp.pid == 2:
            bsp.get_at(0, np.arange(100), x)  # 100 more out of process 0
        bsp.sync()
        return bsp.time() - before

    taken, _ = simulate(main, nprocs=3, machine=GREATER)
    assert taken == pytest.approx([400 * G + L] * 3, abs=1e-8)
    taken, _ = simulate(main, nprocs=3, machine=SUM)
    assert taken == pytest.approx([400 * G + L] * 3, abs=1e-8)  # 0 + 400, 300 + 50, 150 + 0


def test_a_run_of_one_process_takes_what_it_computes(simulate):
    def main(bsp):
        bsp.charge(2.0)
        bsp.sync()

    _, times = simulate(main, nprocs=1)
    assert times.parallel_s == times.computation_s == 2.0


def test_on_the_ideal_machine_even_work_is_p_times_faster(simulate):
    def main(bsp):
        bsp.charge(0.5)
        bsp.send(0, bytes(1000))
        bsp.sync()

    _, times = simulate(main, nprocs=16)
    assert (times.parallel_s, times.computation_s) == (0.5, 8.0)


def test_an_oblivious_superstep_takes_no_longer_than_its_messages(simulate):
    """Process 1 waits for process 0 and pays for what that sends; process 2 for neither."""

    def main(bsp):
        bsp.charge((1.0, 0.1, 0.2)[bsp.pid])
        if bsp.pid == 0:
            bsp.send(1, bytes(1000))
        bsp.oblsync(1 if bsp.pid == 1 else 0)
        return bsp.time()

    ends, times = simulate(main, nprocs=3, machine=GREATER)
    assert ends == pytest.approx([1 + 1000 * G + L, 1 + 1000 * G + L, 0.2 + L], abs=1e-8)
    assert times.computation_s == pytest.approx(1.3, abs=1e-8)


def test_sub_groups_take_their_own_time(simulate):
    """The parent goes on when the slower one is there."""

    def main(bsp):
        with bsp.partition([1, 3]) as sub:
            sub.charge(0.1 * (bsp.pid + 1))
            sub.sync()
            inside = sub.time()
        bsp.sync()
        return inside, bsp.time()

    results, _ = simulate(main, nprocs=3, machine=GREATER)
    inside, after = zip(*results, strict=True)
    assert inside == pytest.approx([0.1 + L, 0.3 + L, 0.3 + L], abs=1e-8)
    assert after == pytest.approx([0.3 + 2 * L] * 3, abs=1e-8)


@pytest.mark.parametrize(("seconds", "ns"), [(2.5e-9, 2), (3.5e-9, 4), (0.25, 250_000_000)])
def test_a_charge_is_rounded_to_the_even_nanosecond(simulate, seconds, ns):
    def main(bsp):
        bsp.charge(seconds)
        return round(bsp.time() * 1e9)

    assert simulate(main, nprocs=1)[0] == [ns]


def test_virtual_time_ends_after_146_years(simulate):
    with pytest.raises(bsplib.UsageError, match=r"charge: virtual time is limited to 2\^62 ns"):
        simulate(lambda bsp: bsp.charge(5e9), nprocs=2)


# -- traces ---------------------------------------------------------------------------------------


def test_a_trace_is_like_that_of_real_processes(trace):
    run, _ = trace(ring, 2, nprocs=4, machine=GREATER)
    assert (run.records.dtype, run.traffic.dtype) == (RECORD, TRAFFIC)
    assert (run.nprocs, run.complete, len(run.groups)) == (4, True, 1)
    assert run.meta["backend"] == "sim"
    assert run.meta["machine"]["name"] == "by hand"
    assert sorted(zip(run.records["superstep"], run.records["kind"], strict=True)) == (
        [(0, Kind.SYNC)] * 4 + [(1, Kind.SYNC)] * 4 + [(2, Kind.END)] * 4
    )
    assert {stack[0].function for stack in run.stacks} == {"ring"}
    sent = [
        (int(run.records["pid"][row["record"]]), int(row["partner"]), int(row["bytes"]))
        for row in run.traffic
    ]
    assert sorted(sent) == sorted(2 * [(pid, (pid + 1) % 4, 1000 * (pid + 1)) for pid in range(4)])
    assert set(run.traffic["direction"]) == {Direction.OUT}


def test_computation_is_what_was_charged_and_idle_the_wait_for_the_slowest(trace):
    run, _ = trace(ring, 2, nprocs=4, machine=GREATER)
    for superstep in range(2):
        for pid in range(4):
            start, arrive, released, end = (
                column(run, pid, name, superstep) for name in ("start", "arrive", "released", "end")
            )
            assert (arrive - start) * 1e-9 == pytest.approx((pid + 1) / 10, abs=1e-8)
            assert (released - arrive) * 1e-9 == pytest.approx((3 - pid) / 10, abs=1e-8)
            assert (end - released) * 1e-9 == pytest.approx(4000 * G + L, abs=1e-8)
            assert column(run, pid, "comm_calls", superstep) == 0


def test_another_seed_is_another_order_and_the_same_times(simulate):
    def main(bsp, order):
        bsp.charge(0.1 * bsp.pid)
        order_of_run.append(bsp.pid)
        bsp.sync()
        return bsp.time()

    orders, ends = [], []
    for seed in (1, 1, 2):
        order_of_run: list[int] = []
        results, times = simulate(main, None, nprocs=20, machine=GREATER, sim_seed=seed)
        orders.append(order_of_run)
        ends.append((results, times))
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[2]) == list(range(20))
    assert ends[0] == ends[1] == ends[2]


# -- one process, and as if many ------------------------------------------------------------------


def test_arguments_and_results_are_copied_for_each_process(simulate):
    given = [1, 2]

    def main(bsp, values, *, more):
        values.append(bsp.pid)
        more["pid"] = bsp.pid
        bsp.sync()
        return values, more

    more = {"pid": None}
    results, _ = simulate(main, given, more=more, nprocs=3)
    assert results == [([1, 2, pid], {"pid": pid}) for pid in range(3)]
    assert (given, more) == ([1, 2], {"pid": None})


def test_a_result_is_no_longer_what_the_process_had(simulate):
    kept = []

    def main(bsp):
        kept.append([bsp.pid])
        return kept[-1]

    results, _ = simulate(main, nprocs=2, sim_seed=1)
    assert sorted(kept) == results
    assert not any(result is each for result in results for each in kept)


def test_globals_are_shared(simulate):
    """The one thing in which virtual processors differ from real ones."""

    def main(bsp):
        shared.append(bsp.pid)
        bsp.sync()
        return len(shared)

    shared: list[int] = []
    results, _ = simulate(main, nprocs=4)
    assert results == [4] * 4


# -- from the command line ------------------------------------------------------------------------

SCRIPT = """
import bsplib

def main(bsp):
    bsp.charge(0.5)
    bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(1000))
    bsp.sync()
    bsp.sync()
    return bsp.machine.name

if __name__ == "__main__":
    print(set(bsplib.run(main, nprocs=2)))
"""


@pytest.mark.lengthy
def test_the_command_prints_the_time_and_the_total_computation(bsp):
    done = bsp(SCRIPT, "--backend", "sim", "-n", "512", "--machine", "ibm-sp2-pvm")
    parallel = 0.5 + 2000 * 3.45e-8 + 2 * 8.08e-5  # h is the sum there
    assert done.returncode == 0
    assert done.stderr == (f"virtual time: parallel {parallel:.4g} s, total computation 256 s\n")


def test_what_all_register_is_looked_at_once_for_all(monkeypatch):
    looks = []

    def counted(announcements):
        looks.append(len(announcements))
        return agreement_of(announcements)

    def main(bsp):
        for size in range(3):
            x = bsp.full(size, bsp.pid)
            bsp.sync()
        with bsp.partition([2, bsp.nprocs]) as sub:
            y = np.zeros(bsp.pid)  # of another size everywhere
            sub.push_reg(y)
            sub.sync()
            seen = sub.get(sub.nprocs - 1, y, at=np.s_[:])
            sub.sync()
            sub.pop_reg(y)
            sub.sync()
        return seen.size, x.tolist()

    monkeypatch.setattr(supersteps, "agreement_of", counted)
    found = bsplib.run(main, nprocs=8, backend="sim")
    assert found == [(1 if pid < 2 else 7, [pid, pid]) for pid in range(8)]
    assert sorted(looks) == [2, 2, 6, 6, 8, 8, 8]
