"""The warning that Python gives, from 3.12 on, when a process with several threads is forked.

The threads are those of numpy's BLAS, which a fork does not harm. The caller hides this one
warning while it forks; its processes show every warning that the caller would show.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_IS_GIVEN = sys.version_info >= (3, 12)

_hiding: list[warnings.catch_warnings[None]] = []


@contextmanager
def hidden() -> Iterator[None]:
    """Hide the warning inside the block."""
    if not _IS_GIVEN:
        yield
        return
    filters: warnings.catch_warnings[None] = warnings.catch_warnings()
    with filters:
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        _hiding.append(filters)
        try:
            yield
        finally:
            _hiding.remove(filters)


def show_again() -> None:
    """In a process that was forked inside such a block: leave the block."""
    while _hiding:
        _hiding.pop().__exit__(None, None, None)
