"""Parallel sorting by regular sampling in seven M-steps: the paper's Figure 8.

Process 0 has all keys, deals blocks of them, and receives the sorted blocks at the end. With P
processes, blocks of N/P keys of a word, and segments of N/P^2 keys on average:

==== =================================== ============== =====================
step what                                h in words     w
==== =================================== ============== =====================
1    blocks from process 0               (P-1) N/P      0
2    sort; samples to process 0          P (P-1)        B N/P log2(N/P) + C P
3    merge; pivots from process 0        (P-1)^2        D P^2 + E (P-1)
4    search pivots; sizes to all         2 (P-1)        F (P-1) log2(N/P)
5    offsets; segments to all            2 (P-1) N/P^2  H (P-1)
6    merge; sizes to process 0           P-1            I N/P
7    blocks to their places on process 0 (P-1) N/P      J (P-1)
==== =================================== ============== =====================

As in the paper, process 0 merges where its part of the result is, and receives the others in
their places, so that nothing is copied after the last communication.

Source: Roda et al. 1999, Figure 8 and equations 19 to 25, after Li et al. 1993.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.papers.msteps.model import Sort

Keys = NDArray[np.int32]
"""Keys of a word of 32 bits each."""


def main(bsp: bsplib.Group, keys: Keys, of: Sort | None = None) -> Keys | None:
    """Return all keys in order on process 0, and None elsewhere.

    Args:
        bsp: the group, of two processes or more.
        keys: of process 0; the others look at their number only. P squared or more.
        of: constants by which virtual processors count the work; without them they measure it.

    Raises:
        ValueError: there are fewer keys than P squared, or fewer than two processes.

    Supersteps: 7.
    Source: Roda et al. 1999, Figure 8.
    """
    p, n = bsp.nprocs, len(keys)
    if p < 2 or n < p * p:
        raise ValueError(f"{n} keys on {p} processes: it takes 2 processes, and p squared keys")
    work = of or Sort()
    _charge(bsp, of, 0.0)  # from here on virtual time counts the work
    block = _dealt(bsp, keys)
    block.sort()
    halvings = math.log2(n / p)
    _charge(bsp, of, work.B * n / p * halvings + work.C * p)
    samples = _gathered(bsp, block[np.arange(p) * len(block) // p])
    pivots = _told(bsp, samples, of)
    ends = [0, *np.searchsorted(block, pivots, "right").tolist(), len(block)]
    _charge(bsp, of, work.F * (p - 1) * halvings)
    segments = [block[start:stop] for start, stop in pairwise(ends)]
    _to_all(bsp, [np.array([len(segment)], np.int32) for segment in segments])
    _charge(bsp, of, work.H * (p - 1))
    parts = _to_all(bsp, segments)
    whole = np.empty(n, np.int32) if bsp.pid == 0 else None
    merged = merge(parts, whole)
    _charge(bsp, of, work.I * n / p)
    sizes = _gathered(bsp, np.array([len(merged)], np.int32))
    if bsp.pid == 0:
        _charge(bsp, of, work.J * (p - 1))
    return _placed(bsp, merged, whole, sizes)


def merge(parts: Sequence[Keys], whole: Keys | None = None) -> Keys:
    """Merge sorted keys; at the beginning of ``whole``, if there is one."""
    size = sum(map(len, parts))
    merged = np.concatenate(parts, out=None if whole is None else whole[:size])
    merged.sort(kind="stable")
    return merged


def _charge(bsp: bsplib.Group, of: Sort | None, seconds: float) -> None:
    if of is not None:
        bsp.charge(seconds)


def _dealt(bsp: bsplib.Group, keys: Keys) -> Keys:
    """Deal blocks from process 0: 1 superstep."""
    ends = [len(keys) * pid // bsp.nprocs for pid in range(bsp.nprocs + 1)]
    if bsp.pid == 0:
        for pid in range(1, bsp.nprocs):
            bsp.send(pid, keys[ends[pid] : ends[pid + 1]])
    bsp.sync()
    if bsp.pid == 0:
        return keys[: ends[1]].copy()
    ((_, _, block),) = bsp.messages()
    return np.asarray(block)


def _gathered(bsp: bsplib.Group, mine: Keys) -> Keys | None:
    """Collect arrays on process 0: 1 superstep."""
    if bsp.pid:
        bsp.send(0, mine)
    bsp.sync()
    if bsp.pid:
        return None
    return np.concatenate([mine, *(payload for _, _, payload in bsp.messages())])


def _placed(bsp: bsplib.Group, mine: Keys, whole: Keys | None, sizes: Keys | None) -> Keys | None:
    """Collect blocks in their places on process 0, which has its own there: 1 superstep."""
    if bsp.pid:
        bsp.send(0, mine)
    bsp.sync()
    if whole is None or sizes is None:
        return None
    ends = np.cumsum(sizes)
    for start, end in pairwise(ends.tolist()):
        message = bsp.hpmove()
        assert message is not None
        whole[start:end] = message[1]
    return whole


def _told(bsp: bsplib.Group, samples: Keys | None, of: Sort | None) -> Keys:
    """Choose pivots on process 0, and tell all: 1 superstep."""
    p, work = bsp.nprocs, of or Sort()
    pivots = np.empty(0, np.int32)
    if samples is not None:
        pivots = np.sort(samples)[np.arange(1, p) * p + p // 2 - 1]
        _charge(bsp, of, work.D * p**2 + work.E * (p - 1))
        for pid in range(1, p):
            bsp.send(pid, pivots)
    bsp.sync()
    return pivots if samples is not None else np.asarray(next(iter(bsp.messages()))[2])


def _to_all(bsp: bsplib.Group, parts: Sequence[Keys]) -> list[Keys]:
    """Send each process its part: 1 superstep."""
    for pid, part in enumerate(parts):
        if pid != bsp.pid:
            bsp.send(pid, part)
    bsp.sync()
    return [parts[bsp.pid], *(payload for _, _, payload in bsp.messages())]
