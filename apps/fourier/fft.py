"""The fast Fourier transform of N values, by recursion over sub-groups of processes.

The even values are transformed by one half of the processes and the odd ones by the
other, each half a group of its own (``partition``). Then every process exchanges its
half of the transform with a partner in the other group, waits only for that message
(``oblsync``), and combines the two halves. Where one process is left, or an odd number of
values, the process transforms them by itself. All processes have all values at the
beginning, and the whole transform at the end.

Cost for p a power of two that divides N, at level d = log2 p, ..., 1 of the recursion:

=========================== ============ ============== =====================
part                        supersteps   h of each      w
=========================== ============ ============== =====================
transform N/p values        0            0              O(N/p log(N/p))
exchange at level d         1            16 N/2^d bytes 0
combine at level d          0            0              O(N/2^(d-1))
all                         log2 p       16 N (1 - 1/p) O(N/p log(N/p) + N)
=========================== ============ ============== =====================

Any N >= 1 and any p will do. Where p is no power of two some processes transform
twice as many values, and one in an uneven group sends its half twice.

The comments ``#cll`` are those of Figure 5: ``bsp papers call`` measures the blocks between them,
with these formulas (docs/maintaining/call.md).

Source: Gonzalez et al., Figure 5 and equations 4 to 8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import bsplib
from bsplib.apps.fourier import common
from bsplib.apps.fourier.common import LocalTransform, Values, reference, roots_of_unity

__all__ = ["RecursivePlan", "command", "main", "prepare", "reference", "transform"]


class RecursivePlan(NamedTuple):
    """Values that are computed once for all signals of a length."""

    roots: tuple[Values, ...]
    """For each level of the recursion, the first half of the roots of unity."""
    local: LocalTransform
    """The transform of the values that this process transforms by itself."""


def main(bsp: bsplib.Group, values: ArrayLike | int, *, seed: int = 0) -> Values:
    """Transform a signal, and return this process's block of the transform.

    Args:
        bsp: the group.
        values: the signal in one dimension, the same on all processes. Or how many
            random values to transform.
        seed: of the random values.

    Returns:
        The transform from ``pid * m`` on, at most ``m = ceil(N / p)`` values of it.

    Raises:
        ValueError: the signal is empty, or does not have one dimension.

    Cost: a superstep to prepare, and those of :func:`transform`.
    Source: Gonzalez et al., Figures 4 and 5.
    """
    size = common.number_of_values(values)
    whole = common.signal(values, seed)
    plan = prepare(bsp, size)
    out = np.empty(size, np.complex128)
    bsp.sync()  # as in the paper, all processes begin the transform at the same time
    transform(bsp, out, whole, plan)
    length = -(-size // bsp.nprocs)
    return out[bsp.pid * length : (bsp.pid + 1) * length].copy()


def prepare(bsp: bsplib.Group, size: int) -> RecursivePlan:
    """Compute the roots of unity that transforms of ``size`` values need here."""
    nprocs, pid, own = bsp.nprocs, bsp.pid, size
    roots = []
    while nprocs > 1 and own % 2 == 0:
        roots.append(roots_of_unity(own, np.arange(own // 2)))
        own, middle = own // 2, nprocs // 2
        nprocs, pid = (middle, pid) if pid < middle else (nprocs - middle, pid - middle)
    return RecursivePlan(tuple(roots), LocalTransform(own))


def transform(bsp: bsplib.Group, out: Values, values: Values, plan: RecursivePlan) -> None:
    """Transform ``values``, which all processes of the group have, into ``out`` on all.

    Args:
        bsp: the group.
        out: contiguous, as long as ``values``.
        values: N values, with any stride.
        plan: of :func:`prepare` for N values.

    Cost: log2 p supersteps; h at most 16 N (1 - 1/p) bytes in all for p a power of two.
    Source: Gonzalez et al., Figure 5.
    """
    size = len(values)
    if bsp.nprocs == 1 or size % 2:
        # cll G G[0] + G[1]*size*log2(size)
        plan.local(values, out)
        # cll end G
        return
    # cll A A[0]
    half, middle = size // 2, bsp.nprocs // 2
    even, odd = out[:half], out[half:]
    is_even = bsp.pid < middle
    mine, place = (even, 0) if is_even else (odd, 1)
    # cll end A
    # cll B B[0]
    sub = bsp.partition([middle, bsp.nprocs])
    # cll end B
    with sub:
        transform(sub, mine, values[place::2], plan._replace(roots=plan.roots[1:]))
        among, number = sub.nprocs, sub.pid
    first = middle if is_even else 0
    # cll D D[0] + D[1]*half*16
    for partner in range(first + number, first + bsp.nprocs - among, among):
        bsp.send(partner, mine)
    theirs = receive(bsp)
    # cll end D
    # cll F F[0] + F[1]*half
    common.combine(out, *((mine, theirs) if is_even else (theirs, mine)), plan.roots[0])
    # cll end F


def receive(bsp: bsplib.Group) -> Values:
    """Wait for one message, and return its payload, which is valid until the next sync."""
    bsp.oblsync(1)
    message = bsp.hpmove()
    assert message is not None  # oblsync waited for it
    theirs: Values = message[1]
    return theirs


command = common.transform_command(
    main, np.concatenate, "Transform random values by the recursive FFT, and check it by numpy's."
)

if __name__ == "__main__":
    command()
