"""The ways in which values of all processes come together, chosen by g, l and p.

Operations that are associative, but for rounding, combine the values in a binary tree over
neighbouring ranges of pids. The tree depends on the number of processes alone: a range of n values
is the combination of its first m, where m is the largest power of two below n, and of the rest. So
the result is the same, bit by bit, in whatever stages the values travel.

In each stage some blocks of neighbouring processes that have combined their values exchange the
results, and are one block from then on. A block has a power of two of processes, but the last
one may have fewer; so every block is a part of the tree.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from bsplib.experiments.collective_costs import (
    LEAST_BYTES,
    ONE_STAGE_MOST,
    RADICES,
    most_received,
)

if TYPE_CHECKING:
    from bsplib.machine import Machine

__all__ = ["ONE_STAGE_MOST", "Stage", "Way", "choose", "stages_of"]


class Stage(NamedTuple):
    """What one process does in one superstep in which blocks exchange their results."""

    receivers: tuple[int, ...]
    """The other processes to which it sends the result of its own block."""
    sources: tuple[int, ...]
    """The other processes from which it receives results, in the order of the blocks."""
    place: int
    """Which of the blocks that come together is its own, from 0 on."""


@lru_cache(maxsize=1024)
def stages_of(pid: int, nprocs: int, radix: int) -> tuple[Stage, ...]:
    """Return the stages of a process, of which there is one at least.

    Args:
        pid: the process.
        nprocs: number of processes.
        radix: how many blocks come together in a stage; a power of two.

    Source: the exchange by radix of Bruck et al. 1997, in blocks so that the order is that of the
    pids.
    """
    found, size = [_stage(pid, nprocs, 1, radix)], radix
    while size < nprocs:
        found.append(_stage(pid, nprocs, size, radix))
        size *= radix
    return tuple(found)


def _stage(pid: int, nprocs: int, size: int, radix: int) -> Stage:
    """Return what a process does where blocks of some size come together.

    The member of a block with number j hears of another block from the member with number j
    there; in a block that is shorter, since it is the last, from number j modulo its length.
    """
    own = pid // size
    first = own // radix * radix
    blocks = range(first, min(first + radix, -(-nprocs // size)))
    lengths = {block: min(size, nprocs - block * size) for block in blocks}
    member = pid - own * size
    others = [block for block in blocks if block != own]
    sources = tuple(block * size + member % lengths[block] for block in others)
    receivers = [
        block * size + other
        for block in others
        for other in range(member, lengths[block], lengths[own])
    ]
    # They begin after this process, so that not all send to the same one.
    receivers.sort(key=lambda receiver: (receiver - pid) % nprocs)
    return Stage(tuple(receivers), sources, own - first)


class Way(NamedTuple):
    """How values of some size are combined."""

    radix: int
    """How many blocks come together in a stage."""
    cut: bool
    """The values are cut into pieces, and each process combines one piece of all values."""


def choose(machine: Machine, nbytes: int, nprocs: int, *, may_be_cut: bool) -> Way:
    """Return the way in which all processes get the combination of all values.

    Args:
        machine: whose g and l decide.
        nbytes: size of a value.
        nprocs: number of processes.
        may_be_cut: the values are arrays that are combined element by element.

    Raises:
        UsageError: l is a gap.

    Source: Jarvis et al. 2002, equation 8, up to 8 processes; otherwise the least h g + l, where
    a message counts for 256 bytes at least.
    """
    if nprocs <= ONE_STAGE_MOST:
        cut = may_be_cut and machine.two_stages_pay(nbytes, nprocs)
        return Way(ONE_STAGE_MOST, cut)
    latency = machine.need("l") if may_be_cut else machine.l or 0.0
    costs = {
        radix: sum(
            count * max(nbytes, LEAST_BYTES) * machine.g + latency
            for count in most_received(nprocs, radix)
        )
        for radix in RADICES
    }
    radix = min(costs, key=costs.__getitem__)
    pieces = 2 * ((nprocs - 1) * max(nbytes / nprocs, LEAST_BYTES) * machine.g + latency)
    return Way(radix, may_be_cut and pieces < costs[radix])
