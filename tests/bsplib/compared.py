"""A mode for tests in which what is encoded or decoded quickly is done once more, by all checks.

Every put and every message that the core has taken is encoded a second time by what takes the calls
that the core declines, and the bytes are compared; so is every message that the core has read. All
hooks are subclasses and methods of classes of Python, so that a run without the mode executes
nothing of this module. It is a part of the mode of :mod:`.poison`, too.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from bsplib.core.atomics import address_of, bytes_at
from bsplib.core.calls import Calls
from bsplib.core.kinds import PLACED, PUT, STAGED_PLACED, STAGED_PUT, STRIDED
from bsplib.core.known_arrays import scatter
from bsplib.core.values import NUMBER, SCALARS, Values
from bsplib.primitives import collective_mail, mailbox, state
from bsplib.primitives.state import GroupState
from bsplib.transfers import messages, operations
from bsplib.transfers.casting import cast_values
from bsplib.transfers.descriptions import Contiguous, Named, unpacked
from bsplib.transfers.place import from_wire
from bsplib.transfers.registry import Registration
from bsplib.transfers.target import target_of

_FILLED = 0x5A
"""Each byte of the stand-ins into which two puts are written, to be compared."""


def _dumps(value: Any, take_buffer: Any = None) -> bytes:
    return pickle.dumps(value, 5, buffer_callback=take_buffer)


_NO_GROUP: Any = SimpleNamespace(
    _engine=SimpleNamespace(
        begin_call=lambda: 0, end_call=lambda: 0, dumps=_dumps, loads=pickle.loads
    ),
    _port=SimpleNamespace(fetch=None, keep=None),
)
"""All that is needed of a group to decode what is not staged."""


class DifferentError(AssertionError):
    """The core has encoded or decoded something in another way than the checks."""


@contextmanager
def comparing() -> Iterator[None]:
    """Compare in this process, and in those that are forked from it meanwhile."""
    calls = {"put": _put, "hpput": _hpput, "send": _send, "messages": _messages}
    with (
        mock.patch.object(state, "Values", ComparedValues),
        mock.patch.multiple(GroupState, **calls),
    ):
        yield


def _compare(what: str, quick: Any, slow: Any) -> None:
    if quick != slow:
        raise DifferentError(f"{what}: the core has {quick!r:.300}, the checks have {slow!r:.300}")


# -- messages -----------------------------------------------------------------------------------


def _send(bsp: GroupState, pid: Any, payload: Any, tag: Any = None) -> None:
    Calls.send(bsp, pid, payload, tag)
    if bsp._watch is None:
        if bsp._supersteps.tag_size is not None:
            tag = mailbox._check_tag(bsp, tag)
        _check_message(bsp, int(pid), payload, tag)


def _check_message(bsp: GroupState, to: int, payload: Any, tag: Any) -> None:
    """Encode a message that was sent last to a process once more."""
    staged: list[Any] = []

    def stage(nbytes: int, _to: int) -> Any:
        staged.append(np.empty(nbytes, np.uint8))
        return (0, 0, nbytes), staged[0]

    head, content = messages.encode(payload, tag, stage, to, bsp._engine)
    entry = bsp._engine.own_entries(to)[-1]
    data = staged[0].tobytes() if staged else content
    found = marshal.loads(entry[3]), _data_of(bsp, to, entry, data)
    _compare(f"message to {to}", repr(found), repr((head, data)))


def _data_of(bsp: GroupState, to: int, entry: Any, otherwise: Any) -> Any:
    """Return the data of an entry; what is staged outside of shared memory is not looked at."""
    kind, *_, where, nbytes = entry
    if kind & 1:
        return bytes_at(where, nbytes)
    meeting = bsp._engine.meeting
    return bytes_at(meeting.address_of(where), nbytes) if meeting.shares_memory else otherwise


class ComparedValues(Values):
    """The values of collectives in this mode."""

    def __init__(self, engine: Any, clock: Any) -> None:
        super().__init__(engine, clock)
        self._queue = engine.queue

    def send_all(self, bsp: Any, receivers: Any, value: Any, tag: Any) -> None:
        """See :meth:`Values.send_all`."""
        super().send_all(bsp, receivers, value, tag)
        if bsp._watch is None:
            says_number = (SCALARS,) if type(value) is np.float64 else (SCALARS, NUMBER)
            if tag.header in says_number and type(value) in (float, int, np.float64):
                value = operations.to_wire(value)
            for to in receivers:
                _check_message(bsp, to, value, tag)

    def take(
        self,
        bsp: Any,
        operation: str,
        recipe: Any,
        sources: Any,
        place: int,
        own: Any,
        views: bool,
    ) -> list[Any]:
        """See :meth:`Values.take`."""
        came = [*self._queue.messages]
        declined: list[Any] = []

        def take_slowly(*given: Any) -> Any:
            declined.append(operation)
            return bsp._take(*given)

        group = SimpleNamespace(_take=take_slowly)
        taken = super().take(group, operation, recipe, sources, place, own, views)
        if not declined:
            others = [value for at, value in enumerate(taken) if at != place]
            for message, value in zip(came, others, strict=True):
                if not _is_kept(message):
                    slow = collective_mail.unwrap(_NO_GROUP, message)
                    if recipe is not None and recipe.shape == SCALARS:
                        slow = operations.from_wire(slow)
                    _compare(operation, _described(value), _described(slow))
        return taken


def _is_kept(message: Any) -> bool:
    """Tell whether a message may have become memory of its reader."""
    return isinstance(message[2], tuple)


def _described(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return type(value), repr(value.dtype), value.dtype.num, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return [_described(each) for each in value]
    return type(value), repr(value)


def _messages(bsp: GroupState) -> Any:
    return _Reading(bsp, Calls.messages(bsp))


class _Reading:
    """Reads messages twice."""

    def __init__(self, bsp: GroupState, reading: Any) -> None:
        self._bsp = bsp
        self._reading = reading

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        message = self._bsp._engine.queue.peek()
        found = next(self._reading)
        if message is not None and not _is_kept(message):
            slow = mailbox.decode(self._bsp, message)
            _compare("messages", _described(found), _described(slow))
        return found

    def __len__(self) -> int:
        return len(self._reading)


# -- puts -----------------------------------------------------------------------------------------


def _put(
    bsp: GroupState, pid: Any, src: Any, dst: Any, *, offset: Any = None, at: Any = None
) -> None:
    _put_twice(bsp, "put", pid, src, dst, offset, at)


def _hpput(
    bsp: GroupState, pid: Any, src: Any, dst: Any, *, offset: Any = None, at: Any = None
) -> None:
    _put_twice(bsp, "hpput", pid, src, dst, offset, at)


def _put_twice(
    bsp: GroupState, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any
) -> None:
    is_compared = bsp._watch is None and bsp._engine.is_usable()
    to = int(pid) if is_compared and isinstance(pid, int | np.integer) else -1
    is_compared = is_compared and 0 <= to < bsp.nprocs
    before = len(bsp._engine.own_entries(to)) if is_compared else 0
    getattr(Calls, operation)(bsp, pid, src, dst, offset=offset, at=at)
    if not is_compared:
        return
    entries = bsp._engine.own_entries(to)[before:]
    target = target_of(operation, bsp._registry, to, dst, offset, at, src)
    values = cast_values(operation, src, target.dtype)
    if values.size == 0 or not entries:  # an hpput may have been written at its call
        return
    put, arranged = target.for_put(values)
    there = target._registration.announced_on(to) or target._registration.announcement()
    if target.resolved and there is not None:
        slow = np.full(there.size * target.dtype.itemsize, _FILLED, np.uint8)
        quick = slow.copy()
        _write(slow.view(target.dtype).reshape(there.shape), put, arranged)
        _write_entry(quick, target._registration, entries[0], target, there.shape, bsp)
        _compare(f"{operation} to {to}", quick.tobytes(), slow.tobytes())


def _write(array: Any, put: Named, values: Any) -> None:
    if isinstance(put, Contiguous):
        array.reshape(-1)[put.first : put.first + values.size] = values.reshape(-1)
    else:
        array[from_wire(put.selection)] = values  # type: ignore[union-attr]  # of an index


def _write_entry(
    memory: Any,
    registration: Registration,
    entry: Any,
    target: Any,
    shape: Sequence[int],
    bsp: GroupState,
) -> None:
    """Write the entry of a put into a stand-in, as its receiver does."""
    kind, slot, first, description, _, _, nbytes = entry
    data = np.frombuffer(_data_of(bsp, target._pid, entry, b"") or b"", np.uint8)
    if kind in (PUT, STAGED_PUT):
        _compare("registration", slot, registration.slot)
        if data.size:
            memory[first : first + nbytes] = data
    elif kind == STRIDED:
        words, values = np.frombuffer(description, np.uint8).copy(), data.copy()
        scatter(address_of(words), address_of(memory), address_of(values))
    elif kind in (PLACED, STAGED_PLACED):
        put, _ = unpacked(description)
        _compare("registration", put.slot, registration.slot)
        array = memory.view(target.dtype).reshape(shape)
        _write(array, put, data.view(target.dtype).reshape(getattr(put, "shape", -1)))
