"""What the entries of puts and gets describe, where they are more than contiguous elements.

A description is one of the types below, with the place of the call under ``check=True``, and is
sent as bytes. It consists of None, numbers, strings, bytes and tuples of them, so that
:mod:`marshal` can pack it. Programs name the same places again in each superstep: what was packed
or unpacked last is remembered.
"""

from __future__ import annotations

import marshal
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from bsplib.core.kinds import ASK, MESSAGE, STAGED_MESSAGE
from bsplib.transfers.place import WireIndex

CallSite = tuple[str, str]
"""Name of a primitive, and file and line of its call: known under ``check=True`` only."""


class Contiguous(NamedTuple):
    """Elements that follow each other in C order."""

    slot: int
    """Number of the registration, the same on all processes; so for the others."""
    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used


class Selected(NamedTuple):
    """What a basic index selects."""

    slot: int
    selection: WireIndex
    shape: tuple[int, ...]
    """Shape of the values, which broadcast to what is selected."""


class Single(NamedTuple):
    """Single elements. The data of the entry are indices, and then the values of a put."""

    slot: int
    op: bytes | None = None
    """Pickled ufunc that combines each value of a put into what is there; None to write."""


Named = Contiguous | Selected | Single

_KINDS: tuple[type[Any], ...] = (Contiguous, Selected, Single)
_CODES = {kind: code for code, kind in enumerate(_KINDS)}


def count_of(what: Named, indices: int) -> int:
    """Return how many elements are named, by an entry with a number of indices."""
    if isinstance(what, Single):
        return indices
    return what.count if isinstance(what, Contiguous) else prod(what.shape)


@lru_cache(maxsize=1024, typed=True)  # tuples of two types may be equal
def packed(what: Named, site: CallSite | None = None) -> bytes:
    """Return a description as bytes."""
    return marshal.dumps((_CODES[type(what)], tuple(what), site))


@lru_cache(maxsize=1024)
def unpacked(description: bytes) -> tuple[Named, CallSite | None]:
    """Return what :func:`packed` has made bytes of: what is described, and where it was called."""
    code, fields, site = marshal.loads(description)
    return _KINDS[code]._make(fields), site


def is_put(kind: int) -> bool:
    """Tell whether entries of a kind are puts."""
    return kind < ASK and kind not in (MESSAGE, STAGED_MESSAGE)
