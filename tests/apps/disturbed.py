"""The sample sort and the SQL plan, disturbed in one known way at one known place.

The applications are not changed: they get a group that, before a primitive is called in a
given function, computes or sends more than it was asked to. Their ``begin`` is called at each
stage and query, and adds supersteps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import bsplib
from bsplib.apps.sorting.keys import block_of
from bsplib.apps.sorting.sample_sort import sort_blocks
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.plan import STAGES
from bsplib.apps.sql.program import balance_inputs, read_inputs
from bsplib.apps.sql.queries import sql_process
from bsplib.machine import load_machine
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import GraphBook, book_graph
from bsplib.recording.trace import read_trace

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = load_machine("shared-memory")
STRAGGLER = 1
"""The process that is disturbed, where it is always the same one."""
ONCE = 4
"""The pass that is disturbed, where it is only one."""

Act = Callable[[bsplib.Group, int], object]
"""Disturbs a process; called with the number of the pass."""
Main = Callable[[bsplib.Group, "Setting"], None]
Begin = Callable[[str], object]
"""Called at the begin of each stage of a sort, and of each query."""


class Disturbed:
    """A group that disturbs its process before a primitive is called at one place.

    No function of this class is on the stack while the primitive is executed, so that the
    recorded call stacks are those of the application.

    Args:
        bsp: the group.
        place: file, function and primitive.
        act: disturbs the process.
    """

    def __init__(self, bsp: bsplib.Group, place: tuple[str, str, str], act: Act) -> None:
        self._bsp = bsp
        self._place = place
        self._act = act
        self._passed = 0

    def __getattr__(self, name: str) -> Any:
        code = sys._getframe(1).f_code
        file, function, primitive = self._place
        if (name, code.co_name) == (primitive, function) and code.co_filename.endswith(file):
            self._act(self._bsp, self._passed)
            self._passed += 1
        return getattr(self._bsp, name)


# -- the applications -----------------------------------------------------------------------------


@dataclass(frozen=True)
class App:
    """An application, and how often it passes the places that are disturbed."""

    run: Callable[[Any, Begin], object]
    sorts: int
    stage: str
    """The stage or query that begins after next to no work."""
    stages: int
    """How often that begins."""


def sort_batches(bsp: Any, begin: Begin) -> None:
    """Sort three batches of keys."""
    for batch in range(SORTS.sorts):
        keys = block_of(2**14, bsp.pid, bsp.nprocs, seed=batch)
        sort_blocks(bsp, keys, sample_sort="bitonic", seed=batch, begin=begin)


def query(bsp: Any, begin: Begin) -> None:
    """Evaluate the queries of the paper in its last stage."""
    inputs = balance_inputs(bsp, read_inputs(bsp, Generator(12_000, skew=0), block=64))
    sql_process(bsp, inputs, STAGES["bitonic"], begin=begin)


SORTS = App(sort_batches, sorts=3, stage="1 sort", stages=3)
QUERIES = App(query, sorts=4, stage="TEMP1", stages=1)
APPS = {"sorts": SORTS, "queries": QUERIES}


def splits(nprocs: int) -> int:
    """Return how often a sort passes ``split``: k (k + 1)/2, with k = log2 p."""
    k = nprocs.bit_length() - 1
    return k * (k + 1) // 2


# -- what is planted ------------------------------------------------------------------------------

SPLIT = ("bitonic_sort.py", "split", "sync")
AGREE = ("sample_sort.py", "agree", "allgather")
EXCHANGE = ("sample_sort.py", "exchange", "sync")


@dataclass(frozen=True)
class Setting:
    """An application on some processes, and how much is lost."""

    app: App
    nprocs: int
    lost_s: float

    def each(self, passes: int) -> float:
        """Return how much longer a process computes in each pass, so that as much is lost."""
        return self.lost_s / passes / (1 - 1 / self.nprocs)

    @property
    def splits(self) -> int:
        """How often ``split`` is passed."""
        return self.app.sorts * splits(self.nprocs)


def unnoticed(_: str) -> None:
    """Begin a stage without more."""


def undisturbed(bsp: bsplib.Group, setting: Setting) -> None:
    """Run the application as it is."""
    setting.app.run(bsp, unnoticed)


def fixed(bsp: bsplib.Group, setting: Setting) -> None:
    """Let the same process compute longer in each pass."""
    more_s = setting.each(setting.splits) * (bsp.pid == STRAGGLER)
    setting.app.run(Disturbed(bsp, SPLIT, lambda bsp, _: bsp.charge(more_s)), unnoticed)


def rotating(bsp: bsplib.Group, setting: Setting) -> None:
    """Let another process compute longer in each pass."""
    more_s = setting.each(setting.splits)

    def act(bsp: bsplib.Group, number: int) -> None:
        bsp.charge(more_s * (bsp.pid == number % bsp.nprocs))

    setting.app.run(Disturbed(bsp, SPLIT, act), unnoticed)


def one_off(bsp: bsplib.Group, setting: Setting) -> None:
    """Let one process compute longer in one pass."""
    more_s = setting.each(1) * (bsp.pid == STRAGGLER)

    def act(bsp: bsplib.Group, number: int) -> None:
        bsp.charge(more_s * (number == ONCE))

    setting.app.run(Disturbed(bsp, SPLIT, act), unnoticed)


def behind_a_collective(bsp: bsplib.Group, setting: Setting) -> None:
    """Let the same process compute longer before a collective."""
    more_s = setting.each(setting.app.sorts) * (bsp.pid == STRAGGLER)
    setting.app.run(Disturbed(bsp, AGREE, lambda bsp, _: bsp.charge(more_s)), unnoticed)


def _bytes(setting: Setting) -> int:
    """Return the size of a transfer from or to all, so that enough is lost in each exchange.

    One process moves p - 1 of them, and the others one: (p - 1) (1 - 2/p) are lost.
    """
    of_one = (setting.nprocs - 1) * (1 - 2 / setting.nprocs) * MACHINE.g
    return round(setting.lost_s / setting.app.sorts / of_one)


def fan_in(bsp: bsplib.Group, setting: Setting) -> None:
    """Let all processes send more to process 0."""
    more = np.zeros(_bytes(setting), np.uint8)
    sink = bsp.zeros(len(more), np.uint8)

    def act(bsp: bsplib.Group, _: int) -> None:
        bsp.put(0, more, sink)

    setting.app.run(Disturbed(bsp, EXCHANGE, act), unnoticed)


def fan_out(bsp: bsplib.Group, setting: Setting) -> None:
    """Let one process send more to all others."""
    more = np.zeros(_bytes(setting), np.uint8)
    sink = bsp.zeros(len(more), np.uint8)

    def act(bsp: bsplib.Group, _: int) -> None:
        for pid in range(bsp.nprocs * (bsp.pid == STRAGGLER)):
            bsp.put(pid, more, sink)

    setting.app.run(Disturbed(bsp, EXCHANGE, act), unnoticed)


def repair(bsp: bsplib.Group, seconds: float) -> None:
    """End a superstep late, at a line of its own."""
    bsp.charge(seconds)
    bsp.sync()


def checkpoint(bsp: bsplib.Group, app: App, seconds: float, stage: str) -> None:
    """End a superstep, on one process after a repair."""
    if stage != app.stage:
        return
    if bsp.pid == STRAGGLER:
        repair(bsp, seconds)
    else:
        bsp.sync()


def branch(bsp: bsplib.Group, setting: Setting) -> None:
    """Let one process take another branch, and end its superstep there."""
    app = setting.app
    app.run(bsp, partial(checkpoint, bsp, app, setting.each(app.stages)))


def halves(bsp: bsplib.Group, setting: Setting, more_s: float = 0.0) -> None:
    """Run the application in two sub-groups, of which the second computes longer."""
    half = bsp.nprocs // 2
    with bsp.partition([half, bsp.nprocs]) as sub:
        slow = more_s * (bsp.pid >= half)
        setting.app.run(Disturbed(sub, SPLIT, lambda sub, _: sub.charge(slow)), unnoticed)
    bsp.sync()


def unequal_sub_groups(bsp: bsplib.Group, setting: Setting) -> None:
    """Let all processes of a sub-group compute longer; half of it is lost."""
    passes = setting.app.sorts * splits(bsp.nprocs // 2)
    halves(bsp, setting, 2 * setting.lost_s / passes)


def poll(bsp: bsplib.Group, app: App, count: int, stage: str) -> None:
    """End many supersteps without work."""
    for _ in range(count * (stage == app.stage)):
        bsp.sync()


def too_many_supersteps(bsp: bsplib.Group, setting: Setting) -> None:
    """Add supersteps at the begin of a stage or query."""
    assert MACHINE.l is not None
    app = setting.app
    app.run(bsp, partial(poll, bsp, app, round(setting.lost_s / app.stages / MACHINE.l)))


@dataclass(frozen=True)
class Fact:
    """A disturbance, and what the first sentence of the verdict has to name."""

    main: Main
    words: tuple[str, ...]
    without: Main = undisturbed
    """The same program without it."""


_SPLIT = ("in split (bitonic_sort.py line",)
_EXCHANGE = ("in exchange (sample_sort.py line", "called by sort_in_stages")
FACTS = {
    "fixed": Fact(fixed, ("process 1", *_SPLIT, "(fixed straggler)")),
    "rotating": Fact(rotating, ("another process each time", *_SPLIT, "(rotating straggler)")),
    "one-off": Fact(one_off, ("by process 1", *_SPLIT)),
    "collective": Fact(
        behind_a_collective,
        ("by process 1", "in agree (sample_sort.py line", "allgather)"),
    ),
    "branch": Fact(branch, ("by process 1", "in repair (disturbed.py line")),
    "fan-in": Fact(fan_in, ("to process 0", *_EXCHANGE, "(fan-in)")),
    "fan-out": Fact(fan_out, ("from process 1", *_EXCHANGE, "(fan-out)")),
    "sub-groups": Fact(
        unequal_sub_groups,
        (*_SPLIT, "(fixed straggler)"),
        without=halves,
    ),
    "supersteps": Fact(
        too_many_supersteps,
        ("in poll (disturbed.py line", "(too many supersteps"),
    ),
}


def start(bsp: bsplib.Group, main: Main, setting: Setting) -> None:
    """Run a program, all of whose computation is charged."""
    bsp.charge(0)
    main(bsp, setting)


def book_of_run(path: Path, main: Main, setting: Setting) -> GraphBook:
    """Run a program on virtual processors, and book what it costs."""
    how = {"nprocs": setting.nprocs, "backend": "sim", "machine": MACHINE}
    bsplib.run(start, main, setting, profile=path, **how)
    (run,) = read_trace(path).runs
    return book_graph(build(run))
