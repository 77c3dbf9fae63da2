"""Names for the types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.recording.tables import Rows

__all__ = ["Bools", "Floats", "Ints", "Numbers", "Rows", "Table"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Numbers = NDArray[Any]
Table = NDArray[np.void]
"""Samples, waits, or records that may be changed."""
