"""The figures of Jarvis et al. 2002 for the stages of their program.

Balances are average and minimum in percent of the maximum. Figures that the paper does not
print are missing.
"""

from __future__ import annotations

from dataclasses import dataclass

Balance = tuple[int, int]


@dataclass(frozen=True)
class Printed:
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
    """Gain of the sort over the stage before."""


PAPER = {
    "original": Printed(sql_h=(54, 21)),
    "balanced": Printed(exchange_h=(69, 54), merge_comp=(51, 17)),
    "theoretical": Printed(
        sample_h=(12, 7), exchange_h=(98, 97), merge_comp=(95, 89), sort_gain="-50%"
    ),
    "bitonic": Printed(sql_h=(98, 97), sql_comp=(96, 90), sort_gain="+8.5%"),
}
"""Sections 4.1 to 4.3, Figures 5 to 9; the sort by itself with the experimental factor,
Figure 7, has (60, 48) in stage 6 and (49, 15) in stage 7."""

WHOLE = {
    "Cray T3E": (0.68, 0.67),
    "Cray T3D": (1.66, 1.89),
}
"""Seconds of the original and of the last stage at p = 16: Table 1."""

IMBALANCE_LESS = "26%"
"""With balanced input: section 4.1."""
