"""A bag of tasks that all processes work on, while nobody knows what a task costs.

A farm with message passing has a master that waits for whichever worker asks first. That cannot
be said in BSP, where it does not depend on time which messages a superstep brings. This holds for
oblsync, too: it waits for the messages of its own superstep from every process that sends any.
But process 0 can hear from every process once in a while, and give out tasks before they are
needed:

- Each process has a queue of tasks. It works until a time that process 0 has set, or until the
  queue is empty, and then sends its results, how many tasks it has left, and how long they took.
- From these reports process 0 estimates the queues, fills up the shortest ones, and sets the next
  time. This takes one round: tasks are given out for the round *after* the next report, so that
  the others go on with their queues while one of them is late by up to a round.
- A round lasts a third of the work that is left, but half of the longest task so far at least.
  So few rounds are made, and the queues are short at the end.

Process 0 works, too, and as long beyond the time as the last of the others will be late.

A process that takes longer over one task than a round lasts still makes all others wait. So the
farm balances tasks that are more costly in one place than in another, and processes that are
slower than others. Where costs are random it is about as good as equal shares, and no better
where a few tasks that nobody knows beforehand have most of the work.

Source: Gonzalez et al., section 1, who name farms as what oblivious synchronisation is for, and
print none; rounds of a part of the work that is left: Hummel, Schonberg and Flynn 1992.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf, log
from typing import Any, NamedTuple, TypeVar

import bsplib
from bsplib.apps.paradigms.errors import do

Task = TypeVar("Task")
Result = TypeVar("Result")
Work = Callable[[Task], Result]

_PARTS = 3
"""A round takes this part of the work that is left; queues hold twice as much."""
_DOUBT = 16
"""How many tasks of a process count as much as the average over all processes."""
_CLOCK_S = 1e-9
"""The least time of a task that is told from none."""
_OF_LONGEST = 0.5
"""A round takes at least this part of the longest task so far: a shorter one ends with many
processes waiting for one."""


class _Share(NamedTuple):
    """What process 0 sends."""

    tasks: list[tuple[int, Any]]
    """Numbers and tasks."""
    until_s: float
    """When to report, in seconds since the farm began."""
    most: float
    """After how many tasks to report, at the latest."""
    is_last: bool


class _Report(NamedTuple):
    """What process 0 receives."""

    results: list[tuple[int, Any]]
    left: int
    """Tasks in the queue."""
    spent_s: float
    """Time in tasks."""
    longest_s: float
    """Time of the longest of them."""
    at_s: float
    """When, in seconds since the farm began."""


class _Queue:
    """The tasks that a process has and has not done."""

    def __init__(self, bsp: bsplib.Group, work: Work[Any, Any]) -> None:
        self._bsp, self._work = bsp, work
        self._began = bsp.time()
        self._tasks: deque[tuple[int, Any]] = deque()

    def now(self) -> float:
        """Return the seconds since the farm began."""
        return self._bsp.time() - self._began

    def do(self, share: _Share) -> _Report:
        """Add the tasks of a share, and work until it is time to report."""
        self._tasks += share.tasks
        began, longest, results = self.now(), 0.0, []
        now = began
        while self._tasks:
            number, task = self._tasks.popleft()
            results.append((number, do(self._work, task, what=f"task {number}")))
            before, now = now, self.now()
            longest = max(longest, now - before)
            is_time = len(results) >= share.most or now >= share.until_s
            if is_time and not share.is_last:
                break
        return _Report(results, len(self._tasks), now - began, longest, now)


@dataclass
class _Bag:
    """What process 0 knows: the tasks that no process has, and the queues of all."""

    pool: deque[tuple[int, Any]]
    reports: list[_Report]
    """The last one of each process."""
    given: list[int]
    """How many tasks each process was given since the tasks that its report counts."""
    sums: list[tuple[int, float]]
    """How many tasks each process has done, and in how many seconds."""
    done: int = 0
    spent_s: float = 0.0
    longest_s: float = 0.0
    until_s: float = 0.0
    """When the round that was planned last ends."""
    is_begun: bool = False

    def shares(self, now: float) -> list[_Share]:
        """Return what each process gets for the round after this one, by pid."""
        if not self.done:
            return self._first_shares()
        mean = max(self.spent_s / self.done, _CLOCK_S)
        means = [self._mean(pid, mean) for pid in range(len(self.reports))]
        queues = [self._queue(pid, now, own) for pid, own in enumerate(means)]
        left = len(self.pool) * mean + sum(queues)
        round_s = max(mean, left / (_PARTS * len(queues)), _OF_LONGEST * self.longest_s)
        self.until_s = max(now, self.until_s) + round_s
        is_known = len(self.pool) <= len(queues) or self.done > 2 * len(queues)
        dealt = self._deal(queues, means, 2 * round_s if is_known else round_s)
        shares = [_Share(tasks, self.until_s, inf, not self.pool) for tasks in dealt]
        return self._with_first(shares, mean)

    def _first_shares(self) -> list[_Share]:
        """Plan the first two rounds, before any process has reported how long a task takes.

        In the first round each process does at most one task.
        """
        queues = [float(given) for given in self.given]
        each = max(1, (len(self.pool) + sum(queues)) // (_PARTS * len(queues)))
        dealt = self._deal(queues, [1.0] * len(queues), each)
        most = max(1, each // 4) if self.is_begun else 1
        self.is_begun = True
        shares = [_Share(tasks, inf, most, not self.pool) for tasks in dealt]
        return self._with_first(shares, 0.0)

    def _with_first(self, shares: list[_Share], mean: float) -> list[_Share]:
        """Let process 0 work until the last of the others reports, by what can be expected."""
        later = log(len(shares))
        first, *others = shares
        own = first._replace(until_s=first.until_s + later * mean, most=first.most + ceil(later))
        return [own, *others]

    def _mean(self, pid: int, mean: float) -> float:
        """Return the time of a task on a process: its own as far as it has done many."""
        done, spent = self.sums[pid]
        return (spent + _DOUBT * mean) / (done + _DOUBT)

    def _queue(self, pid: int, now: float, mean: float) -> float:
        """Return for how many seconds a process has tasks by now, as far as is known."""
        report = self.reports[pid]
        return max(0.0, (report.left + self.given[pid]) * mean - (now - report.at_s))

    def _deal(
        self, queues: Sequence[float], means: Sequence[float], most: float
    ) -> list[list[tuple[int, Any]]]:
        """Fill the shortest queues first, each up to a time."""
        tasks: list[list[tuple[int, Any]]] = [[] for _ in queues]
        shortest = [(length, pid) for pid, length in enumerate(queues)]
        heapq.heapify(shortest)
        while self.pool and shortest[0][0] < most:
            length, pid = shortest[0]
            tasks[pid].append(self.pool.popleft())
            heapq.heapreplace(shortest, (length + means[pid], pid))
        self.given = [had + len(more) for had, more in zip(self.given, tasks, strict=True)]
        return tasks

    def hear(self, pid: int, report: _Report) -> None:
        """Note what a process has done and has left."""
        before = self.reports[pid]
        self.given[pid] -= report.left + len(report.results) - before.left
        self.reports[pid] = report
        done, spent = self.sums[pid]
        self.sums[pid] = done + len(report.results), spent + report.spent_s
        self.done += len(report.results)
        self.spent_s += report.spent_s
        self.longest_s = max(self.longest_s, report.longest_s)


def farm(
    bsp: bsplib.Group, work: Work[Task, Result], tasks: Iterable[Task] | None = None
) -> list[Result] | None:
    """Do tasks of unknown and uneven cost on all processes; process 0 has the results in order.

    Tasks are given out in their order. Tasks known to be long had better come first: a long one
    that comes late keeps the others waiting.

    Args:
        bsp: the group; all its processes call this, and process 0 works, too.
        work: is called with a task, on any process; does nothing with ``bsp``.
        tasks: on process 0, anything that can be sent; what other processes give is not used.

    Returns:
        On process 0 what ``work`` returned, in the order of the tasks; None on the others.

    Raises:
        TaskError: a task failed, on the process that did it; the text has its number.
        TypeError: process 0 gives no tasks.

    Cost: two supersteps a round, all of which end with oblsync, and about log(n/p) / log(3/2)
    rounds; each process receives its tasks, and process 0 all results. Messages that were received
    before the call are lost.
    Source: Gonzalez et al., section 1.
    """
    if bsp.pid:
        _work(bsp, _Queue(bsp, work))
        return None
    if tasks is None:
        raise TypeError("farm: process 0 gives the tasks, and gave None")
    return _lead(bsp, _Queue(bsp, work), list(tasks))


def _work(bsp: bsplib.Group, queue: _Queue) -> None:
    """Work as process 0 says."""
    bsp.oblsync(1)
    share = _received(bsp)
    while not share.is_last:
        report = queue.do(share)
        bsp.oblsync(1)
        share = _received(bsp)
        bsp.send(0, report)
        bsp.oblsync(0)
    bsp.send(0, queue.do(share))
    bsp.oblsync(0)


def _received(bsp: bsplib.Group) -> _Share:
    ((_, _, share),) = bsp.messages()
    return share


def _lead(bsp: bsplib.Group, queue: _Queue, tasks: Sequence[Any]) -> list[Any]:
    """Give out tasks, and work."""
    nothing = [_Report([], 0, 0.0, 0.0, 0.0)] * bsp.nprocs
    bag = _Bag(deque(enumerate(tasks)), nothing, [0] * bsp.nprocs, [(0, 0.0)] * bsp.nprocs)
    results = [None] * len(tasks)
    following: _Share | None = _give(bsp, bag.shares(queue.now()))
    while following is not None:
        share = following
        following = None if share.is_last else _give(bsp, bag.shares(queue.now()))
        mine = queue.do(share)
        bsp.oblsync(bsp.nprocs - 1)
        for pid, report in _reports(bsp, mine):
            bag.hear(pid, report)
            for number, result in report.results:
                results[number] = result
    return results


def _give(bsp: bsplib.Group, shares: list[_Share]) -> _Share:
    for pid in range(1, bsp.nprocs):
        bsp.send(pid, shares[pid])
    bsp.oblsync(0)
    return shares[0]


def _reports(bsp: bsplib.Group, mine: _Report) -> Iterator[tuple[int, _Report]]:
    yield 0, mine
    for pid, _, report in bsp.messages():
        yield pid, report


def split(
    bsp: bsplib.Group,
    work: Work[Task, Result],
    tasks: Iterable[Task] | None = None,
    *,
    in_turn: bool = False,
) -> list[Result] | None:
    """Do the same with as many tasks on each process: what a farm is compared with.

    Args:
        bsp: the group; all its processes call this.
        work: is called with a task, on any process.
        tasks: on process 0.
        in_turn: whether the tasks are dealt one by one, and not in blocks of neighbours.

    Returns:
        On process 0 the results, in the order of the tasks; None on the others.

    Raises:
        TaskError: a task failed, on the process that did it.
        TypeError: process 0 gives no tasks.

    Cost: 2 supersteps, a scatter and a gather.
    """
    parts = None
    if bsp.pid == 0:
        if tasks is None:
            raise TypeError("split: process 0 gives the tasks, and gave None")
        numbered = list(enumerate(tasks))
        p, each = bsp.nprocs, ceil(len(numbered) / bsp.nprocs)
        blocks = [numbered[pid * each : (pid + 1) * each] for pid in range(p)]
        parts = [numbered[pid::p] for pid in range(p)] if in_turn else blocks
    mine = bsp.scatter(parts)
    found = [(number, do(work, task, what=f"task {number}")) for number, task in mine]
    done = bsp.gather(found)
    if done is None:
        return None
    return [result for _, result in sorted((pair for part in done for pair in part), key=_number)]


def _number(pair: tuple[int, Any]) -> int:
    return pair[0]
