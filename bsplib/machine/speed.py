"""How fast a process of this computer computes, in flop/s.

``bsp machine probe`` measures it while all processes compute. Runs on virtual processors need it
where the Machine has a speed: the time of their computation is scaled by the ratio.
"""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bsplib.machine import Machine


VECTOR = 16384
"""Elements of each vector: few enough for all of them to stay in cache."""
_AXPY_REPEATS = 40
_ROUNDS = 9


def axpy_flops(clock_s: Callable[[], float]) -> float:
    """Return the flop/s of y + a x, measured by a clock in seconds."""
    x, y, product = np.ones(VECTOR), np.zeros(VECTOR), np.empty(VECTOR)
    began = clock_s()
    for _ in range(_AXPY_REPEATS):
        np.multiply(x, 0.5, out=product)
        np.add(y, product, out=y)
    return 2 * VECTOR * _AXPY_REPEATS / (clock_s() - began)


@functools.cache
def own_speed() -> float:
    """Return the flop/s of this thread in CPU time: the best of a few rounds, measured once."""
    return max(axpy_flops(time.thread_time) for _ in range(_ROUNDS))


def time_scale(machine: Machine, nprocs: int) -> float:
    """Return the seconds of a computation on a Machine for each second of one process here.

    Where a probe has measured it, this includes that processes slow each other down. On the
    host that was measured no other figure is needed.

    Args:
        machine: the Machine.
        nprocs: number of processes that compute there.

    Returns:
        1 where the Machine has no speed.
    """
    slower = machine.slowdown(nprocs)
    if machine.relative_speed is not None:
        return slower / machine.relative_speed
    if machine.speed is None or (machine.measured and machine.host == platform.node()):
        return slower
    measured_with = nprocs if machine.p is None else machine.p
    return own_speed() / machine.speed * slower / machine.slowdown(measured_with)
