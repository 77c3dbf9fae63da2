"""What a farm and a pipeline take, from the times of their tasks: models beside the runs.

Source: Gonzalez et al., equation 2 (OBSP*) for the pipeline; Graham 1966 for tasks that go to
whichever process is free first.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def equal_shares(times: Sequence[float], nprocs: int, *, in_turn: bool = False) -> float:
    """Return the time of the process that has most work, if all have as many tasks.

    Args:
        times: seconds of each task.
        nprocs: number of processes.
        in_turn: whether the tasks are dealt one by one, and not in blocks of neighbours.
    """
    each = -(-len(times) // nprocs)
    if in_turn:
        return max(sum(times[pid::nprocs]) for pid in range(nprocs))
    return max(sum(times[pid * each : (pid + 1) * each]) for pid in range(nprocs))


def first_come(times: Sequence[float], nprocs: int) -> float:
    """Return the time if every task goes to the process that is free first.

    That is what a master gives out that waits for whichever worker asks first. A farm of bulk
    synchronous processes comes near it from above.
    """
    free = [0.0] * nprocs
    for time in times:
        heapq.heapreplace(free, free[0] + time)
    return max(free)


def least(times: Sequence[float], nprocs: int) -> float:
    """Return what no distribution of the tasks is below: an equal share, or the longest task."""
    return max(sum(times) / nprocs, max(times, default=0.0))


def in_line(
    times: Sequence[Sequence[float]], *, capacity: int, move_s: float = 0.0, start_s: float = 0.0
) -> float:
    """Return the time of a pipeline under OBSP*.

    Stage s does item k in superstep s + k. It ends when the stage before has done item k + 1,
    and, in every superstep that is a multiple of the capacity, when the stage after has done
    item k - 1.

    Args:
        times: for each stage the seconds of all items.
        capacity: as of the pipeline.
        move_s: seconds to move an item, g h.
        start_s: seconds that each superstep takes beside, L.

    Source: Gonzalez et al., equation 2, with the stages that send to a stage as its partners.
    """
    stages, count = len(times), len(times[0])
    ends = [0.0] * stages
    for step in range(count + stages):
        worked = [
            end + (times[stage][step - stage] if 0 <= step - stage < count else 0.0)
            for stage, end in enumerate(ends)
        ]
        ends = [
            max(worked[other] for other in _partners(stage, step, stages, count, capacity))
            + start_s
            + move_s * (_has_item(stage, step, count) or _has_item(stage + 1, step, count))
            for stage in range(stages)
        ]
    return max(ends)


def _has_item(stage: int, step: int, count: int) -> bool:
    """Tell whether an item, or the end of all, comes to a stage at the end of a superstep."""
    return stage > 0 and 0 <= step - stage + 1 <= count


def _partners(stage: int, step: int, stages: int, count: int, capacity: int) -> list[int]:
    """Return the stages that a stage waits for in a superstep, itself included."""
    found = [stage]
    if _has_item(stage, step, count):
        found.append(stage - 1)
    if stage + 1 < stages and step % capacity == 0 and _has_item(stage + 1, step, count):
        found.append(stage + 1)
    return found
