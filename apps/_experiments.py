"""What is predicted: programs, what their costs are made of, and how they are measured.

An experiment is a program that all processes begin together, at a sync, with data and
memory made before. Its computation and its communication have a formula each, from the
analysis of the program under OBSP*, in N values, P processes, S records of a sample, R
sorts of a block, and M: the seconds by which the memory of this computer delays a
process whose data are too many for the caches.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bsplib
from apps import _keys, _memory, fft, fourier, sample_sort
from apps._memory import Memory
from apps._metered import Metered
from apps._order import merges
from bsplib.records import Kind, Run
from bsplib.trace import read_trace
from profiler.models.repeats import after, undisturbed


class Shape(NamedTuple):
    """What a run is like."""

    size: int
    """N values."""
    nprocs: int
    oversampling: int = sample_sort.OVERSAMPLING
    """s of the sample sort: S = s P^2 records are sampled."""


Program = Callable[[Any], object]
"""Does once what is measured; is given the group."""

_KEPT: dict[int, Program] = {}
"""By pid, what was run last in this process of the system."""
_WARM_UP_S = 0.1
_LEAST_WARM_UPS = 3
_MOST_WARM_UPS = 400
_COMPLEX = 16
_LINE = 64
_KEYS = np.dtype(np.int64)
_KEY = _KEYS.itemsize


@dataclass(frozen=True)
class Experiment:
    """A program whose time is to be predicted."""

    name: str
    prepare: Callable[[bsplib.Group, Shape], Program]
    """Makes the data; the program may be run any number of times."""
    computation: str
    """Formula of the computation."""
    communication: str
    """Formula of communication and synchronisation."""
    memory: Callable[[Memory, Shape, int], float]
    """M of a run, and of how many processors one core has the data in its caches."""
    processes: tuple[int, ...]
    """Numbers of processes for small runs on virtual processors."""
    oversamplings: tuple[int, ...] = (sample_sort.OVERSAMPLING,)
    """For small runs; where a process has fewer values than it should sample there is none."""
    halves: bool = False
    """The program halves values and processes: P is a power of two that divides N."""

    def check(self, shape: Shape) -> None:
        """Raise where the formulas do not hold for a run.

        Raises:
            ValueError: so it is.
        """
        size, count, _ = shape
        if self.halves and (count & (count - 1) or size % count):
            raise ValueError(
                f"{self.name}: {count} processes and {size} values are not predicted; the number "
                f"of processes is a power of two that divides the number of values"
            )

    def small(
        self, most: int, counts: Iterable[int] | None = None, *, fine: bool = False
    ) -> list[Shape]:
        """Return the small runs: of 2^10 values, twice as many, and so on.

        Args:
            most: values.
            counts: of processes; ``processes`` if None.
            fine: of half as many values more than these as well.
        """
        sizes = [2**power for power in range(10, most.bit_length())]
        if fine:
            sizes = sorted([*sizes, *(size * 3 // 2 for size in sizes if size * 3 // 2 <= most)])
        shapes = itertools.product(sizes, counts or self.processes, self.oversamplings)
        return [
            Shape(size, count, s)
            for size, count, s in shapes
            if s == self.oversamplings[0] or s * count**2 <= size
        ]

    def variables(
        self, memory: Memory, shapes: Sequence[Shape], *, virtual: bool
    ) -> dict[str, list[float]]:
        """Return N, P, S, R and M of runs.

        Args:
            memory: of this computer.
            shapes: of the runs.
            virtual: all processors of a run take turns on one core.
        """
        return {
            "N": [float(size) for size, _, _ in shapes],
            "P": [float(count) for _, count, _ in shapes],
            "S": [float(s * count**2) for _, count, s in shapes],
            "R": [1.0 if merges(_KEYS, count) else 2.0 for _, count, _ in shapes],
            "M": [self.memory(memory, shape, shape.nprocs if virtual else 1) for shape in shapes],
        }


@dataclass(frozen=True)
class Taken:
    """What a run took, undisturbed."""

    comp_s: float
    comm_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.comp_s + self.comm_s


@dataclass(frozen=True)
class Place:
    """Where experiments are run."""

    backend: str
    machine: str
    repeats: int

    def memory(self, nprocs: int) -> Memory:
        """Measure the memory: with as many processes as compute at once."""
        count = 1 if self.backend == "sim" else nprocs
        return _memory.memory_of(bsplib.run(_memory.main, nprocs=count, backend=self.backend))

    def measure(
        self,
        experiment: Experiment,
        shapes: Sequence[Shape],
        advance: Callable[[], object] = lambda: None,
    ) -> list[Taken]:
        """Run an experiment some times; return what it takes when nothing disturbs it.

        The shapes take turns: what slows the computer for a while does so to all.

        Args:
            experiment: what is run.
            shapes: of the runs.
            advance: is called after each run.
        """
        charged = self.backend == "sim"
        # Decided once: all repeats have to make the same supersteps.
        counts = [max(self._run(_warm_ups, experiment.name, shape)) for shape in shapes]
        with tempfile.TemporaryDirectory(prefix="bsp-prediction-") as folder:
            paths = [Path(folder, f"{number}.bsp") for number in range(len(shapes))]
            for _ in range(self.repeats):
                for shape, count, path in zip(shapes, counts, paths, strict=True):
                    rest = {"charged": charged, "profile": path}
                    self._run(measured, experiment.name, shape, count, **rest)
                    advance()
            return [_taken(read_trace(path).runs) for path in paths]

    def _run(
        self, main: Callable[..., Any], name: str, shape: Shape, *args: Any, **options: Any
    ) -> list[Any]:
        return bsplib.run(
            main,
            name,
            shape,
            *args,
            nprocs=shape.nprocs,
            backend=self.backend,
            machine=self.machine,
            **options,
        )


def _taken(runs: Sequence[Run]) -> Taken:
    """Return what the quickest of the stretches of some runs took, from the last own sync on."""
    quickest = undisturbed(runs)
    chosen = after(quickest.timeline, _last_own_sync(runs[0], quickest.timeline.steps))
    booking = quickest.booking
    return Taken(float(booking.comp_s[chosen].sum()), float(booking.comm_s[chosen].sum()))


def measured(bsp: bsplib.Group, name: str, shape: Shape, warm_ups: int, *, charged: bool) -> None:
    """Run an experiment some times to warm up, and then from the last sync here on.

    Processes that have just been started may share a core, until the system spreads them;
    memory that has just been given is written for the first time. What the program works
    on outlives it: to give it back takes time, too.
    """
    program = _KEPT[bsp.pid] = EXPERIMENTS[name].prepare(bsp, shape)
    if charged:
        bsp.charge(0)  # from here on counts what is charged
    for _ in range(warm_ups):
        program(bsp)
    bsp.sync()
    if not charged:
        program(bsp)
        return
    metered = Metered(bsp)
    program(metered)
    metered.charge_since()


def _warm_ups(bsp: bsplib.Group, name: str, shape: Shape) -> int:
    """Return how often to run an experiment until it is warm."""
    program = EXPERIMENTS[name].prepare(bsp, shape)
    began, least = time.perf_counter(), math.inf
    while bsp.allreduce(time.perf_counter() - began, max) < _WARM_UP_S:
        start = time.perf_counter()
        program(bsp)
        least = min(least, time.perf_counter() - start)
    return min(max(int(_WARM_UP_S / least), _LEAST_WARM_UPS), _MOST_WARM_UPS)


def _last_own_sync(run: Run, steps: Sequence[Any]) -> int:
    """Return the position of the step that :func:`measured` itself ended last."""
    records = run.records
    own = [
        stack[-1].function == measured.__qualname__ and stack[-1].file == __file__
        for stack in run.stacks
    ]
    ended = (records["group"] == 0) & (records["kind"] == Kind.SYNC)
    ended &= np.array(own)[records["stack"]]
    superstep = int(records["superstep"][ended].max())
    return next(
        number
        for number, step in enumerate(steps)
        if (step.group, step.superstep) == (0, superstep)
    )


# -- the recursive Fourier transform ------------------------------------------------------------


def _prepare_fft(bsp: bsplib.Group, shape: Shape) -> Program:
    values = fourier.signal(shape.size, 0)
    plan = fft.prepare(bsp, shape.size)
    out = np.zeros_like(values)
    out[:] = 1  # the system gives memory when it is written, and takes its time

    def program(group: Any) -> None:
        fft.transform(group, out, values, plan)

    return program


def _memory_of_fft(memory: Memory, shape: Shape, sharing: int) -> float:
    """Return what memory delays a transform by.

    One after the other all of this is used: N values, the transform, N/2 roots and N/2
    values from another process, and two arrays of N/P of the transform within a process.
    That one reads every P-th value, and with it the line of memory that it is in, and goes
    six times through N/P values. At level d two halves of N/2^d values are written, of which
    one was there, the other one is read from the message, and every 2^(d-1)-th root is
    read, likewise with its line.
    """
    size, nprocs, _ = shape
    own, levels = size // nprocs, round(math.log2(nprocs))
    streamed = own * (min(nprocs * _COMPLEX, _LINE) + 6 * _COMPLEX)
    for level in range(1, levels + 1):
        streamed += size // 2**level * (3 * _COMPLEX + min(_COMPLEX * 2 ** (level - 1), _LINE))
    return memory.delay(streamed, sharing * _COMPLEX * (3 * size + 2 * own))


# -- the sample sort ----------------------------------------------------------------------------


def _prepare_sort(bsp: bsplib.Group, shape: Shape) -> Program:
    block = _keys.block_of(shape.size, bsp.pid, bsp.nprocs)

    def program(group: Any) -> None:
        sample_sort.sort_blocks(group, block, oversampling=shape.oversampling)

    return program


def _memory_of_sort(memory: Memory, shape: Shape, sharing: int) -> float:
    """Return what memory delays a sort by: three copies of the block, and two sorts of it."""
    block = shape.size // shape.nprocs * _KEY
    return memory.delay(8 * block, sharing * 4 * block)


EXPERIMENTS: Mapping[str, Experiment] = {
    "fft": Experiment(
        name="fft",
        prepare=_prepare_fft,
        computation="f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P) + f[3]*N*(P-1)/P + M",
        communication="g[0]*log2(P) + g[1]*N*(P-1)/P",
        memory=_memory_of_fft,
        processes=(2, 4),
        halves=True,
    ),
    "sort": Experiment(
        name="sort",
        prepare=_prepare_sort,
        computation=(
            "f[0] + f[1]*P + f[2]*R*(N/P)*log2(N/P) + f[3]*(2-R)*(N/P) "
            "+ f[4]*S + f[5]*S*log2(P) + M"
        ),
        communication="g[0] + g[1]*P + g[2]*S*(P-1)/P + g[3]*N*(P-1)/P**2",
        memory=_memory_of_sort,
        processes=(2, 3, 4),  # one does not exchange
        oversamplings=(sample_sort.OVERSAMPLING, 256, 1024),
    ),
}
