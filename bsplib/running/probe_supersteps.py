"""What every probe measures in its processes: the speed, and the time of a superstep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bsplib.running.speed import axpy_flops

if TYPE_CHECKING:
    from bsplib.group import Group

_BATCH_S = 2e-3
_MOST_SUPERSTEPS = 200
_SINGLE = 4
"""Supersteps that are timed in place of a batch, if each takes longer."""


def speed_of(bsp: Group) -> float:
    """Return the flop/s of this process while all compute."""
    bsp.sync()
    return axpy_flops(bsp.time)


def superstep_s(
    bsp: Group, communicate: Callable[[], None], batch_s: float = _BATCH_S, batches: int = 1
) -> float:
    """Return the seconds of a superstep: the least over some batches of them.

    Supersteps that take longer than a batch are timed one by one, since few of them in a row
    are undisturbed on a busy computer.

    Args:
        bsp: the group whose processes measure together.
        communicate: makes the transfers of this process in one superstep.
        batch_s: about how long a batch takes.
        batches: number of batches.
    """

    def batch(count: int) -> float:
        bsp.sync()
        began = bsp.time()
        for _ in range(count):
            communicate()
            bsp.sync()
        return (bsp.time() - began) / count

    # All processes need the same number: they take the largest of their estimates.
    estimate = bsp.allreduce(batch(2), np.maximum)
    count = min(int(batch_s / estimate), _MOST_SUPERSTEPS)
    if count < 2:  # no batch
        return min(batch(1) for _ in range(_SINGLE * batches))
    return min(batch(count) for _ in range(batches))
