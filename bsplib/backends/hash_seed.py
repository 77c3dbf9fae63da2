"""The seed of the hashes of texts: one for all processes of a run, so that all agree on them.

``hash`` of a text, and the order of a set of texts, depend on a seed that each interpreter draws
when it starts, unless the variable PYTHONHASHSEED names it. A forked process has that of its
parent; others are told one here.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from functools import cache

VARIABLE = "PYTHONHASHSEED"
"""Environment variable of Python with the seed."""


def seed() -> str:
    """Return the seed for processes that this one does not fork: the user's, or one drawn once."""
    named = os.environ.get(VARIABLE, "")
    return named if named.isdecimal() else _drawn()


@cache
def _drawn() -> str:
    return str(1 + int.from_bytes(os.urandom(8)) % (2**32 - 1))


@contextlib.contextmanager
def one_seed() -> Iterator[None]:
    """Let processes that start in the block, and are not forked, have one seed."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = seed()
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def begin_with(wanted: str) -> None:
    """Go on with a seed; where this interpreter has another one, it starts anew.

    Args:
        wanted: the seed.
    """
    if os.environ.get(VARIABLE) != wanted:
        os.environ[VARIABLE] = wanted
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
