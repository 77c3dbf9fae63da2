"""The fast Fourier transform of N cyclically distributed values, in one exchange.

Process i has the values i, i + p, i + 2 p, ... of the signal when it begins, and the
same ones of the transform when it ends: the *cyclic* distribution. It transforms its
values, multiplies the results by roots of unity, and distributes them: process j receives
those whose index is j modulo p. Then every process computes transforms of p values each. No
process ever holds more than its share of N/p values.

Cost for p processes, where p^2 divides N:

=========================== ============ ===================== ===================
part                        supersteps   h of each             w
=========================== ============ ===================== ===================
transform N/p values        0            0                     O(N/p log(N/p))
exchange                    1            16 N/p (1 - 1/p)      O(N/p)
transforms of p values      0            0                     O(N/p log p)
=========================== ============ ===================== ===================

In :mod:`bsplib.apps.fourier.fft` and :mod:`bsplib.apps.fourier.fft_barrier_free` all processes
begin with all values, and h is p times as great.

Source: Inda and Bisseling 2001, "A simple and efficient parallel FFT algorithm using
the BSP model", Parallel Computing 27.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import bsplib
from bsplib.apps.fourier import common
from bsplib.apps.fourier.common import LocalTransform, Values, reference, roots_of_unity

__all__ = ["CyclicPlan", "command", "main", "prepare", "reference", "transform"]


class CyclicPlan(NamedTuple):
    """Values that are computed once for all signals of a length, and work space."""

    local: LocalTransform
    turns: Values
    """Shape (p, m): row j is for the values that process j receives."""
    results: Values
    """The transform within this process."""
    dealt: Values
    """The results in the order in which they are sent, shape (p, m)."""


def main(bsp: bsplib.Group, values: ArrayLike | int, *, seed: int = 0) -> Values:
    """Transform a signal, and return this process's values of the transform.

    Args:
        bsp: the group.
        values: the signal in one dimension, the same on all processes, of which each
            takes its own. Or how many random values to transform.
        seed: of the random values.

    Returns:
        The values ``pid, pid + p, pid + 2 p, ...`` of the transform.

    Raises:
        ValueError: the signal is empty or has not one dimension, or p^2 does not
            divide its length.

    Cost: a superstep to prepare, and that of :func:`transform`.
    """
    plan = prepare(bsp, common.number_of_values(values))
    mine = common.signal(values, seed)[bsp.pid :: bsp.nprocs].copy()
    out = np.empty_like(mine)
    bsp.sync()
    transform(bsp, out, mine, plan)
    return out


def prepare(bsp: bsplib.Group, size: int) -> CyclicPlan:
    """Compute the roots of unity that transforms of ``size`` values need here.

    Raises:
        ValueError: p^2 does not divide ``size``.
    """
    p = bsp.nprocs
    if size % p**2:
        raise ValueError(
            f"{size} values cannot be distributed cyclically to {p} processes: their number must "
            f"be a multiple of {p**2}"
        )
    numbers = np.arange(size // p).reshape(-1, p).T
    turns = roots_of_unity(size, bsp.pid * numbers)
    room = (np.empty(size // p, np.complex128), np.empty(turns.shape, np.complex128))
    return CyclicPlan(LocalTransform(size // p), turns, *room)


def transform(bsp: bsplib.Group, out: Values, values: Values, plan: CyclicPlan) -> None:
    """Transform the signal of which this process has ``values`` into ``out``.

    Args:
        bsp: the group.
        out: the values ``pid, pid + p, ...`` of the transform, contiguous.
        values: the values ``pid, pid + p, ...`` of the signal, with any stride.
        plan: for the whole signal.

    Cost: 1 superstep, h = 16 N/p (1 - 1/p) bytes, w = O(N/p log N).
    """
    if bsp.nprocs == 1:
        plan.local(values, out)
        bsp.sync()
        return
    plan.local(values, plan.results)
    np.multiply(plan.results.reshape(plan.turns.shape[::-1]).T, plan.turns, out=plan.dealt)
    for pid in range(bsp.nprocs):
        if pid != bsp.pid:
            bsp.send(pid, plan.dealt[pid])
    bsp.sync()
    parts = [message[1] for message in iter(bsp.hpmove, None)]
    parts.insert(bsp.pid, plan.dealt[bsp.pid])  # messages come in the order of their senders
    common.transform_across(parts, out.reshape(plan.turns.shape))


def gather(blocks: list[Any]) -> Values:
    """Return the values of all processes in the order of the signal."""
    whole: Values = np.stack(blocks, axis=1).reshape(-1)
    return whole


command = common.transform_command(
    main,
    gather,
    "Transform cyclically distributed random values, and compare the result with numpy's FFT.",
)

if __name__ == "__main__":
    command()
