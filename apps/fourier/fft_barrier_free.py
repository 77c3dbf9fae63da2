"""The fast Fourier transform of N values without any barrier, on 2^k processes.

Process i transforms the values whose indices end, in binary, with the reversed bits of i.
Then the transforms are combined in pairs, in pairs of pairs, and so on: at step s a process
whose bit s is 1 sends its transform to the process whose bit s is 0, and is finished. All
processes have all values at the beginning, and process 0 has the transform at the end. Each
process waits only for the messages that it needs; a process without work makes empty steps.

Cost for q = 2^k processes, the greatest power of two up to p that divides N:

======================= ============ ======================= ===================
part                    supersteps   h of those that work    w
======================= ============ ======================= ===================
transform N/q values    0            0                       O(N/q log(N/q))
step s = 0 .. k - 1     1            16 N 2^s/q bytes        O(N 2^(s+1)/q)
all                     k            16 N (1 - 1/q) at most  O(N/q log(N/q) + N)
======================= ============ ======================= ===================

Any N >= 1 and any p are allowed; the processes from q on make empty steps. At each step
8 N bytes are sent in total; :mod:`bsplib.apps.fourier.fft` sends more, since all processes receive
the transform there.

Source: Roda et al. 1999, section 4.1, Figure 7 and equations 15 to 17.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import bsplib
from bsplib.apps.fourier import common
from bsplib.apps.fourier.common import LocalTransform, Values, reference, roots_of_unity
from bsplib.apps.fourier.fft import receive

__all__ = ["BarrierFreePlan", "command", "main", "prepare", "reference", "transform"]


class BarrierFreePlan(NamedTuple):
    """Values that are computed once for all signals of a length."""

    steps: int
    """log2 of the number of processes that work."""
    roots: Values
    """The first half of the N-th roots of unity."""
    local: LocalTransform


def main(bsp: bsplib.Group, values: ArrayLike | int, *, seed: int = 0) -> Values | None:
    """Transform a signal; process 0 returns the transform.

    Args:
        bsp: the group.
        values: the signal in one dimension, the same on all processes. Or how many
            random values to transform.
        seed: of the random values.

    Returns:
        The transform on process 0, None on the others.

    Raises:
        ValueError: the signal is empty, or has not one dimension.

    Cost: a superstep to prepare, without waits, and those of :func:`transform`.
    Source: Roda et al. 1999, section 4.1.
    """
    size = common.number_of_values(values)
    whole = common.signal(values, seed)
    plan = prepare(bsp, size)
    out = np.empty(size, np.complex128)
    bsp.oblsync(0)
    transform(bsp, out, whole, plan)
    return out if bsp.pid == 0 else None


def prepare(bsp: bsplib.Group, size: int) -> BarrierFreePlan:
    """Compute the roots of unity that transforms of ``size`` values need."""
    steps = 0
    while 2 << steps <= bsp.nprocs and size % (2 << steps) == 0:
        steps += 1
    return BarrierFreePlan(
        steps, roots_of_unity(size, np.arange(size // 2)), LocalTransform(size >> steps)
    )


def transform(bsp: bsplib.Group, out: Values, values: Values, plan: BarrierFreePlan) -> None:
    """Transform ``values``, which all processes have, into ``out`` on process 0.

    Args:
        bsp: the group.
        out: contiguous, as long as ``values``; on other processes than 0 it is work space.
        values: N values.
        plan: for N values.

    Cost: log2 q supersteps with q processes that work; h at most 16 N (1 - 1/q) bytes.
    Source: Roda et al. 1999, Figure 7.
    """
    count = 1 << plan.steps
    length = len(values) // count
    if bsp.pid < count:
        plan.local(values[common.reversed_bits(bsp.pid, plan.steps) :: count], out[:length])
    for step in range(plan.steps):
        bit, have = 1 << step, length << step
        if bsp.pid < count and bsp.pid % (2 * bit) == 0:
            theirs = receive(bsp)
            roots = plan.roots[:: len(values) // (2 * have)]
            common.combine(out[: 2 * have], out[:have], theirs, roots)
            continue
        if bsp.pid < count and bsp.pid % bit == 0:
            bsp.send(bsp.pid - bit, out[:have])
        bsp.oblsync(0)


command = common.transform_command(
    main,
    lambda results: results[0],
    "Transform random values by the FFT without barriers, and check it by numpy's.",
)

if __name__ == "__main__":
    command()
