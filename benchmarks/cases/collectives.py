"""The collectives of numbers and arrays, beside those of mpi4py, into new and given arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from benchmarks import programs
from benchmarks.cases.primitives import sampler
from benchmarks.collective_calls import NAMES
from benchmarks.measure import Case, Section
from benchmarks.mpi import started

_SECONDS = 0.02
"""About so long is a sample."""


def _cases(
    nprocs: int, nbytes: int, names: Sequence[str], given: bool, stack: ExitStack
) -> Sequence[Case]:
    size, ours = nbytes // 8, sampler(stack, nprocs)
    # A superstep of many processes takes at least some microseconds for each of them.
    count = round(max(3, min(2000, _SECONDS / (5e-6 * nprocs + nbytes * 1e-9))))
    theirs = list(started(stack, nprocs))
    cases = []
    for name in names:
        what = {"count": count, "name": name, "size": size, "given": given}
        for title, sample in theirs:
            cases.append(Case(f"{title}, {name}", partial(sample, "collectives", **what)))
        cases.append(Case(name, partial(ours, programs.collectives, **what)))
    return cases


def _section(nprocs: int, nbytes: int, names: Sequence[str], *, given: bool = False) -> Section:
    size = f"{nbytes} B" if nbytes < 2**10 else f"{nbytes // 2**10} KiB"
    title = f"p = {nprocs}, {size}" + ", into given arrays" * given
    return Section(title, "collective", partial(_cases, nprocs, nbytes, names, given))


_LARGE = ("allreduce", "broadcast", "alltoall", "scan")

SECTIONS = (
    _section(2, 8, NAMES),
    _section(16, 8, NAMES[:1]),
    _section(2, 2**16, _LARGE[:3]),
    _section(2, 2**23, _LARGE),
    _section(2, 2**23, _LARGE, given=True),
)
