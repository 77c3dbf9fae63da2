"""Supersteps over MPI on one host, compared with the same exchange by mpi4py alone.

Ranks of one host exchange through shared memory unless told otherwise. Cases named *over MPI* tell
them; the others are what a program gets. The sections *inside a host* compare these with the
backend shm.

``python -m benchmarks.bench_mpi`` writes ``benchmarks/results/mpi.json``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import bsplib
from benchmarks import programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.mpi import Ranks
from bsplib.backends.mpi.launcher_environment import INSIDE
from tests.mpi_installations import ALL, Mpi
from tests.mpi_ranks import end, ranks_of

KIB = 2**10
MIB = 2**20


class _MpiSampler:
    """Processes of bsplib on the ranks of an MPI; they take samples on request.

    Args:
        stack: ends them.
        mpi: the MPI.
        nprocs: number of processes.
        through: ``mpi``, or ``memory`` that they share.
        backend: ``shm`` for processes without an MPI.
    """

    def __init__(
        self,
        stack: ExitStack,
        mpi: Mpi,
        nprocs: int,
        through: str = "mpi",
        backend: str = "mpi",
    ) -> None:
        self._through = through
        if backend == "mpi":
            stack.callback(end)
            stack.enter_context(ranks_of(mpi, nprocs))
        self._pool = stack.enter_context(bsplib.Pool(nprocs, backend=backend))

    def sample(self, program: Any, *args: Any, **kwargs: Any) -> float:
        """Run a program; return the seconds of process 0."""
        os.environ[INSIDE] = self._through  # it is looked up for each run
        seconds: float = self._pool.run(program, *args, **kwargs)[0]
        return seconds


def _ways(stack: ExitStack, mpi: Mpi, nprocs: int) -> dict[str, _MpiSampler]:
    """Return the ways in which ranks of one host can exchange, by the names in cases."""
    return {
        "": _MpiSampler(stack, mpi, nprocs, "memory"),
        " over MPI": _MpiSampler(stack, mpi, nprocs),
    }


def _empty(mpi: Mpi, nprocs: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare a sync that delivers nothing with a barrier."""
    barrier = f"{mpi.title}, Barrier"
    ways = _ways(stack, mpi, nprocs)
    theirs = stack.enter_context(Ranks(mpi, nprocs))
    goals = (Goal.seconds(50e-6),) if nprocs == 4 else ()
    return [
        Case(barrier, partial(theirs.sample, "barriers", count=count)),
        *(
            Case(f"sync{how}", partial(ours.sample, programs.supersteps, count), (barrier,), goals)
            for how, ours in ways.items()
        ),
    ]


def _empty_inside(mpi: Mpi, nprocs: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare a sync of ranks that share memory with that of processes of shm."""
    machines = [_MpiSampler(stack, mpi, nprocs, "memory", backend) for backend in ("shm", "mpi")]
    shm, mpi_sync = (partial(each.sample, programs.supersteps, count) for each in machines)
    return [
        Case("shm, sync", shm),
        Case("mpi, sync", mpi_sync, ("shm, sync",), (Goal.times(1.2, "shm, sync"),)),
    ]


def _exchange_inside(mpi: Mpi, nbytes: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare puts of ranks that share memory with those of processes of shm."""
    cases: list[Case] = []
    machines = {name: _MpiSampler(stack, mpi, 2, "memory", name) for name in ("shm", "mpi")}
    for what, unbuffered in (("put", False), ("hpput", True)):
        of = f"shm, {what}"
        for name, machine in machines.items():
            sample = partial(machine.sample, programs.puts, count, nbytes, unbuffered=unbuffered)
            against = ((of,), (Goal.times(1.2, of),)) if name == "mpi" else ()
            cases.append(Case(f"{name}, {what}", sample, *against))
    return cases


def _exchange(
    mpi: Mpi, nbytes: int, count: int, times: tuple[float, float], stack: ExitStack
) -> Sequence[Case]:
    """Compare a put to the other process with Isend and Irecv."""
    raw = f"{mpi.title}, Isend and Irecv"
    ways, theirs = _ways(stack, mpi, 2), stack.enter_context(Ranks(mpi, 2))
    cases = [Case(raw, partial(theirs.sample, "exchanges", count=count, nbytes=nbytes))]
    for how, ours in ways.items():
        put = partial(ours.sample, programs.puts, count, nbytes)
        hpput = partial(put, unbuffered=True)
        cases += [
            Case(f"put, sync{how}", put, (raw,), (Goal.times(times[0], raw),)),
            Case(f"hpput, sync{how}", hpput, (raw,), (Goal.times(times[1], raw),)),
        ]
    return cases


def _exchange_with_all(mpi: Mpi, nbytes: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare a put to every process with Alltoallv, whose sizes are known or not."""
    known, unknown = f"{mpi.title}, Alltoallv", f"{mpi.title}, sizes and Alltoallv"
    ways, theirs = _ways(stack, mpi, 4), stack.enter_context(Ranks(mpi, 4))
    raw = partial(theirs.sample, "exchanges_with_all", count=count, nbytes=nbytes)
    return [
        Case(known, raw),
        Case(unknown, partial(raw, sizes=True)),
        *(
            Case(
                f"puts, sync{how}",
                partial(ours.sample, programs.puts_to_all, count, nbytes),
                (known, unknown),
            )
            for how, ours in ways.items()
        ),
    ]


def _random_puts(mpi: Mpi, number: int, stack: ExitStack) -> Sequence[Case]:
    """Compare put_at with a sort by rank and an Alltoallv of the places and of the values."""
    raw, stable = (f"{mpi.title}, {what} and two Alltoallv" for what in ("argsort", "stable sort"))
    ours, theirs = _MpiSampler(stack, mpi, 2), stack.enter_context(Ranks(mpi, 2))
    return [
        Case(raw, partial(theirs.sample, "random_puts", count=5, number=number)),
        Case(stable, partial(theirs.sample, "random_puts", count=5, number=number, stable=True)),
        Case(
            "put_at, sync",
            partial(ours.sample, programs.random_puts, 5, number),
            against=(stable,),
            goals=(Goal.times(0.6, raw),),
        ),
    ]


def _sections(mpi: Mpi) -> Sequence[Section]:
    name = mpi.name
    return (
        Section(f"Empty superstep on {name}, p = 2", "superstep", partial(_empty, mpi, 2, 1000)),
        Section(f"Empty superstep on {name}, p = 4", "superstep", partial(_empty, mpi, 4, 1000)),
        Section(
            f"Put of 1 MiB and sync on {name}, p = 2",
            "superstep",
            partial(_exchange, mpi, MIB, 300, (2.0, 1.3)),
        ),
        Section(
            f"Put of 16 MiB and sync on {name}, p = 2",
            "superstep",
            partial(_exchange, mpi, 16 * MIB, 50, (2.0, 1.1)),
        ),
        Section(
            f"Put of 1 KiB to each process and sync on {name}, p = 4",
            "superstep",
            partial(_exchange_with_all, mpi, KIB, 300),
        ),
        Section(
            f"Empty superstep inside a host on {name}, p = 2",
            "superstep",
            partial(_empty_inside, mpi, 2, 5000),
        ),
        Section(
            f"Empty superstep inside a host on {name}, p = 4",
            "superstep",
            partial(_empty_inside, mpi, 4, 1000),
        ),
        Section(
            f"Put of 1 MiB and sync inside a host on {name}, p = 2",
            "superstep",
            partial(_exchange_inside, mpi, MIB, 300),
        ),
        Section(
            f"10^6 puts to random places by each of 2 on {name}",
            "word",
            partial(_random_puts, mpi, 10**6),
        ),
    )


SECTIONS = tuple(section for mpi in ALL if mpi.is_here() for section in _sections(mpi))

BENCHMARK = Benchmark("mpi", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
