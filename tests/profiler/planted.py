"""Small programs that each lose time in one known way, and what a verdict must say about it.

Every program charges for its computation, so that on virtual processors it is the same in
every run. In each there is also a balanced part, which nothing may be said about.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bsplib
from tests.recordings import record_run

if TYPE_CHECKING:
    from pathlib import Path

    from bsplib.recording.records import Run

Main = Callable[[bsplib.Group], object]

MACHINE = bsplib.Machine("cluster", "by hand: 1 ns a byte, 10 us a superstep", g=1e-9, l=1e-5)
NPROCS = 8
ROUNDS = 10
"""How often most places are passed."""
WORK_S = 1e-3
"""What a process computes in a superstep, where nothing is wrong."""


@dataclass(frozen=True)
class Planted:
    """A program, and what the first sentence of its verdict has to name."""

    main: Main
    kind: str
    words: tuple[str, ...]
    """The kind, the process or the superstep, the function and its caller."""
    function: str
    """The function that contains the cost centre."""
    nprocs: int = NPROCS


# -- the balanced part of every program -----------------------------------------------------------


def prepare(bsp: bsplib.Group) -> None:
    """Compute equally long everywhere, and exchange as much with both neighbours."""
    for _ in range(ROUNDS):
        bsp.charge(WORK_S)
        bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(10_000))
        bsp.sync()


def balanced(bsp: bsplib.Group) -> None:
    """Lose nothing."""
    prepare(bsp)
    prepare(bsp)


# -- computation ----------------------------------------------------------------------------------


def relax(bsp: bsplib.Group, slow: int | None) -> None:
    """Compute in one superstep, three times as long on one process."""
    bsp.charge(3 * WORK_S if bsp.pid == slow else WORK_S)
    bsp.sync()


def coarse_grid(bsp: bsplib.Group) -> None:
    """Call ``relax`` with equal work."""
    for _ in range(ROUNDS):
        relax(bsp, None)


def fine_grid(bsp: bsplib.Group, slow: Callable[[int], int]) -> None:
    """Call ``relax`` with a straggler."""
    for turn in range(ROUNDS):
        relax(bsp, slow(turn))


def fixed(bsp: bsplib.Group) -> None:
    """Wait for process 5 in each superstep of ``relax``, when ``fine_grid`` calls it."""
    prepare(bsp)
    coarse_grid(bsp)
    fine_grid(bsp, lambda _: 5)


def rotating(bsp: bsplib.Group) -> None:
    """Wait for another process in each superstep."""
    prepare(bsp)
    coarse_grid(bsp)
    fine_grid(bsp, lambda turn: turn % bsp.nprocs)


def advance(bsp: bsplib.Group, step: int) -> None:
    """Compute for a tenth of the usual time; in one step process 3 takes much longer."""
    bsp.charge(0.1 if (step, bsp.pid) == (617, 3) else WORK_S / 10)
    bsp.sync()


def simulate(bsp: bsplib.Group) -> None:
    """Make a thousand steps."""
    for step in range(1000):
        advance(bsp, step)


def one_off(bsp: bsplib.Group) -> None:
    """Wait once in a thousand supersteps."""
    simulate(bsp)
    prepare(bsp)


def smooth(bsp: bsplib.Group) -> None:
    """What all processes but one do."""
    bsp.charge(WORK_S)
    bsp.sync()


def refine(bsp: bsplib.Group) -> None:
    """What one process does instead, at another line."""
    bsp.charge(4 * WORK_S)
    bsp.sync()


def adapt(bsp: bsplib.Group) -> None:
    """Refine on process 6, smooth elsewhere."""
    for _ in range(ROUNDS):
        if bsp.pid == 6:
            refine(bsp)
        else:
            smooth(bsp)


def branch(bsp: bsplib.Group) -> None:
    """Wait for a process that ends its supersteps at another line."""
    prepare(bsp)
    adapt(bsp)


def norm(bsp: bsplib.Group) -> float:
    """Add up the squares of all processes; process 4 has more of them."""
    bsp.charge(4 * WORK_S if bsp.pid == 4 else WORK_S)
    return float(bsp.allreduce(1.0))


def solve(bsp: bsplib.Group) -> None:
    """Iterate until the norm is small."""
    for _ in range(ROUNDS):
        norm(bsp)


def behind_a_collective(bsp: bsplib.Group) -> None:
    """Wait in a collective, inside of which the superstep ends."""
    prepare(bsp)
    solve(bsp)


# -- transfers ------------------------------------------------------------------------------------


def collect(bsp: bsplib.Group) -> None:
    """Send results to process 0."""
    bsp.charge(WORK_S)
    bsp.send(0, bytes(1_000_000))
    bsp.sync()


def report(bsp: bsplib.Group) -> None:
    """Collect all results."""
    for _ in range(ROUNDS):
        collect(bsp)


def fan_in(bsp: bsplib.Group) -> None:
    """Wait until process 0 has received the results of all."""
    prepare(bsp)
    report(bsp)


def deal_out(bsp: bsplib.Group) -> None:
    """Send parts of the input from process 2 to all."""
    bsp.charge(WORK_S)
    if bsp.pid == 2:
        for pid in range(bsp.nprocs):
            bsp.send(pid, bytes(1_000_000))
    bsp.sync()


def read_input(bsp: bsplib.Group) -> None:
    """Deal out the input piece by piece."""
    for _ in range(ROUNDS):
        deal_out(bsp)


def fan_out(bsp: bsplib.Group) -> None:
    """Wait until process 2 has sent its input to all."""
    prepare(bsp)
    read_input(bsp)


# -- sub-groups and supersteps --------------------------------------------------------------------


def search(sub: bsplib.Group, turns: int) -> None:
    """Search one half of the space."""
    for _ in range(turns):
        sub.charge(WORK_S)
        sub.sync()


def divide(bsp: bsplib.Group) -> None:
    """Search both halves in sub-groups of equal size, one of which has five times the work."""
    with bsp.partition([bsp.nprocs // 2, bsp.nprocs]) as sub:
        search(sub, ROUNDS if bsp.pid < bsp.nprocs // 2 else 5 * ROUNDS)
    bsp.sync()


def partitioned(bsp: bsplib.Group) -> None:
    """Wait for the sub-group of the processes 4 to 7."""
    prepare(bsp)
    divide(bsp)


def deal_in_colours(bsp: bsplib.Group) -> None:
    """Search in sub-groups of even and odd processes; the odd ones have more to do."""
    with bsp.split(bsp.pid % 2) as sub:
        search(sub, ROUNDS if bsp.pid % 2 == 0 else 5 * ROUNDS)
    bsp.sync()


def split(bsp: bsplib.Group) -> None:
    """Wait for the sub-group of the processes 1, 3, 5 and 7."""
    prepare(bsp)
    deal_in_colours(bsp)


def divide_inside(bsp: bsplib.Group) -> None:
    """Search both halves as `divide` does, in sub-groups of a sub-group of all processes."""
    with bsp.partition([bsp.nprocs]) as everyone:
        half = everyone.partition([bsp.nprocs // 2, bsp.nprocs])
        search(half, ROUNDS if bsp.pid < bsp.nprocs // 2 else 5 * ROUNDS)
        half.done()
    bsp.sync()


def nested(bsp: bsplib.Group) -> None:
    """Wait for the sub-group of the processes 4 to 7, not for that of all."""
    prepare(bsp)
    divide_inside(bsp)


def exchange_borders(bsp: bsplib.Group) -> None:
    """Compute for a microsecond, and exchange eight bytes."""
    bsp.charge(1e-6)
    bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(8))
    bsp.sync()


def iterate(bsp: bsplib.Group) -> None:
    """Make many small steps."""
    for _ in range(1000):
        exchange_borders(bsp)


def too_many(bsp: bsplib.Group) -> None:
    """Pay l for more supersteps than the work is worth."""
    prepare(bsp)
    iterate(bsp)


PROGRAMS = {
    "fixed": Planted(
        fixed, "fixed", ("fixed straggler", "process 5", "relax", "called by fine_grid"), "relax"
    ),
    "rotating": Planted(
        rotating,
        "rotating",
        ("rotating straggler", "another process each time", "relax", "called by fine_grid"),
        "relax",
    ),
    "one-off": Planted(
        one_off,
        "one-off",
        ("one-off straggler", "superstep 617", "process 3", "advance", "called by simulate"),
        "advance",
    ),
    "branch": Planted(
        branch,
        "fixed",
        ("fixed straggler", "branch", "process 6", "refine"),
        "refine",
    ),
    "collective": Planted(
        behind_a_collective,
        "fixed",
        ("fixed straggler", "process 4", "norm", "allreduce", "called by solve"),
        "norm",
    ),
    "fan-in": Planted(
        fan_in, "fan-in", ("fan-in", "to process 0", "collect", "called by report"), "collect"
    ),
    "fan-out": Planted(
        fan_out,
        "fan-out",
        ("fan-out", "from process 2", "deal_out", "called by read_input"),
        "deal_out",
    ),
    "partition": Planted(
        partitioned,
        "fixed",
        ("processes 4 to 7 in 40 of 50 supersteps", "search", "called by divide"),
        "search",
    ),
    "nested sub-groups": Planted(
        nested,
        "fixed",
        ("processes 4 to 7 in 40 of 50 supersteps", "search", "called by divide_inside"),
        "search",
    ),
    "split": Planted(
        split, "fixed", ("processes 1, 3, 5, 7 in 40 of 50 supersteps", "search"), "search"
    ),
    "too many supersteps": Planted(
        too_many,
        "too many supersteps",
        ("too many supersteps", "1000 supersteps", "exchange_borders"),
        "exchange_borders",
    ),
    "balanced": Planted(balanced, "balanced", ("Balanced",), ""),
}


def recorded(path: Path, planted: Planted, backend: str = "sim") -> Run:
    """Run a program, and read its trace."""
    return record_run(path, planted.main, nprocs=planted.nprocs, backend=backend, machine=MACHINE)


# -- on real processes ----------------------------------------------------------------------------


def busy(seconds: float) -> None:
    """Compute for some seconds of a core, however many others wait for it."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def slow_in_place(bsp: bsplib.Group, slow: int) -> None:
    """Compute, on one process for much longer."""
    busy(0.03 if bsp.pid == slow else 1e-4)
    bsp.sync()


def real_straggler(bsp: bsplib.Group, slow: int = 1) -> None:
    """Wait for process 1 ten times."""
    for _ in range(10):
        slow_in_place(bsp, slow)


def real_fan_in(bsp: bsplib.Group) -> None:
    """Send enough to process 0 that its price on the Machine is not small beside the start."""
    data = bytes(1_000_000)
    for _ in range(100):
        bsp.send(0, data)
        bsp.sync()


def real_branch(bsp: bsplib.Group) -> None:
    """Wait for process 1, which ends its supersteps in another function."""
    for _ in range(10):
        if bsp.pid == 1:
            slow_in_place(bsp, 1)
        else:
            busy(1e-4)
            bsp.sync()


REAL = {
    "fixed": Planted(
        real_straggler,
        "fixed",
        ("fixed straggler", "process 1", "slow_in_place"),
        "slow_in_place",
        nprocs=3,
    ),
    "branch": Planted(
        real_branch,
        "fixed",
        ("fixed straggler", "branch", "process 1", "slow_in_place"),
        "slow_in_place",
        nprocs=3,
    ),
    "fan-in": Planted(
        real_fan_in,
        "fan-in",
        ("fan-in", "to process 0", "real_fan_in"),
        "real_fan_in",
        nprocs=4,
    ),
}
