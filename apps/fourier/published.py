"""What Gonzalez et al. print in their Table 3: a Fourier transform of 2^21 values on a Cray T3E."""

from __future__ import annotations

from typing import NamedTuple


class PrintedTime(NamedTuple):
    """A row of the table."""

    measured_s: float
    predicted_s: float
    """By OBSP*, from runs of 2^10 to 2^17 values."""
    error: str
    """100 (measured - predicted) / measured; the printed times give 8.67% at P = 16."""


TABLE_3 = {
    1: PrintedTime(11.7748, 11.8096, "-0.30%"),
    2: PrintedTime(6.0036, 5.8943, "1.82%"),
    4: PrintedTime(3.2120, 3.0908, "3.77%"),
    8: PrintedTime(1.8939, 1.7735, "6.36%"),
    16: PrintedTime(1.2750, 1.1644, "8.68%"),
    32: PrintedTime(0.9664, 0.8919, "7.71%"),
}
"""By P."""
