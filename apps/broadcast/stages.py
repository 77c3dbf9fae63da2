"""The gain of a broadcast in two stages over one stage, compared with the paper.

Jarvis et al. (2002) measured 4.15 on a Cray T3E with p = 16 (section 5). By their cost
equations, with h counted exactly and l = 0, it is 8 where h is the greater of in and out,
and 16/3 where it is their sum:

======== ============================= ============================================
stages   h of the root, by max         by sum
======== ============================= ============================================
one      15 n                          15 n
two      15/16 n, then 15/16 n         15/16 n, then 30/16 n (all send and receive)
======== ============================= ============================================

The l for which the factor would be the measured r follows from r = (h g + l) / (h' g + 2 l).
"""

from __future__ import annotations

from bsplib import Machine
from bsplib.apps.broadcast.crossover import costs

NPROCS = 16
MEASURED = (19.48 + 19.55) / (4.73 + 4.67)
"""Jarvis et al. 2002, section 5: computation and communication of both in Figure 3."""
RULES = {"max": "max(in, out)", "sum": "in + out"}


def factor(machine: Machine, nprocs: int, nbytes: float) -> float:
    """Return the cost of a broadcast in one stage divided by the cost in two.

    Raises:
        UsageError: l is a gap.
    """
    one, two = costs(machine, nprocs, nbytes)
    return one / two


def explaining_l(rule: str, nprocs: int, measured: float) -> float:
    """Return the l for which the factor would be as measured, in units of n g.

    Args:
        rule: the rule for h, ``max`` or ``sum``.
        nprocs: number of processes.
        measured: the measured factor, greater than 1/2.
    """
    one, two = costs(_machine(rule), nprocs, 1)
    return (one - measured * two) / (2 * measured - 1)


def sentences() -> list[str]:
    """Return sentences with the factors of the equations, and the l that gives the measured one."""
    lines = []
    for rule, words in RULES.items():
        without = factor(_machine(rule), NPROCS, 1)
        explaining = explaining_l(rule, NPROCS, MEASURED)
        lines.append(
            f"h = {words}: {without:.2f} times as fast where l = 0, and {MEASURED:.2f} times where "
            f"l = {explaining:.3f} n g"
        )
    return [
        f"Two stages against one for {NPROCS} processes, n bytes (Jarvis et al. 2002 measured "
        f"{MEASURED:.2f} on a Cray T3E):",
        *(f"  {line}" for line in lines),
    ]


def _machine(rule: str) -> Machine:
    """Return a Machine with g = 1 for a byte, and l = 0."""
    return Machine("units", "by definition", g=1.0, l=0.0, h=rule)
