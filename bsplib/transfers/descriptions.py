"""What the entries of puts and gets describe, where they are more than contiguous elements.

A description is one of the types below, with the place of the call under ``check=True``, and is
sent as bytes. It consists of None, numbers, strings, bytes and tuples of them, so that
:mod:`marshal` can pack it. Programs name the same places again in each superstep: what was packed
or unpacked last is remembered.
"""

from __future__ import annotations

import marshal
from functools import lru_cache
from typing import Any, NamedTuple

from bsplib.core.kinds import ASK, MESSAGE, STAGED_MESSAGE
from bsplib.transfers.place import WireIndex

CallSite = tuple[str, str]
"""Name of a primitive, and file and line of its call: known under ``check=True`` only."""


class ContiguousPut(NamedTuple):
    """Write elements that follow each other in C order."""

    slot: int
    """Number of the registration, the same on all processes."""
    first: int


class IndexPut(NamedTuple):
    """Write what a basic index selects."""

    slot: int
    selection: WireIndex
    shape: tuple[int, ...]
    """Shape of the values, which broadcast to what is selected."""


class ElementsPut(NamedTuple):
    """Write or combine single elements. Its data are indices, and then the values."""

    slot: int
    op: bytes | None
    """Pickled ufunc that combines each value into what is there; None to write."""


class ContiguousGet(NamedTuple):
    """Read elements that follow each other in C order."""

    slot: int
    first: int
    nbytes: int


class IndexGet(NamedTuple):
    """Read what a basic index selects."""

    slot: int
    selection: WireIndex
    nbytes: int


class ElementsGet(NamedTuple):
    """Read single elements. Its data are indices."""

    slot: int
    nbytes: int


Put = ContiguousPut | IndexPut | ElementsPut
Get = ContiguousGet | IndexGet | ElementsGet

_KINDS: tuple[type[Any], ...] = (
    ContiguousPut,
    IndexPut,
    ElementsPut,
    ContiguousGet,
    IndexGet,
    ElementsGet,
)
_CODES = {kind: code for code, kind in enumerate(_KINDS)}


@lru_cache(maxsize=1024, typed=True)  # tuples of two types may be equal
def packed(what: Put | Get, site: CallSite | None = None) -> bytes:
    """Return a description as bytes."""
    return marshal.dumps((_CODES[type(what)], tuple(what), site))


@lru_cache(maxsize=1024)
def unpacked(description: bytes) -> tuple[Any, CallSite | None]:
    """Return what :func:`packed` has made bytes of: what is described, and where it was called."""
    code, fields, site = marshal.loads(description)
    return _KINDS[code]._make(fields), site


def is_put(kind: int) -> bool:
    """Tell whether entries of a kind are puts."""
    return kind < ASK and kind not in (MESSAGE, STAGED_MESSAGE)
