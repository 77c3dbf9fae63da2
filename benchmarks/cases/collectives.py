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

_NPROCS = 2
_SECONDS = 0.02
"""About so long is a sample."""


def _cases(nbytes: int, given: bool, stack: ExitStack) -> Sequence[Case]:
    size, ours = nbytes // 8, sampler(stack, _NPROCS)
    count = round(max(3, _SECONDS / (1e-5 + nbytes * 1e-9)))
    theirs = list(started(stack, _NPROCS))
    cases = []
    for name in NAMES:
        what = {"count": count, "name": name, "size": size, "given": given}
        for title, sample in theirs:
            cases.append(Case(f"{title}, {name}", partial(sample, "collectives", **what)))
        cases.append(Case(name, partial(ours, programs.collectives, **what)))
    return cases


def _section(nbytes: int, *, given: bool = False) -> Section:
    size = f"{nbytes} B" if nbytes < 2**10 else f"{nbytes // 2**10} KiB"
    title = f"p = {_NPROCS}, {size}" + ", into given arrays" * given
    return Section(title, "collective", partial(_cases, nbytes, given))


SECTIONS = (
    _section(8),
    _section(2**16),
    _section(2**23),
    _section(2**23, given=True),
)
