"""Bitonic merge sort as a program whose work is counted, on up to 512 virtual processors.

Every process sorts its block by a sequential bitonic network, of m log(m)^2 steps for a block of
m = N/P keys. For each merge of two lists, blocks are compared key by key with those of partners,
and at the end of the merge each block is sorted by the sequential network again. So the terms of
equation 9 occur as they stand there.

The virtual computer has the costs of the simulator Multi as far as she prints them: creating a
process takes 9.00 P + 6.8 units and a barrier 20.08 P + 0.8, the lines through her Tables 1 and 2.
A step of a network counts one unit, and so does moving a key. A unit is a microsecond here.

Source: Chittor 1995, sections 3 and 4, Figures 5 and 6, without their slips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.machine import Machine

Keys = NDArray[np.int32]
UNIT_S = 1e-6


def main(bsp: bsplib.Group, n: int, *, created: bool = True) -> tuple[Keys, float]:
    """Sort n random keys; return this process's block, and the time in units.

    Args:
        bsp: the group; P is a power of two.
        n: a power of two, P or more; or 0 to do nothing but create processes and wait.
        created: whether to count the creation of the processes.

    Raises:
        ValueError: N or P is no power of two, or N is less than P.

    Supersteps: log P (log P + 1) / 2 with h = N/P keys, and log P barriers.
    """
    p = bsp.nprocs
    if p & (p - 1) or n & (n - 1) or 0 < n < p:
        raise ValueError(f"{n} keys on {p} processes: both are powers of two, P at most N")
    bsp.charge(created * (9.00 * p + 6.8) * UNIT_S)
    block = np.random.default_rng(n).integers(0, 2**30, n, np.int32)
    block = block[bsp.pid * n // p : (bsp.pid + 1) * n // p]
    block = sort_block(bsp, block, descending=bool(bsp.pid & 1))
    for level in range(p.bit_length() - 1):
        descending = bool(bsp.pid >> (level + 1) & 1)
        for distance in range(level, -1, -1):
            block = compare(bsp, block, 1 << distance, descending)
        block = sort_block(bsp, block, descending)
        bsp.charge(barrier(p) * UNIT_S)  # at the end of a merge
    return block, round(bsp.time() / UNIT_S, 3)


def barrier(nprocs: int) -> float:
    """Return the units of a barrier, if there is more than one process."""
    return 20.08 * nprocs + 0.8 if nprocs > 1 else 0.0


def sort_block(bsp: bsplib.Group, block: Keys, descending: bool) -> Keys:
    """Sort a block; counts the steps of a bitonic network."""
    bsp.charge(network_steps(len(block)) * UNIT_S)
    return in_order(block, descending=descending)


def network_steps(m: int) -> float:
    """Return the steps of a bitonic network of m keys, m lg m (lg m + 1) / 4."""
    return m * log2(m) * (log2(m) + 1) / 4 if m > 1 else 0.0


def in_order(block: Keys, *, descending: bool) -> Keys:
    """Return the keys of a block in order."""
    ordered = np.sort(block)
    return ordered[::-1].copy() if descending else ordered


def compare(bsp: bsplib.Group, block: Keys, distance: int, descending: bool) -> Keys:
    """Keep the lesser or the greater keys of this block and a partner's: 1 superstep."""
    partner = bsp.pid ^ distance
    bsp.send(partner, block)
    bsp.sync()
    if not len(block):
        return block
    ((_, _, other),) = bsp.messages()
    bsp.charge(len(block) * UNIT_S)
    keeps_lesser = (bsp.pid < partner) != descending
    return np.minimum(block, other) if keeps_lesser else np.maximum(block, other)


MULTI = Machine(
    "like Multi", "Chittor 1995, Tables 1 and 2; a unit is 1 us", g=UNIT_S / 4, l=0.0, p=None
)
"""A key of 4 bytes takes a unit; barriers are charged by the program, at the end of a merge."""


def time_of(n: int, nprocs: int, **how: Any) -> float:
    """Return the time of a run in units: that of the slowest process."""
    results = bsplib.run(main, n, nprocs=nprocs, backend="sim", machine=MULTI, **how)
    return max(took for _, took in results)


def times(
    sizes: Iterable[int], counts: Iterable[int], advance: Callable[[], object] = lambda: None
) -> dict[tuple[int, int], float]:
    """Return the times of all N and P with P at most N.

    Args:
        sizes: N, each a power of two.
        counts: P, likewise.
        advance: is called after each run.
    """
    found = {}
    for n in sizes:
        for p in counts:
            if p <= n:
                found[n, p] = time_of(n, p)
                advance()
    return found


# -- the same with six buffers of limited size -----------------------------------------------------
#
# The keys lie in blocks of B, dealt in turn to as many disks as there are processes; a process
# works on two at a time, that may lie anywhere. In a superstep it gets the pair of blocks that
# comes next, works on one, and puts back the pair before: reading and writing go on beside the
# work, as in her Figure 9. Each pair costs eight calls to start a transfer, as she counts. Her
# Figure 12 tests the direction of a merge against the distance that is halved in every step.
#
# Source: Chittor 1995, section 3.3, Figures 10 to 13, and 4.4.

START = 5.0
"""Units of a call that starts a transfer; she prints none."""


def buffered(bsp: bsplib.Group, n: int, size: int) -> tuple[Keys, float]:
    """Sort n random keys in blocks; return every P-th block, and the time in units.

    Args:
        bsp: the group; P is a power of two.
        n: a power of two, 2 B P or more.
        size: B, keys of a buffer, a power of two.

    Raises:
        ValueError: a number is no power of two, or there is not a pair of blocks for each process.

    Supersteps: for each of the (lg L)(lg L + 1) / 2 steps over L = N/B blocks as many as a process
    has pairs, L / 2P, and 2; h is four blocks of keys.
    """
    p, blocks = bsp.nprocs, n // size if size > 0 else 0
    if any(value < 1 or value & (value - 1) for value in (p, n, size)) or blocks < 2 * p:
        raise ValueError(
            f"{n} keys in blocks of {size} on {p} processes: all are powers of two, with two "
            "blocks for each process"
        )
    bsp.charge((9.00 * p + 6.8) * UNIT_S)
    keys = np.random.default_rng(n).integers(0, 2**30, n, np.int32)
    kept = bsp.array(keys.reshape(-1, size)[bsp.pid :: p])
    for number, block in enumerate(kept):
        block[:] = in_order(block, descending=bool((bsp.pid + number * p) % 2))
        bsp.charge((network_steps(size) + 2 * START) * UNIT_S)
    bsp.sync()
    bsp.charge(barrier(p) * UNIT_S)
    for level in range(1, blocks.bit_length()):
        for distance in (1 << step for step in range(level - 1, -1, -1)):
            _step(bsp, kept, 1 << level, distance)
    return kept.copy(), round(bsp.time() / UNIT_S, 3)


def _step(bsp: bsplib.Group, kept: Keys, length: int, distance: int) -> None:
    """Split all pairs of blocks at a distance; sort within blocks after the last split."""
    pairs = list(_pairs_of(bsp, len(kept), distance))
    work: dict[int, tuple[Keys, Keys]] = {}
    for number in range(-1, len(pairs) + 1):
        if number > 0:  # put back the pair before
            for place, block in zip(pairs[number - 1], work.pop(number - 1), strict=True):
                bsp.put(place % bsp.nprocs, block, kept, at=np.s_[place // bsp.nprocs])
        if number + 1 < len(pairs):  # get the pair that comes next
            first, second = (_read(bsp, kept, place) for place in pairs[number + 1])
            work[number + 1] = first, second
        if 0 <= number < len(pairs):
            is_descending = bool(pairs[number][0] // length % 2)
            work[number] = _split(
                bsp, work[number], is_descending=is_descending, is_last=distance == 1
            )
        bsp.sync()
    bsp.charge(barrier(bsp.nprocs) * UNIT_S)


def _pairs_of(bsp: bsplib.Group, own: int, distance: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the blocks that this process splits: every P-th pair."""
    for number in range(bsp.pid, own * bsp.nprocs // 2, bsp.nprocs):
        first = number // distance * 2 * distance + number % distance
        yield first, first + distance


def _read(bsp: bsplib.Group, kept: Keys, place: int) -> Keys:
    out = np.empty(kept.shape[1], np.int32)
    found: Keys = bsp.get(place % bsp.nprocs, kept, out, at=np.s_[place // bsp.nprocs])
    return found


def _split(
    bsp: bsplib.Group, pair: tuple[Keys, Keys], *, is_descending: bool, is_last: bool
) -> tuple[Keys, Keys]:
    """Return the lesser keys of two blocks and the greater ones, or the other way round."""
    first, second = pair
    low, high = np.minimum(first, second), np.maximum(first, second)
    bsp.charge((len(first) + 8 * START) * UNIT_S)
    if is_last:
        low, high = (in_order(block, descending=is_descending) for block in (low, high))
        bsp.charge(2 * network_steps(len(first)) * UNIT_S)
    return (high, low) if is_descending else (low, high)


def whole(results: list[tuple[Keys, float]]) -> Keys:
    """Return all keys, from the results of the processes."""
    return np.stack([blocks for blocks, _ in results], axis=1).ravel()


def buffered_time(n: int, nprocs: int, size: int, **how: Any) -> float:
    """Return the time of a run in units: that of the slowest process."""
    results = bsplib.run(buffered, n, size, nprocs=nprocs, backend="sim", machine=MULTI, **how)
    return max(took for _, took in results)


def buffered_times(
    sizes: Iterable[int],
    counts: Iterable[int],
    size: int,
    advance: Callable[[], object] = lambda: None,
) -> dict[tuple[int, int], float]:
    """Return the times of all N and P with two blocks for each process.

    Args:
        sizes: N, each a power of two.
        counts: P, likewise.
        size: B.
        advance: is called after each run.
    """
    found = {}
    for n in sizes:
        for p in counts:
            if n >= 2 * size * p:
                found[n, p] = buffered_time(n, p, size)
                advance()
    return found
