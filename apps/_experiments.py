"""What is predicted: programs, what their costs are made of, and how they are measured.

An experiment is a program that all processes begin together, at a sync, with data and
memory made before. Its computation and its communication have a formula each, from the
analysis of the program under OBSP*, in N values, P processes, and M: the seconds that
the memory of this computer needs for what a process streams through it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bsplib
from apps import _keys, _memory, fft, fourier, sample_sort
from apps._memory import Memory
from apps._metered import Metered
from bsplib.records import Kind, Run
from bsplib.trace import read_trace
from profiler.models.repeats import after, undisturbed

Program = Callable[[Any], object]
"""Does once what is measured; is given the group."""

_COMPLEX = 16
_LINE = 64
_KEY = 8


@dataclass(frozen=True)
class Experiment:
    """A program whose time is to be predicted."""

    name: str
    prepare: Callable[[bsplib.Group, int], Program]
    """Makes the data of a size; the program may be run any number of times."""
    computation: str
    """Formula of the computation."""
    communication: str
    """Formula of communication and synchronisation."""
    memory: Callable[[Memory, int, int], float]
    """M of so many values and processes."""
    processes: tuple[int, ...]
    """Numbers of processes for small runs on virtual processors."""
    halves: bool = False
    """The program halves values and processes: P is a power of two that divides N."""

    def check(self, size: int, nprocs: int) -> None:
        """Raise where the formulas do not hold for a run.

        Raises:
            ValueError: so it is.
        """
        if self.halves and (nprocs & (nprocs - 1) or size % nprocs):
            raise ValueError(
                f"{self.name}: {nprocs} processes and {size} values are not predicted; the number "
                f"of processes is a power of two that divides the number of values"
            )

    def variables(self, memory: Memory, runs: Sequence[tuple[int, int]]) -> dict[str, list[float]]:
        """Return N, P and M of runs, each a size and a number of processes."""
        return {
            "N": [float(size) for size, _ in runs],
            "P": [float(count) for _, count in runs],
            "M": [self.memory(memory, *run) for run in runs],
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

    def measure(self, experiment: Experiment, size: int, nprocs: int) -> Taken:
        """Run an experiment some times; return what it takes when nothing disturbs it."""
        with _trace() as path:
            for _ in range(self.repeats):
                bsplib.run(
                    measured,
                    experiment.name,
                    size,
                    charged=self.backend == "sim",
                    nprocs=nprocs,
                    backend=self.backend,
                    machine=self.machine,
                    profile=path,
                )
            runs = read_trace(path).runs
        quickest = undisturbed(runs)
        chosen = after(quickest.timeline, _last_own_sync(runs[0], quickest.timeline.steps))
        booking = quickest.booking
        return Taken(float(booking.comp_s[chosen].sum()), float(booking.comm_s[chosen].sum()))


def measured(bsp: bsplib.Group, name: str, size: int, *, charged: bool) -> None:
    """Run an experiment once to warm up, and once to be measured from the last sync here."""
    program = EXPERIMENTS[name].prepare(bsp, size)
    if charged:
        bsp.charge(0)  # from here on counts what is charged
    program(bsp)
    bsp.sync()
    if not charged:
        program(bsp)
        return
    metered = Metered(bsp)
    program(metered)
    metered.charge_since()


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


@contextmanager
def _trace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bsp-prediction-") as folder:
        yield Path(folder) / "runs.bsp"


# -- the recursive Fourier transform ------------------------------------------------------------


def _prepare_fft(bsp: bsplib.Group, size: int) -> Program:
    values = fourier.signal(size, 0)
    plan = fft.prepare(bsp, size)
    out = np.zeros_like(values)
    out[:] = 1  # the system gives memory when it is written, and takes its time

    def program(group: Any) -> None:
        fft.transform(group, out, values, plan)

    return program


def _memory_of_fft(memory: Memory, size: int, nprocs: int) -> float:
    """Return what streams through memory in a transform: the values, and each combination.

    At level d the two halves of N/2^d values are read, and twice as many are written.
    Every 2^(d-1)-th root of N/2 is read, and with it the line of memory that it is in.
    """
    own, levels = size // nprocs, round(math.log2(nprocs))
    stride = min(nprocs * _COMPLEX, _LINE)
    total = memory.seconds(own * stride, size * _COMPLEX)
    for level in range(1, levels + 1):
        half = size // 2**level
        roots = min(_COMPLEX * 2 ** (level - 1), _LINE)
        streamed = half * (4 * _COMPLEX + roots + _COMPLEX)
        total += memory.seconds(streamed, half * 3 * _COMPLEX + size * _COMPLEX / 2)
    return total


# -- the sample sort ----------------------------------------------------------------------------


def _prepare_sort(bsp: bsplib.Group, size: int) -> Program:
    block = _keys.block_of(size, bsp.pid, bsp.nprocs)

    def program(group: Any) -> None:
        sample_sort.sort_blocks(group, block)

    return program


def _memory_of_sort(memory: Memory, size: int, nprocs: int) -> float:
    """Return what streams through memory in a sort: three copies of the block."""
    block = size // nprocs * _KEY
    return memory.seconds(6 * block, 4 * block)


EXPERIMENTS: Mapping[str, Experiment] = {
    "fft": Experiment(
        name="fft",
        prepare=_prepare_fft,
        computation=("f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P) + f[3]*N*(P-1)/P + f[4]*M"),
        communication="g[0]*log2(P) + g[1]*N*(P-1)/P",
        memory=_memory_of_fft,
        processes=(2, 4),
        halves=True,
    ),
    "sort": Experiment(
        name="sort",
        prepare=_prepare_sort,
        computation=(
            "f[0] + f[1]*P + f[2]*(N/P)*log2(N/P) + f[3]*(N/P)*log2(P) + f[4]*P**2*log2(P) + f[5]*M"
        ),
        communication="g[0] + g[1]*P + g[2]*P*(P-1) + g[3]*N*(P-1)/P**2",
        memory=_memory_of_sort,
        processes=(1, 2, 3, 4),
    ),
}
