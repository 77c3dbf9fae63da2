"""Arrow and DuckDB, which come with the extra ``sql`` and are imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.extras import need, optional_module

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from pyarrow import csv, parquet
else:
    duckdb = optional_module("duckdb")
    pa = optional_module("pyarrow")
    csv = optional_module("pyarrow.csv")
    parquet = optional_module("pyarrow.parquet")

__all__ = ["csv", "duckdb", "load", "pa", "parquet"]


def load() -> None:
    """Import Arrow before processes start, so that each of them need not.

    Where pandas is installed, Arrow imports it for the first array of numpy, which takes most of
    a second.

    Raises:
        MissingExtraError: Arrow is not installed.
    """
    need("pyarrow")
    pa.array(np.zeros(0))
