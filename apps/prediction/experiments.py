"""The experiments: programs to predict, the formulas of their costs, and their measurement.

An experiment is a program that all processes begin together, at a sync, with data and
memory prepared before. Its computation and its communication have a formula each, from the
analysis of the program under OBSP*. The variables are N values, P processes, S records of a
sample, R sorts of a block, and M and C: the seconds by which the memory of this computer
delays the computation and the communication of a process whose data do not fit into caches.
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
from bsplib.apps.fourier import common, fft
from bsplib.apps.prediction.memory import LINE, ByteStream, MemorySpeed
from bsplib.apps.prediction.memory import main as measure_memory
from bsplib.apps.sorting import sample_sort
from bsplib.apps.sorting.keys import block_of
from bsplib.apps.sorting.order import merges
from bsplib.profiler.models.replay import measured as book
from bsplib.profiler.timeline import Timeline
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from bsplib.running.options import BackendName
from bsplib.sync_kinds import Kind


class Shape(NamedTuple):
    """The parameters of a run."""

    size: int
    """N values."""
    nprocs: int
    oversampling: int = sample_sort.OVERSAMPLING
    """s of the sample sort: S = s P^2 records are sampled."""


Program = Callable[[Any], object]
"""A function that runs the measured program once, with the group as its argument."""


class Streams(NamedTuple):
    """The memory accesses of a process."""

    computation: list[ByteStream]
    communication: list[ByteStream]


_KEPT: dict[int, Program] = {}
"""For each pid, the program that was run last in this process of the system."""
_WARM_UP_S = 0.1
_LEAST_WARM_UPS = 3
_MOST_WARM_UPS = 400
_COMPLEX = 16
_VARIETY = 2**17
"""Number of keys of a process before the same keys are used again. With fewer keys, the
branch predictor of the core would learn their comparisons, and merging would be faster."""
_AT_ONCE = 8
"""numpy divides a block of keys until its parts have 2^8 keys or fewer, and sorts these by other
means, which take less time than 8 further divisions. So the time of a sort is that of the
log2(N/P) - 8 divisions, and a time for each key."""
_KEYS = np.dtype(np.int64)
_KEY = _KEYS.itemsize


@dataclass(frozen=True)
class MeasuredProgram:
    """A program whose time is predicted."""

    name: str
    prepare: Callable[[bsplib.Group, Shape], Program]
    """Prepares the data; the program may then be run any number of times."""
    computation: str
    """Formula of the computation."""
    communication: str
    """Formula of communication and synchronisation."""
    streams: Callable[[Shape, int], Streams]
    """The memory accesses of a run, given how many processors share the caches of a core."""
    processes: tuple[int, ...]
    """Numbers of processes for small runs."""
    oversamplings: tuple[int, ...] = (sample_sort.OVERSAMPLING,)
    """Oversampling factors for small runs; runs with fewer values than samples are left out."""
    halves: bool = False
    """Whether the program halves values and processes, so that P is a power of two dividing N."""

    def check(self, shape: Shape) -> None:
        """Check that the formulas are valid for a run.

        Raises:
            ValueError: they are not.
        """
        size, count, _ = shape
        if self.halves and (count & (count - 1) or size % count):
            raise ValueError(
                f"{self.name}: {count} processes and {size} values are not predicted; the number "
                f"of processes is a power of two that divides the number of values"
            )

    def small(self, most: int, within: int | None = None, *, fine: bool = False) -> list[Shape]:
        """Return the small runs: with 2^10 values, twice as many, and so on.

        Args:
            most: greatest number of values.
            within: greatest number of processes.
            fine: whether to add runs with 1.5 times as many values as each of these.
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
        self, memory: MemorySpeed, shapes: Sequence[Shape], *, virtual: bool
    ) -> dict[str, list[float]]:
        """Return the variables N, P, S, R, M and C of runs.

        Args:
            memory: the memory of this computer.
            shapes: the parameters of the runs.
            virtual: whether the runs are in virtual time: all processors then share one
                core, and communication is priced and takes no time.
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
    """The time of a run."""

    comp_s: float
    comm_s: float

    @property
    def total_s(self) -> float:
        """The sum of all parts."""
        return self.comp_s + self.comm_s


@dataclass(frozen=True)
class RunSetup:
    """The backend and the Machine on which experiments are run."""

    backend: BackendName
    machine: str
    repeats: int

    def memory(self, nprocs: int) -> list[list[list[float]]]:
        """Measure the memory, with as many processes as compute at the same time.

        Returns:
            For each repeat the results of all processes, as :func:`memory_of` takes them.
        """
        count = 1 if self.backend == "sim" else nprocs
        return [
            bsplib.run(measure_memory, nprocs=count, backend=self.backend)
            for _ in range(self.repeats)
        ]

    def measure(
        self,
        experiment: MeasuredProgram,
        shapes: Sequence[Shape],
        advance: Callable[[], object] = lambda: None,
    ) -> list[Taken]:
        """Run an experiment several times; return the times of the quickest runs.

        The shapes take turns, so that a disturbance of the computer affects all of them.

        Args:
            experiment: the experiment.
            shapes: the parameters of the runs.
            advance: is called after each run.
        """
        # Computed once, since all repeats must have the same supersteps.
        counts = [max(self._run(_warm_ups, experiment.name, shape)) for shape in shapes]
        with tempfile.TemporaryDirectory(prefix="bsp-prediction-") as folder:
            paths = [Path(folder, f"{number}.bsp") for number in range(len(shapes))]
            for _ in range(self.repeats):
                for shape, count, path in zip(shapes, counts, paths, strict=True):
                    self._run(measured, experiment.name, shape, count, profile=path)
                    advance()
            taken = [map(_taken, read_trace(path).runs) for path in paths]
            return [min(each, key=lambda one: one.total_s) for each in taken]

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


def _taken(run: Run) -> Taken:
    """Return the time between the last syncs of :func:`measured`; the last one does not count."""
    timeline = Timeline(run)
    first, last = _own_syncs(timeline)[-2:]
    booking, step = book(timeline), timeline.step
    comp_s, comm_s = booking.comp_s[timeline.position], booking.comm_s[timeline.position]
    return Taken(
        float(comp_s[(step > first) & (step <= last)].sum()),
        float(comm_s[(step > first) & (step < last)].sum()),
    )


def measured(bsp: bsplib.Group, name: str, shape: Shape, warm_ups: int) -> None:
    """Run an experiment several times to warm up, and once more, from sync to sync.

    Without the warm-up the time would include effects of the start: processes may share a
    core until the system distributes them, memory is written for the first time, and
    instructions are not in the caches. The data are kept after the run, since freeing them
    takes time, too.
    """
    program = _KEPT[bsp.pid] = EXPERIMENTS[name].prepare(bsp, shape)
    bsp.sync()
    for _ in range(warm_ups + 1):
        program(bsp)
        bsp.sync()


def _warm_ups(bsp: bsplib.Group, name: str, shape: Shape) -> int:
    """Return how often to run an experiment to warm up."""
    program = EXPERIMENTS[name].prepare(bsp, shape)
    began, least = time.perf_counter(), math.inf
    while bsp.allreduce(time.perf_counter() - began, max) < _WARM_UP_S:
        start = time.perf_counter()
        program(bsp)
        least = min(least, time.perf_counter() - start)
    return min(max(int(_WARM_UP_S / least), _LEAST_WARM_UPS), _MOST_WARM_UPS)


def _own_syncs(timeline: Timeline) -> list[int]:
    """Return the positions of the steps that ended with a sync of :func:`measured` itself."""
    run, records = timeline.run, timeline.run.records
    own = [
        stack[-1].function == measured.__qualname__ and stack[-1].file == __file__
        for stack in run.stacks
    ]
    ended = (records["group"] == 0) & (records["kind"] == Kind.SYNC)
    ended &= np.array(own)[records["stack"]]
    supersteps = set(records["superstep"][ended].tolist())
    return [
        number
        for number, step in enumerate(timeline.steps)
        if step.group == 0 and step.superstep in supersteps
    ]


# -- the recursive Fourier transform ------------------------------------------------------------


def _prepare_fft(bsp: bsplib.Group, shape: Shape) -> Program:
    values = common.signal(shape.size, 0)
    plan = fft.prepare(bsp, shape.size)
    out = np.zeros_like(values)
    out[:] = 1  # the system provides memory when it is first written, which takes time

    def program(group: Any) -> None:
        fft.transform(group, out, values, plan)

    return program


def _streams_of_fft(shape: Shape, sharing: int) -> Streams:
    """Return the memory accesses of a transform.

    The working set is N values, the transform, N/2 roots, N/2 values from another process,
    and two arrays of N/P values of the transform within a process. The latter reads every
    P-th value, and with it a whole cache line, writes two arrays of N/P values, reads
    another, and passes four more times over one of them. At level d it writes two halves of
    N/2^d values; it reads one of them from memory and the other from the message, with as
    many roots. Before this, it sends one half.
    """
    size, nprocs, _ = shape
    own, levels = size // nprocs * _COMPLEX, round(math.log2(nprocs))
    halves = [size // 2**level * _COMPLEX for level in range(1, levels + 1)]
    whole = sharing * (3 * size * _COMPLEX + 2 * own)
    lines = own // _COMPLEX * min(nprocs * _COMPLEX, LINE)
    computation = [
        ByteStream(lines, whole, apart=nprocs * _COMPLEX > LINE),
        ByteStream(3 * own, whole),
        ByteStream(4 * own, 2 * own),
    ]
    computation += [ByteStream(4 * half, whole) for half in halves]
    return Streams(computation, [ByteStream(half, whole) for half in halves])


# -- the sample sort ----------------------------------------------------------------------------


def _prepare_sort(bsp: bsplib.Group, shape: Shape) -> Program:
    several = range(max(_VARIETY * bsp.nprocs // shape.size, 1))
    blocks = [block_of(shape.size, bsp.pid, bsp.nprocs, seed=seed) for seed in several]
    turns = itertools.cycle(blocks)

    def program(group: Any) -> None:
        sample_sort.sort_blocks(group, next(turns), oversampling=shape.oversampling, charged=False)

    return program


def _streams_of_sort(shape: Shape, sharing: int) -> Streams:
    """Return the memory accesses of a sort: three copies of the block, and two sorts of it."""
    block = shape.size // shape.nprocs * _KEY
    return Streams([ByteStream(8 * block, sharing * 4 * block)], [])


EXPERIMENTS: Mapping[str, MeasuredProgram] = {
    "fft": MeasuredProgram(
        name="fft",
        prepare=_prepare_fft,
        computation="f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P) + f[3]*N*(P-1)/P + M",
        communication="g[0]*log2(P) + g[1]*N*(P-1)/P + C",
        streams=_streams_of_fft,
        processes=(1, 2, 4),
        halves=True,
    ),
    "sort": MeasuredProgram(
        name="sort",
        prepare=_prepare_sort,
        computation=(
            f"f[0] + f[1]*P + f[2]*R*(N/P)*max(log2(N/P)-{_AT_ONCE}, 0) + f[3]*R*(N/P) "
            "+ f[4]*(2-R)*(N/P) + f[5]*S + f[6]*S*log2(P) + M"
        ),
        communication="g[0] + g[1]*P + g[2]*S*(P-1)/P + g[3]*N*(P-1)/P**2",
        streams=_streams_of_sort,
        processes=(2, 3, 4),  # a single process exchanges nothing
        oversamplings=(sample_sort.OVERSAMPLING, 256, 1024),
    ),
}
