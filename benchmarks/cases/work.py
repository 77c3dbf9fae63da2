"""The seconds that sorts and relational operators charge on virtual processors.

The constants in ``apps/work.py`` are the medians.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_of

ROWS = 2**17
"""Rows of a process: 1 MiB in a column of 8 B, about the share of a core in the caches."""
_GROUPS = 2**14


def _case(name: str, operation: Callable[[], object], count: float) -> Sequence[Case]:
    return [Case(name, lambda: seconds_of(operation) / count)]


def _copies(_: ExitStack) -> Sequence[Case]:
    """Copy values in random order, as an operator does that selects or moves rows."""
    values, order = (
        np.random.default_rng(0).random(ROWS),
        np.random.default_rng(0).permutation(ROWS),
    )
    return _case("numpy take", lambda: values.take(order), ROWS)


def _comparisons(_: ExitStack) -> Sequence[Case]:
    """Sort the positions of rows by their keys, as a sort of records does."""
    keys = np.random.default_rng(0).integers(0, 2**62, ROWS)
    sort = partial(keys.argsort, kind="stable")
    return _case("numpy argsort", sort, ROWS * math.log2(ROWS))


def _sums(_: ExitStack) -> Sequence[Case]:
    """Add values to the sums of their groups."""
    groups = np.random.default_rng(0).integers(0, _GROUPS, ROWS)
    values, sums = np.ones(ROWS, np.int64), np.zeros(_GROUPS, np.int64)
    return _case("numpy add.at", partial(np.add.at, sums, groups, values), ROWS)


SECTIONS = (
    Section(f"Copy {ROWS} values of 8 B in random order", "value", _copies),
    Section(f"Sort {ROWS} keys of 8 B, divided by n log2 n", "comparison", _comparisons),
    Section(f"Add {ROWS} values of 8 B to {_GROUPS} sums", "value", _sums),
)
