"""What the collectives have in common: their messages, and how values travel in them.

The collectives (:mod:`bsplib.primitives.exchanges`, :mod:`bsplib.primitives.combinations`)
are written on send and sync alone, so that they cost what BSP says, and their supersteps
stand in a profile like any others. Every process of the group calls the same one, with
the same root. Of all of them:

* What they return is the caller's own: no part of it is memory of an argument.
* A value is taken at the call; puts that are pending take effect at the syncs.
* Messages that the program sent before can be read afterwards, however many
  supersteps it took; those not read before are gone, as after any sync.
* A call that is refused for its arguments changes nothing. After any other exception the
  group cannot be used any more: the others may have gone on without this process.

In the costs n is the bytes of one value (of a part, where there are parts), p the
number of processes. Arrays, bytes and numbers travel as they are, anything else as its
pickle.

A message of a collective says in its tag which one, and what else the receivers need
to know. It stands apart from those that the program sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bsplib.core.forms import ARRAY
from bsplib.core.queue import CollectiveTag, Message
from bsplib.core.values import NUMBER, SCALARS, Recipe
from bsplib.errors import MessageError, ShapeError, SyncMismatchError
from bsplib.primitives.blocks import by_process
from bsplib.primitives.mailbox import send_slowly
from bsplib.primitives.state import GroupState
from bsplib.transfers import messages, operations

WORD = 8
"""Bytes of a number of Python's own; and of an element, where all processes have to choose alike:
dtypes may differ."""
_NUMBERS = frozenset({int, float})
"""Types of values that travel as an array without axes. An int of more than 64 bits is pickled."""
_UNCHANGEABLE = _NUMBERS | {type(None), bool, complex, str, bytes}
"""Types of values that need no copy to be the caller's own."""


class Piece(NamedTuple):
    """What came of a value that travels in pieces."""

    header: tuple[Any, ...]
    """How the value is made of all pieces."""
    elements: Any
    """Valid until the next sync."""


def check_call(bsp: GroupState, operation: str, root: Any) -> int:
    """Return the root of a collective; raise if this process may not take part in it now."""
    bsp._check_usable()
    return bsp._check_pid(root, operation)


def all_others(bsp: GroupState) -> Sequence[int]:
    """Return the other processes, beginning after this one, so that not all send to one."""
    return _all_but(bsp._pid, bsp._nprocs)


def take_arrived(
    bsp: GroupState, operation: str, sources: Iterable[int], kept: list[Message] | None = None
) -> dict[int, Message]:
    """Return what a superstep of this collective brought, by source.

    Args:
        operation: the collective.
        sources: the processes that send something in it, with or without this one.
        kept: messages that the program had not read before the collective; they are
            put back, to be read after it.
    """
    arrived = _take_messages(bsp, operation)
    if kept:
        bsp._engine.queue.fill(kept)
    _check_sources(bsp, operation, arrived, sources)
    return arrived


def take(
    bsp: GroupState,
    operation: str,
    recipe: Recipe | None,
    sources: Sequence[int],
    place: int,
    own: Any,
    views: bool,
) -> list[Any]:
    """Do as :meth:`bsplib.core.values.Values.take`, with every check there is."""
    arrived = _take_messages(bsp, operation)
    if recipe is not None:
        _check_shapes(bsp, recipe, arrived)
    if operation != "alltoall":  # in which None is not sent
        _check_sources(bsp, operation, arrived, sources)
    found = [arrived.get(pid) for pid in sources]
    values = [each and unwrap(bsp, each, copy=not views) for each in found]
    if recipe is not None and recipe.shape == SCALARS:
        values = [operations.from_wire(value) for value in values]
    if place >= 0:
        values.insert(place, own)
    return values


def _take_messages(bsp: GroupState, operation: str) -> dict[int, Message]:
    """Take the messages of a collective from the queue, by source."""
    arrived = {}
    for message in bsp._engine.queue.take_collective():
        source, ((other, _), _, _), _ = message
        if other != operation:
            raise bsp._error(
                SyncMismatchError,
                f"{operation}: process {source} is in {other} in the same superstep; all "
                f"processes call the same collectives in the same order",
            )
        arrived[source] = message
    return arrived


def _check_shapes(bsp: GroupState, recipe: Recipe, arrived: dict[int, Message]) -> None:
    """Raise where the shapes of the values that have come differ."""
    shape = recipe.shape
    silent = recipe.cut and len(arrived) + 1 < bsp._nprocs
    if not silent and all(header_of(message) == shape for message in arrived.values()):
        return
    shapes = {pid: header_of(message) for pid, message in arrived.items()}
    shapes[bsp._pid] = shape
    if len(shapes) < bsp._nprocs:
        # A process that has all shapes raises in this superstep. Its error says more, and
        # run raises the error of the lowest superstep: this process waits for the next.
        bsp.sync()
    if len(set(shapes.values())) > 1:
        words = by_process(shapes)
        raise bsp._error(ShapeError, f"{recipe.operation}: the shapes of x differ: {words}")


def _check_sources(
    bsp: GroupState, operation: str, arrived: dict[int, Message], sources: Iterable[int]
) -> None:
    """Raise unless a superstep of a collective brought something from these processes."""
    mine = bsp._pid
    expected = [pid for pid in sources if pid != mine]
    if list(arrived) == expected:
        return
    wrong = sorted(arrived.keys() ^ set(expected))
    if wrong:
        came = "something" if wrong[0] in arrived else "nothing"
        raise bsp._error(
            SyncMismatchError,
            f"{operation}: {came} came from process {wrong[0]}; all processes call {operation} "
            f"together, with the same root and op",
        )


def unwrap(bsp: GroupState, message: Message, *, copy: bool = True) -> Any:
    """Return what a message holds; without ``copy`` an array as a view until the sync."""
    bsp._engine.begin_call()
    try:
        _, head, content = message
        header = header_of(message)
        copy = copy and header is not True and type(header) is not tuple
        payload = messages.decode(head, content, bsp._port.fetch, bsp._engine, copy=copy)
        if type(header) is tuple:
            return Piece(header, payload)
        if header == NUMBER and head[2][0] == ARRAY:
            return payload.item()
        return unpack(bsp, payload, pickled=header is True)
    finally:
        bsp._engine.end_call()


def give(bsp: GroupState, operation: str, receivers: Sequence[int], x: Any) -> Any:
    """Do as :meth:`bsplib.core.values.Values.give`, with every check there is."""
    bsp._check_usable()
    if not receivers:
        return own_copy(bsp, operation, x)
    data, header = pack(bsp, operation, x)
    bsp._values.send_all(bsp, receivers, data, tag_of(operation, header))
    if operation == "gather":  # only its root needs the own value
        return None
    return unpack(bsp, copied(data), pickled=header is True)


def send_value(bsp: GroupState, to: int, value: Any, tag: CollectiveTag) -> None:
    """Send a value to one process, with every check there is."""
    says_number = (SCALARS,) if type(value) is np.float64 else (SCALARS, NUMBER)
    # Without such a header the receiver would take it for an array.
    is_number = tag.header in says_number and type(value) in (float, int, np.float64)
    send_slowly(bsp, to, operations.to_wire(value) if is_number else value, tag)


def pack(bsp: GroupState, operation: str, x: Any) -> tuple[Any, Any]:
    """Return what is sent of a value, and the header of the message."""
    if type(x) in _NUMBERS:
        return x, NUMBER
    x = bsp._to_read(operation, x)
    if messages.is_plain(x):
        return x, None
    try:
        return bsp._engine.dumps(x), True
    except Exception as error:
        kind = type(x).__name__
        raise bsp._error(
            MessageError,
            f"{operation}: a value of type {kind} cannot be pickled: {error}; give it data, "
            f"such as arrays, numbers and text",
        ) from error


def own_copy(bsp: GroupState, operation: str, x: Any) -> Any:
    """Return a value as it would arrive on another process."""
    if type(x) in _UNCHANGEABLE:
        return x
    data, header = pack(bsp, operation, x)
    return unpack(bsp, copied(data), pickled=header is True)


def piece_of(bsp: GroupState, pid: int, size: int) -> slice:
    """Return which of ``size`` elements are process ``pid``'s."""
    return slice(pid * size // bsp.nprocs, (pid + 1) * size // bsp.nprocs)


@lru_cache(maxsize=256)
def _all_but(pid: int, nprocs: int) -> Sequence[int]:
    return *range(pid + 1, nprocs), *range(pid)


@lru_cache(maxsize=256)
def others_of(pid: int, nprocs: int) -> tuple[int, ...]:
    """Return all processes but one, by pid."""
    return *range(pid), *range(pid + 1, nprocs)


@lru_cache(maxsize=256)
def tag_of(operation: str, header: Any = None) -> CollectiveTag:
    """Return the tag of a message of a collective."""
    return CollectiveTag(operation, header)


def header_of(message: Message) -> Any:
    """Return what a message of a collective says to its receiver, besides the payload."""
    (_, header), _, _ = message[1]
    return header


def copied(data: Any) -> Any:
    """Return a payload in memory of its own."""
    return data.copy() if type(data) is np.ndarray else data


def unpack(bsp: GroupState, data: Any, *, pickled: bool) -> Any:
    """Return the value that a payload stands for."""
    return bsp._engine.loads(data) if pickled else data
