"""Runs of charged programs that a busy computer has not disturbed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def undisturbed(record: Callable[[], T]) -> T:
    """Record until no process was late for its first charge, which then counts what was before."""
    while True:
        with warnings.catch_warnings(record=True) as late:
            warnings.filterwarnings("always", "charge: what was computed before")
            recorded = record()
        if not late:
            return recorded
