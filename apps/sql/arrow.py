"""Arrow, which comes with the extra ``sql`` and is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.extras import optional_module

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import compute, csv, parquet
else:
    pa = optional_module("pyarrow")
    compute = optional_module("pyarrow.compute")
    csv = optional_module("pyarrow.csv")
    parquet = optional_module("pyarrow.parquet")

__all__ = ["compute", "csv", "pa", "parquet"]
