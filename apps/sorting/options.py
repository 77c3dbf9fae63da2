"""Types of values on a command line."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import click
import numpy as np


class Bytes(click.ParamType):
    """A number of bytes, such as ``256MiB``."""

    name = "bytes"
    units: ClassVar = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        found = re.fullmatch(r"(\d+) ?([a-z]*)", str(value).lower())
        if found is None or found[2] not in self.units:
            self.fail(f"{value!r} is no number of bytes, such as 4096, 64KiB or 1GiB", param, ctx)
        return int(found[1]) * self.units[found[2]]


class Dtype(click.ParamType):
    """A dtype of numpy."""

    name = "dtype"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> np.dtype[Any]:
        """Return the dtype."""
        try:
            return np.dtype(value)
        except TypeError:
            self.fail(f"{value!r} is no dtype of numpy, such as int64 or S10", param, ctx)
