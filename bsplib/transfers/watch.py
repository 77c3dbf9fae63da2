"""What ``check=True`` stores about the arrays of one process from sync to sync."""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

from bsplib import call_site
from bsplib.core.atomics import filler
from bsplib.errors import BspError, OverlapError, RegistrationError
from bsplib.transfers.descriptions import CallSite
from bsplib.transfers.guard import AccessCheck, access_of, guarded, plain, readable
from bsplib.transfers.held_arrays import is_held
from bsplib.transfers.place import Array
from bsplib.transfers.registry import Registration, Registry

_QUARANTINE_BYTES = 64 * 2**20
"""Bytes of freed memory that is not given back but filled with 0xFF, so that a program which
still reads it gets wrong values at once."""


class _Watched(NamedTuple):
    """An array that must not change until the sync."""

    array: Array
    checksum: int
    site: CallSite
    content: Array | None
    """Values of the destination of a get, which is filled with others until the sync; else None."""


class Quarantine:
    """Freed memory of one process that is not used again for a while.

    Args:
        release: called with memory to give back.
    """

    def __init__(self, release: Callable[[memoryview], None]) -> None:
        self._release = release
        self._kept: deque[memoryview] = deque()
        self._nbytes = 0

    def keep(self, memory: memoryview) -> None:
        """Fill memory with 0xFF and keep it; give the oldest back if that is too much."""
        _fill(np.frombuffer(memory, np.uint8))
        self._kept.append(memory)
        self._nbytes += memory.nbytes
        while self._nbytes > _QUARANTINE_BYTES:
            oldest = self._kept.popleft()
            self._nbytes -= oldest.nbytes
            self._release(oldest)


class Watch:
    """The arrays of one process in one group, as ``check=True`` watches them.

    Args:
        error: makes an error with process, superstep and line.
        warn: warns at the line of the program that calls a primitive.
        quarantine: freed memory of this process.
    """

    def __init__(
        self,
        error: Callable[[type[BspError], str], BspError],
        warn: Callable[[str], None],
        quarantine: Quarantine,
    ) -> None:
        self.quarantine = quarantine
        self._error = error
        self._warn = warn
        self._watched: list[_Watched] = []
        self._verified: list[_Watched] = []
        self._expecting: list[AccessCheck] = []
        self._before: dict[int, Array] = {}  # by slot: copies from the beginning of the superstep
        self._allocated: WeakSet[AccessCheck] = WeakSet()

    # -- arrays of this process in its own transfers ----------------------------------------

    def source(self, array: Any, operation: str) -> Any:
        """Return values as a plain array to read from; watch them if they are of an hpput.

        Raises:
            OverlapError: they are the destination of a get, which is not written yet.
        """
        values = readable(array)
        if isinstance(values, np.ndarray):
            for access in self._allocated:
                if access.covers(values):
                    access.check_read(values)
            for each in self._watched:
                if each.content is not None and np.shares_memory(values, each.array):
                    raise OverlapError(not_there_yet(*each.site))
        if operation == "hpput" and isinstance(values, np.ndarray):
            site = (operation, call_site.line())
            self._watched.append(_Watched(values, _checksum(values), site, None))
        return values

    def destination(self, given: Array, operation: str, *, new: bool) -> Array:
        """Watch the destination of a get; return the array that the program is given.

        To read a new array, or one of the runtime, before the sync is an error. What numpy does
        not see reads :func:`filler` there, as in an array that belongs to the program.

        Args:
            given: where the values are written.
            operation: name of the primitive.
            new: the array was made by this call.
        """
        site, array = (operation, call_site.line()), plain(given)
        if new:
            given = guarded(array, AccessCheck(array, self._report))
        access = access_of(given)
        if access is not None:
            access.expect(array, not_there_yet(*site))
            self._expecting.append(access)
        content = array.copy()
        _fill(array)
        self._watched.append(_Watched(array, _checksum(array), site, content))
        return given

    def verify(self) -> None:
        """Raise if a watched array was changed, and stop watching.

        Raises:
            OverlapError: it was; the text names the transfer and the sync.
        """
        self._verified, self._watched = self._watched, []
        for access in self._expecting:
            access.settle()
        self._expecting.clear()
        changed: CallSite | None = None
        # In reverse order: an array may overlap one that was filled later, and is compared after
        # that one has its content back.
        for array, checksum, site, content in reversed(self._verified):
            if _checksum(array) != checksum:
                changed = site
            if content is not None:
                array[...] = content
        if changed is not None:
            operation, line = changed
            what = "source" if operation == "hpput" else "destination"
            raise OverlapError(
                f"the {what} of {operation} at {line} was changed before the "
                f"sync at {call_site.line()}"
            )

    def take(self) -> list[tuple[Array, CallSite]]:
        """Return the watched arrays that did not change, and forget them."""
        verified, self._verified = self._verified, []
        return [(each.array, each.site) for each in verified]

    # -- registered arrays --------------------------------------------------------------------

    def allocated(self, array: Array) -> Array:
        """Return a newly allocated array in the form that the program is given."""
        access = AccessCheck(array, self._report)
        self._allocated.add(access)
        return guarded(array, access)

    def warn_if_lost(self, registration: Registration, process: int, what: str) -> None:
        """Warn, once, of a transfer to an array that the program does not hold any more.

        Args:
            registration: of the array, on this process.
            process: this process.
            what: the transfer, as text.
        """
        origin = registration.origin
        popped = registration.freed_by is not None
        if origin is None or popped or is_held(registration, origin.references):
            return
        registration.origin = None
        name = f"the array {origin.name!r}" if origin.name else "the array"
        self._warn(
            f"{name} of process {process}, from {origin.words}, is reached by {what}, but the "
            f"program does not hold it any more; an assignment such as x = x + 1 makes another "
            f"array: write x[...] = x + 1"
        )

    def warn_of_overwritten(self, what: str, lines: Iterable[tuple[str, int]], by: str) -> None:
        """Warn of values of this process that another one overwrites before they are read.

        Args:
            what: whose elements they are, as text.
            lines: that have written them, each with the number of elements.
            by: the put, as text.
        """
        for line, count in lines:
            elements, them = ("element", "it") if count == 1 else ("elements", "them")
            self._warn(
                f"{count} {elements} of {what}, written at {line}: {by} overwrites {them} in the "
                f"same superstep, and nothing has read {them} before; write after the sync, or put "
                f"elsewhere"
            )

    def begin(self, registry: Registry) -> None:
        """Copy all registered arrays when a superstep begins."""
        for _, registration in registry.active():
            access = access_of(registration.handle)
            if access is not None:
                access.forget_writes()
        self._before = {
            slot: registration.array.copy()
            for slot, registration in registry.active()
            if registration.array is not None
        }

    def before(self, slot: int) -> Array | None:
        """Return the copy of an array; None if the array was made in this superstep."""
        return self._before.get(slot)

    def free(self, registrations: Iterable[Registration]) -> None:
        """Make every use of freed arrays an error, and put their memory into the quarantine."""
        for registration in registrations:
            access = access_of(registration.handle)
            if access is not None and registration.memory is not None:
                access.free(registration.freed_by or f"the end of its group at {call_site.line()}")
                self.quarantine.keep(registration.memory)

    # -- messages -------------------------------------------------------------------------------

    def warn_of_unread(self, sources: Sequence[int], process: int) -> None:
        """Warn of messages that cannot be read any more.

        Args:
            sources: process that sent each of them.
            process: this process.
        """
        by_source = Counter(sources)
        senders = ", ".join(f"{count} from process {pid}" for pid, count in by_source.items())
        was, them = ("was", "it") if len(sources) == 1 else ("were", "them")
        self._warn(
            f"{len(sources)} message{'s' * (len(sources) != 1)} to process {process} ({senders}) "
            f"{was} not read before the superstep ended at {call_site.line()}, and {was} lost; "
            f"read {them} before, by bsp.messages()"
        )

    def _report(self, freed: bool, text: str) -> Exception:
        return self._error(RegistrationError if freed else OverlapError, text)


def not_there_yet(operation: str, line: str) -> str:
    """Return the text of the error for a destination of a get that is read too early."""
    return (
        f"the destination of {operation} at {line} is read before the sync, which writes its "
        f"values; read it after the sync"
    )


def _checksum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data)


def _fill(array: Array) -> None:
    if array.itemsize:
        array[...] = filler(array.dtype)
