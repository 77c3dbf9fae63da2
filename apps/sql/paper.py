"""The figures of Jarvis et al. 2002 for the stages of their program.

Balances are average and minimum in percent of the maximum. Figures that the paper does not
print are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Balance = tuple[int, int]


@dataclass(frozen=True)
class PrintedStage:
    """One stage, on 16 processors of a Cray T3E."""

    sql_h: Balance | None = None
    sql_comp: Balance | None = None
    sample_h: Balance | None = None
    """Collecting the sample: line 125 of sort.c."""
    exchange_h: Balance | None = None
    """Stage 6 of the sort: line 175."""
    merge_comp: Balance | None = None
    """Stage 7 of the sort: line 188."""
    sort_gain: str = ""
    """Gain of the sort over the one with the factor that was found by experiment."""


PAPER = {
    "original": PrintedStage(sql_h=(54, 21)),
    "balanced": PrintedStage(exchange_h=(69, 54), merge_comp=(51, 17)),
    "theoretical": PrintedStage(
        sample_h=(12, 7), exchange_h=(98, 97), merge_comp=(95, 89), sort_gain="-50%"
    ),
    "bitonic": PrintedStage(sql_h=(98, 97), sql_comp=(96, 90), sort_gain="+8.5%"),
}
"""Sections 4.1 to 4.3, Figures 5 to 9; the sort by itself with the experimental factor,
Figure 7, has (60, 48) in stage 6 and (49, 15) in stage 7."""

IMBALANCE_LESS = "26%"
"""How much less imbalance there is with balanced input: section 4.1."""

PAPER_NPROCS = 16
"""Number of processes of all balances above."""


class Table1Row(NamedTuple):
    """A row of Table 1: seconds of the whole program."""

    original: float
    optimised: float


TABLE_1 = {
    "Cray T3E": {
        1: Table1Row(6.44, 5.37),
        2: Table1Row(4.30, 3.38),
        4: Table1Row(2.48, 1.85),
        8: Table1Row(1.23, 1.04),
        16: Table1Row(0.68, 0.67),
    },
    "Cray T3D": {
        1: Table1Row(27.18, 22.41),
        2: Table1Row(13.18, 10.88),
        4: Table1Row(6.89, 5.70),
        8: Table1Row(3.29, 3.07),
        16: Table1Row(1.66, 1.89),
    },
    "SGI Origin 2000": {
        1: Table1Row(2.99, 2.42),
        2: Table1Row(1.65, 1.27),
        4: Table1Row(1.26, 1.11),
        8: Table1Row(0.88, 0.77),
    },
    "Intel cluster": {
        1: Table1Row(19.68, 13.01),
        2: Table1Row(9.70, 6.63),
        4: Table1Row(5.75, 4.02),
    },
    "Athlon cluster": {
        1: Table1Row(11.94, 7.85),
        2: Table1Row(6.06, 4.08),
        4: Table1Row(3.58, 3.07),
    },
}
"""Seconds by number of processors, for 12,000 records. The gain that is printed is
(original - optimised) / original for the first three computers. For the two clusters it is
(original - optimised) / optimised, 51% for 34%; here it is always the former."""

MACHINES = {
    "Cray T3E": "cray-t3e-mpi:l=2e-5,speed=5e7",
    "SGI Origin 2000": "origin2000-mpi:l=1.8e-5,speed=1e8",
    "IBM SP2": "ibm-sp2-pvm:speed=2.5e7",
}
"""Machines on which the stages are priced, since the paper prints no g, l or speed. Each g,
and l of the SP2, is fitted by Roda et al. 1999, Tables 1 and 2, whose other l are below zero.
Speed and l of the Origin are those of the Oxford BSP toolset (100.7 Mflop/s; 1789 flop at p = 4).
The other figures are round ones that are assumed. None is fitted to times of this program."""


def total_gain(row: Table1Row, alone: Table1Row) -> tuple[float, float, float]:
    """Return the gain of a row, the sequential and the parallel part, as fractions.

    The sequential gain is there on one processor: it comes from less work, not from better
    balance. With the gains s and q of the parts, the whole gain is 1 - (1 - s) (1 - q).

    Args:
        row: the times on p processors.
        alone: those on one.
    """
    whole = 1 - row.optimised / row.original
    sequential = 1 - alone.optimised / alone.original
    return whole, sequential, 1 - (1 - whole) / (1 - sequential)
