"""How fast a process of this computer computes, in flop/s.

``bsp probe`` measures it while all processes compute. Runs on virtual processors need it
where the Machine has a speed: the time of their computation is scaled by the ratio.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np

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


def time_scale(machine: Machine) -> float:
    """Return the seconds that a computation takes on a Machine for each second here.

    Returns:
        1 where the Machine has no speed.
    """
    return 1.0 if machine.speed is None else own_speed() / machine.speed
