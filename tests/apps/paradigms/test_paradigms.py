"""A farm and a pipeline return what one process would, on every backend, and are balanced."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import bsplib
from bsplib.apps.paradigms import TaskError, farm, pipeline, split
from bsplib.apps.paradigms.model import equal_shares, first_come, in_line, least
from bsplib.machine import Machine
from bsplib.profiler.window import root_supersteps
from bsplib.recording.trace import read_trace
from tests.mpi_installations import MPICH
from tests.mpi_ranks import ranks_of

SHARES = {"farm": farm, "blocks": split, "in turn": partial(split, in_turn=True)}
"""Ways to share out tasks."""

FREE = Machine("free", "a Machine on which only computation takes time", g=0.0, l=0.0)
COUNTS = (1, 2, 3, 4, 7)
SIZES = (0, 1, 2, 3, 10, 57)


def squares(bsp, n):
    return farm(bsp, lambda number: number**2, range(n) if bsp.pid == 0 else None)


def shared_equally(bsp, n, *, in_turn):
    tasks = range(n) if bsp.pid == 0 else None
    return split(bsp, lambda number: number**2, tasks, in_turn=in_turn)


def doubled(_, item):
    return 2 * item


def averaged(group, item):
    return group.allreduce(item) // group.nprocs


def increased(_, item):
    return item + 1


STAGES = (doubled, averaged, increased)


def line(bsp, n, widths=None, capacity=4, stages=STAGES):
    items = (number for number in range(n)) if bsp.pid == 0 else None
    return pipeline(bsp, stages, items, widths=widths, capacity=capacity)


@pytest.mark.parametrize("nprocs", COUNTS)
@pytest.mark.parametrize("backend", ["sim", "shm"])
class TestOnEveryBackend:
    def test_a_farm_returns_all_results_in_order(self, backend, nprocs, run_on):
        for n in SIZES:
            first, *others = run_on(squares, n, nprocs=nprocs, backend=backend)
            assert first == [number**2 for number in range(n)]
            assert others == [None] * (nprocs - 1)

    @pytest.mark.parametrize("in_turn", [False, True])
    def test_so_do_equal_shares(self, backend, nprocs, in_turn, run_on):
        for n in SIZES:
            first, *_ = run_on(shared_equally, n, nprocs=nprocs, backend=backend, in_turn=in_turn)
            assert first == [number**2 for number in range(n)]

    @pytest.mark.parametrize("capacity", [1, 2, 5])
    def test_a_pipeline_returns_what_leaves_its_last_stage_in_order(
        self, backend, nprocs, capacity, run_on
    ):
        for n in SIZES[:5]:
            first, *others = run_on(line, n, None, capacity, nprocs=nprocs, backend=backend)
            assert first == [2 * number + 1 for number in range(n)]
            assert others == [None] * (nprocs - 1)


@pytest.mark.parametrize("widths", [(2, 2, 1), (1, 1, 3), (3, 1, 1)])
@pytest.mark.parametrize("backend", ["sim", "shm"])
def test_a_stage_may_have_several_processes(backend, widths, run_on):
    first, *_ = run_on(line, 6, widths, nprocs=5, backend=backend)
    assert first == [2 * number + 1 for number in range(6)]


@pytest.mark.slow
def test_both_run_on_an_mpi():
    with ranks_of(MPICH):
        first, *_ = bsplib.run(squares, 40, nprocs=3, backend="mpi")
        assert first == [number**2 for number in range(40)]
        first, *_ = bsplib.run(line, 10, nprocs=3, backend="mpi")
        assert first == [2 * number + 1 for number in range(10)]


def both(bsp, n):
    return squares(bsp, n), line(bsp, n), squares(bsp, n)


def test_a_program_may_use_one_after_another_without_a_sync_between():
    expected = [number**2 for number in range(9)]
    assert bsplib.run(both, 9, nprocs=4, backend="sim")[0] == (
        expected,
        [2 * number + 1 for number in range(9)],
        expected,
    )


# -- errors ---------------------------------------------------------------------------------------


def failing(bsp, how):
    def work(*arguments):
        if arguments[-1] == 7:
            raise ZeroDivisionError("no such thing")
        return arguments[-1]

    if how == "farm":
        return farm(bsp, work, range(20))
    return pipeline(bsp, [doubled, work], (7 * n for n in (0, 0.5)))


@pytest.mark.parametrize("nprocs", [1, 3])
@pytest.mark.parametrize("backend", ["sim", "shm"])
@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("farm", "task 7, 7, failed: ZeroDivisionError: no such thing"),
        ("pipeline", r"stage 1, work, of item 1, 7.0, failed: ZeroDivisionError: no such thing"),
    ],
)
def test_a_task_that_fails_is_named_with_its_error(backend, nprocs, how, text):
    with pytest.raises(TaskError, match=text):
        bsplib.run(failing, how, nprocs=nprocs, backend=backend)


@pytest.mark.parametrize("program", [farm, split])
def test_a_bag_without_tasks_is_told(program):
    with pytest.raises(TypeError, match="process 0 gives the tasks, and gave None"):
        bsplib.run(lambda bsp: program(bsp, abs), nprocs=2, backend="sim")


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"stages": []}, "there is no stage"),
        ({"capacity": 0}, "the capacity is 0; it is 1 or more"),
        ({"widths": (1, 1)}, r"widths \[1, 1\] do not give 4 processes to 3 stages"),
        ({"widths": (4, 0, 0)}, r"widths \[4, 0, 0\] do not give 4 processes to 3 stages"),
        ({"widths": (1, 1, 1)}, r"widths \[1, 1, 1\] do not give 4 processes to 3 stages"),
    ],
)
def test_a_pipeline_that_cannot_be_is_told(how, text):
    with pytest.raises(ValueError, match=text):
        bsplib.run(line, 3, nprocs=4, backend="sim", **how)


def test_a_pipeline_without_items_is_told():
    with pytest.raises(TypeError, match="process 0 gives the items, and gave None"):
        bsplib.run(lambda bsp: pipeline(bsp, STAGES), nprocs=2, backend="sim")


# -- balance, and the models ----------------------------------------------------------------------


def charged(bsp, costs, how):
    bsp.charge(0.0)
    SHARES[how](bsp, bsp.charge, costs)
    return bsp.time()


def time_of(costs, how, nprocs):
    return max(bsplib.run(charged, costs, how, nprocs=nprocs, backend="sim", machine=FREE))


@pytest.mark.parametrize("nprocs", [2, 8, 32])
@pytest.mark.parametrize(("order", "bound"), [(1, 1.12), (-1, 1.05)])
def test_a_farm_balances_tasks_that_cost_more_in_one_place(nprocs, order, bound):
    """Their costs rise, or fall, from nothing to a millisecond, 64 tasks for each process.

    Where they rise, what is left takes longer than the tasks before let expect.
    """
    costs = np.linspace(0, 1e-3, 64 * nprocs)[::order].tolist()
    shared, best = time_of(costs, "blocks", nprocs), least(costs, nprocs)
    assert shared == pytest.approx(equal_shares(costs, nprocs))
    assert shared > 1.4 * best
    assert time_of(costs, "farm", nprocs) < bound * best


def slowed(bsp, n, how):
    """Process 1 takes three times as long as the others."""
    bsp.charge(0.0)
    SHARES[how](bsp, lambda _: bsp.charge(3e-4 if bsp.pid == 1 else 1e-4), range(n))
    return bsp.time()


def test_a_farm_gives_a_slow_process_fewer_tasks():
    best = 1e-4 * 400 / (3 + 1 / 3)
    for how, bound in (("farm", 1.3), ("blocks", None), ("in turn", None)):
        took = max(bsplib.run(slowed, 400, how, nprocs=4, backend="sim", machine=FREE))
        assert took < bound * best if bound else took == pytest.approx(3e-4 * 100)


def test_a_farm_is_about_as_good_as_equal_shares_where_costs_are_random():
    """On average over seeds; it cannot tell a long task before it is done."""
    ratios = []
    for seed in range(8):
        costs = np.random.default_rng(seed).exponential(1e-3, 8 * 64).tolist()
        ratios.append([time_of(costs, how, 8) / least(costs, 8) for how in ("farm", "blocks")])
    ours, equal = np.mean(ratios, axis=0)
    assert 1.0 < ours < 1.1 * equal


@pytest.mark.parametrize("nprocs", [2, 8])
def test_a_farm_makes_few_supersteps(nprocs, tmp_path):
    """Two a round; those of a bag that is 16 times as large are not three times as many."""
    made = []
    for n in (32 * nprocs, 512 * nprocs):
        trace = tmp_path / f"{n}.bsp"
        costs = np.linspace(0, 1e-3, n).tolist()
        how = {"nprocs": nprocs, "backend": "sim", "machine": FREE, "profile": trace}
        bsplib.run(charged, costs, "farm", **how)
        made.append(len(np.unique(root_supersteps(read_trace(trace).runs[0]))))
    assert made[1] < 3 * made[0] < 150


def test_models_of_shares_written_out():
    times = [4.0, 1.0, 1.0, 1.0, 1.0]
    assert equal_shares(times, 2) == 6.0
    assert equal_shares(times, 2, in_turn=True) == 6.0
    assert equal_shares(times, 3, in_turn=True) == 5.0
    assert first_come(times, 2) == 4.0
    assert least(times, 2) == 4.0
    assert least(times, 1) == 8.0


def timed_line(bsp, costs, capacity):
    bsp.charge(0.0)
    stages = [
        lambda group, item, stage=stage: group.charge(costs[stage][item]) or item
        for stage in range(len(costs))
    ]
    pipeline(bsp, stages, range(len(costs[0])), capacity=capacity)
    return bsp.time()


@pytest.mark.parametrize("length", [1, 2, 3, 5])
@pytest.mark.parametrize("capacity", [1, 2, 3, 8])
def test_a_pipeline_takes_the_time_of_equation_2(length, capacity):
    """To the nanosecond of each superstep; with L, the message with the results costs one."""
    costs = np.random.default_rng(length).exponential(1e-3, (length, 20)).tolist()
    for start_s in (0.0, 1e-5):
        machine = Machine("a", "", g=0.0, l=start_s)
        took = bsplib.run(
            timed_line, costs, capacity, nprocs=length, backend="sim", machine=machine
        )
        expected = in_line(costs, capacity=capacity, start_s=start_s) + start_s * (length > 1)
        assert max(took) == pytest.approx(expected, abs=1e-7)


def test_a_pipeline_takes_as_long_as_its_slowest_stage():
    costs = [[1.0] * 50, [3.0] * 50, [2.0] * 50]
    assert in_line(costs, capacity=4) == pytest.approx(3.0 * 50 + 1.0 + 2.0)
    assert in_line(costs[:1], capacity=4) == 50.0


def test_a_larger_queue_evens_out_stages_that_are_slow_by_turns():
    """Two stages that are slow at every other eighth item, each when the other is not."""
    slow = [1.0 if k // 8 % 2 else 0.1 for k in range(160)]
    costs = [slow, slow[8:] + slow[:8]]
    times = [in_line(costs, capacity=capacity) for capacity in (1, 4, 16)]
    assert times == sorted(times, reverse=True)
    assert times[-1] < 0.75 * times[0]


def fed(bsp, n, capacity):
    """Return when each item was taken from the source, or when the last stage had done it."""
    bsp.charge(0.0)
    times = []

    def items():
        for number in range(n):
            times.append(bsp.time())
            yield number

    def slow(group, item):
        group.charge(1.0)
        times.append(group.time())
        return item

    pipeline(bsp, [doubled, slow], items(), capacity=capacity)
    return times


@pytest.mark.parametrize("capacity", [1, 3, 8])
def test_a_fast_stage_is_not_further_ahead_than_the_queue_allows(capacity):
    """Of 60 items, of which the second stage takes one a second and the first as many as it may:
    in the queue, in both stages and on the way are never more than the capacity and three.
    """
    taken, done = bsplib.run(fed, 60, capacity, nprocs=2, backend="sim", machine=FREE)
    ahead, most = 0, 0
    for _, change in sorted([(time, 1) for time in taken] + [(time, -1) for time in done]):
        ahead += change
        most = max(most, ahead)
    assert ahead == 0
    assert capacity <= most <= capacity + 3
