"""What is predicted: programs, what their costs are made of, and how they are measured.

An experiment is a program that all processes begin together, at a sync, with data and
memory made before. Its computation and its communication have a formula each, from the
analysis of the program under OBSP*, in N values, P processes, S records of a sample, R
sorts of a block, and M and C: the seconds by which the memory of this computer delays
the computation and the communication of a process whose data are too many for the caches.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bsplib
from apps.fourier import common, fft
from apps.prediction.memory import LINE, Memory, Stream, memory_of
from apps.prediction.memory import main as measure_memory
from apps.sorting import sample_sort
from apps.sorting.keys import block_of
from apps.sorting.order import merges
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind
from profiler.models.repeats import between, undisturbed
from profiler.models.timeline import lay_out


class Shape(NamedTuple):
    """What a run is like."""

    size: int
    """N values."""
    nprocs: int
    oversampling: int = sample_sort.OVERSAMPLING
    """s of the sample sort: S = s P^2 records are sampled."""


Program = Callable[[Any], object]
"""Does once what is measured; is given the group."""


class Streams(NamedTuple):
    """What a process goes through in its memory."""

    computation: list[Stream]
    communication: list[Stream]


_KEPT: dict[int, Program] = {}
"""By pid, what was run last in this process of the system."""
_WARM_UP_S = 0.1
_LEAST_WARM_UPS = 3
_MOST_WARM_UPS = 400
_COMPLEX = 16
_VARIETY = 2**17
"""Keys of a process before the same ones come again: a processor learns how few of them
compare, and then merges them without a wrong guess."""
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
    streams: Callable[[Shape, int], Streams]
    """Of a run, and of how many processors one core has the data in its caches."""
    processes: tuple[int, ...]
    """Numbers of processes for small runs."""
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

    def small(self, most: int, within: int | None = None, *, fine: bool = False) -> list[Shape]:
        """Return the small runs: of 2^10 values, twice as many, and so on.

        Args:
            most: values.
            within: processes; no run has more.
            fine: of half as many values more than these as well.
        """
        sizes = [2**power for power in range(10, most.bit_length())]
        if fine:
            sizes = sorted([*sizes, *(size * 3 // 2 for size in sizes if size * 3 // 2 <= most)])
        counts = [count for count in self.processes if within is None or count <= within]
        shapes = itertools.product(sizes, counts or [1], self.oversamplings)
        return [
            Shape(size, count, s)
            for size, count, s in shapes
            if s == self.oversamplings[0] or s * count**2 <= size
        ]

    def variables(
        self, memory: Memory, shapes: Sequence[Shape], *, virtual: bool
    ) -> dict[str, list[float]]:
        """Return N, P, S, R, M and C of runs.

        Args:
            memory: of this computer.
            shapes: of the runs.
            virtual: all processors of a run take turns on one core, and what they send
                has a price and takes no time.
        """
        streams = [self.streams(shape, shape.nprocs if virtual else 1) for shape in shapes]
        return {
            "N": [float(size) for size, _, _ in shapes],
            "P": [float(count) for _, count, _ in shapes],
            "S": [float(s * count**2) for _, count, s in shapes],
            "R": [1.0 if merges(_KEYS, count) else 2.0 for _, count, _ in shapes],
            "M": [memory.delay(computation) for computation, _ in streams],
            "C": [0.0 if virtual else memory.delay(sent) for _, sent in streams],
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
        runs = range(self.repeats)
        return memory_of(
            [bsplib.run(measure_memory, nprocs=count, backend=self.backend) for _ in runs]
        )

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
        # Decided once: all repeats have to make the same supersteps.
        counts = [max(self._run(_warm_ups, experiment.name, shape)) for shape in shapes]
        with tempfile.TemporaryDirectory(prefix="bsp-prediction-") as folder:
            paths = [Path(folder, f"{number}.bsp") for number in range(len(shapes))]
            for _ in range(self.repeats):
                for shape, count, path in zip(shapes, counts, paths, strict=True):
                    self._run(measured, experiment.name, shape, count, profile=path)
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
    """Return what the quickest of the stretches of some runs took between the last own syncs."""
    first, last = _own_syncs(runs[0])[-2:]
    quickest = undisturbed(runs, free=[last])
    chosen = between(quickest.timeline, first, last)
    booking = quickest.booking
    return Taken(float(booking.comp_s[chosen].sum()), float(booking.comm_s[chosen].sum()))


def measured(bsp: bsplib.Group, name: str, shape: Shape, warm_ups: int) -> None:
    """Run an experiment some times to warm up, and once more, from sync to sync.

    Processes that have just been started may share a core, until the system spreads them;
    memory that has just been given is written for the first time; instructions come from
    memory as well, so that what is measured is a turn of a loop and no special case. What
    the program works on outlives it: to give it back takes time, too.
    """
    program = _KEPT[bsp.pid] = EXPERIMENTS[name].prepare(bsp, shape)
    bsp.sync()
    for _ in range(warm_ups + 1):
        program(bsp)
        bsp.sync()


def _warm_ups(bsp: bsplib.Group, name: str, shape: Shape) -> int:
    """Return how often to run an experiment until it is warm."""
    program = EXPERIMENTS[name].prepare(bsp, shape)
    began, least = time.perf_counter(), math.inf
    while bsp.allreduce(time.perf_counter() - began, max) < _WARM_UP_S:
        start = time.perf_counter()
        program(bsp)
        least = min(least, time.perf_counter() - start)
    return min(max(int(_WARM_UP_S / least), _LEAST_WARM_UPS), _MOST_WARM_UPS)


def _own_syncs(run: Run) -> list[int]:
    """Return the positions of the steps that :func:`measured` itself ended."""
    records = run.records
    own = [
        stack[-1].function == measured.__qualname__ and stack[-1].file == __file__
        for stack in run.stacks
    ]
    ended = (records["group"] == 0) & (records["kind"] == Kind.SYNC)
    ended &= np.array(own)[records["stack"]]
    supersteps = set(records["superstep"][ended].tolist())
    return [
        number
        for number, step in enumerate(lay_out(run).steps)
        if step.group == 0 and step.superstep in supersteps
    ]


# -- the recursive Fourier transform ------------------------------------------------------------


def _prepare_fft(bsp: bsplib.Group, shape: Shape) -> Program:
    values = common.signal(shape.size, 0)
    plan = fft.prepare(bsp, shape.size)
    out = np.zeros_like(values)
    out[:] = 1  # the system gives memory when it is written, and takes its time

    def program(group: Any) -> None:
        fft.transform(group, out, values, plan)

    return program


def _streams_of_fft(shape: Shape, sharing: int) -> Streams:
    """Return what a transform goes through.

    One after the other all of this is used: N values, the transform, N/2 roots and N/2
    values from another process, and two arrays of N/P of the transform within a process.
    That one reads every P-th value, and with it the line of memory that it is in, writes
    two arrays of N/P, reads another, and goes through one of them four times more. At
    level d two halves of N/2^d values are written, of which one was there, the other
    one is read from the message, and as many roots; before, a half is sent.
    """
    size, nprocs, _ = shape
    own, levels = size // nprocs * _COMPLEX, round(math.log2(nprocs))
    halves = [size // 2**level * _COMPLEX for level in range(1, levels + 1)]
    whole = sharing * (3 * size * _COMPLEX + 2 * own)
    lines = own // _COMPLEX * min(nprocs * _COMPLEX, LINE)
    computation = [
        Stream(lines, whole, apart=nprocs * _COMPLEX > LINE),
        Stream(3 * own, whole),
        Stream(4 * own, 2 * own),
    ]
    computation += [Stream(4 * half, whole) for half in halves]
    return Streams(computation, [Stream(half, whole) for half in halves])


# -- the sample sort ----------------------------------------------------------------------------


def _prepare_sort(bsp: bsplib.Group, shape: Shape) -> Program:
    several = range(max(_VARIETY * bsp.nprocs // shape.size, 1))
    blocks = [block_of(shape.size, bsp.pid, bsp.nprocs, seed=seed) for seed in several]
    turns = itertools.cycle(blocks)

    def program(group: Any) -> None:
        sample_sort.sort_blocks(group, next(turns), oversampling=shape.oversampling)

    return program


def _streams_of_sort(shape: Shape, sharing: int) -> Streams:
    """Return what a sort goes through: three copies of the block, and two sorts of it."""
    block = shape.size // shape.nprocs * _KEY
    return Streams([Stream(8 * block, sharing * 4 * block)], [])


EXPERIMENTS: Mapping[str, Experiment] = {
    "fft": Experiment(
        name="fft",
        prepare=_prepare_fft,
        computation="f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P) + f[3]*N*(P-1)/P + M",
        communication="g[0]*log2(P) + g[1]*N*(P-1)/P + C",
        streams=_streams_of_fft,
        processes=(1, 2, 4),
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
        streams=_streams_of_sort,
        processes=(2, 3, 4),  # one does not exchange
        oversamplings=(sample_sort.OVERSAMPLING, 256, 1024),
    ),
}
