"""The variation of virtual time from run to run, and what the simulator adds to it.

The figures are virtual times: the time that a run would take on its Machine.
``python -m benchmarks.bench_virtual`` writes ``benchmarks/results/virtual.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import bsplib
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from bsplib import Machine
from bsplib.apps.sorting import bitonic_sort
from bsplib.backends.launching import Times
from bsplib.running.overrides import overriding

MACHINE = Machine("benchmark", "by hand: 1 ns a byte, 1 µs a superstep", g=1e-9, l=1e-6)
_NPROCS = 64
_SUPERSTEPS = 50


def _virtual_s(main: Callable[..., Any], *args: Any, **more: Any) -> float:
    """Return the virtual seconds of a run."""
    told: list[Times] = []
    with overriding(report_times=told.append):
        bsplib.run(main, *args, backend="sim", machine=MACHINE, **more)
    return told[-1].parallel_s


def _sorts(_: ExitStack) -> Sequence[Case]:
    """Sort the same keys repeatedly: computation is measured, communication is priced."""
    sort = partial(_virtual_s, bitonic_sort.main, 2**17, nprocs=128, seed=1)
    return [Case("sim, p = 128", sort, goals=(Goal.spread(0.1),))]


def _to_all(bsp: bsplib.Group, charged: bool) -> float:
    """Return the virtual seconds of a superstep in which all put 8 B to all."""
    if charged:
        bsp.charge(0)
    x = bsp.zeros(bsp.nprocs)
    bsp.sync()
    began = bsp.time()
    for _ in range(_SUPERSTEPS):
        for pid in range(bsp.nprocs):
            bsp.put(pid, 1.0, x, offset=bsp.pid)
        bsp.sync()
    return (bsp.time() - began) / _SUPERSTEPS


def _puts(_: ExitStack) -> Sequence[Case]:
    """Compare a superstep with its price: the difference is the loop of the program."""
    price = MACHINE.price(8 * (_NPROCS - 1))

    def superstep(charged: bool) -> float:
        return max(bsplib.run(_to_all, charged, nprocs=_NPROCS, backend="sim", machine=MACHINE))

    return [
        Case("g h + l", lambda: price),
        Case("charged: puts, sync", partial(superstep, True), against=("g h + l",)),
        Case("measured: puts, sync", partial(superstep, False), against=("g h + l",)),
    ]


SECTIONS = (
    Section("Virtual time of a bitonic sort of 2^17 float64, p = 128", "run", _sorts, 11),
    Section(f"Virtual time of {_NPROCS} processes that put 8 B to all", "superstep", _puts, 11),
)
BENCHMARK = Benchmark("virtual", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
