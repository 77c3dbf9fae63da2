"""What ``check=True`` looks for: calls that are legal but probably a mistake.

* Two puts of a superstep that write the same element: the contract defines which value stays,
  but rarely is that intended.
* An hp-transfer that overlaps another transfer, in what it reads or in what it
  writes: an hp-transfer takes effect at any time in the superstep.
* A source of hpput, or a destination of get, that is changed before the sync, and a
  destination of get that is read before it (:mod:`bsplib.transfers.watch`).
* A transfer to an array that the program does not hold any more, which is a warning
  (:mod:`bsplib.transfers.held_arrays`).
* A source of another process's hpget, or a destination of its hpput, that this process
  changes in the same superstep.
* Values that this process has written into an allocated array and that a put of another process
  overwrites before anything has read them, which is a warning (:mod:`bsplib.transfers.guard`).

Every error names the lines of both calls. The process that owns the memory finds the
overlaps from the addresses of the elements, so that it does not matter by which view or
registration they were named.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from math import gcd
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from bsplib import call_site
from bsplib.backends.base import Port
from bsplib.core.engine import Engine
from bsplib.core.entries import Entry
from bsplib.core.kinds import ASK, STAGED_ASK
from bsplib.errors import BspError, OverlapError
from bsplib.transfers.delivery import check_arrivals, parts_of
from bsplib.transfers.descriptions import CallSite, Named, Selected, Single, is_put, unpacked
from bsplib.transfers.guard import access_of
from bsplib.transfers.held_arrays import refresh_variables
from bsplib.transfers.place import Array, address, from_wire, memory_range
from bsplib.transfers.registry import Registry
from bsplib.transfers.watch import Watch


class Checking:
    """Compares the transfers of each superstep, and what they have to do with its arrays.

    Args:
        watch: what is known of the superstep.
        registry: the registered arrays.
        port: the process's connection to the others of the group.
        data_of: returns the data of an entry.
        fail_for_good: raises an error after which the group cannot be used.
    """

    def __init__(
        self,
        watch: Watch,
        registry: Registry,
        port: Port,
        data_of: Callable[[int, Entry], Any],
        fail_for_good: Callable[[BaseException], NoReturn],
    ) -> None:
        self._watch = watch
        self._registry = registry
        self._port = port
        self._process = port.members[port.pid]
        self._data_of = data_of
        self._fail_for_good = fail_for_good

    def meet(self, engine: Engine) -> None:
        """Do as :meth:`finish`, at the end of a superstep."""
        try:
            self.finish(engine)
        except BspError as error:
            self._fail_for_good(error)

    def finish(self, engine: Engine) -> None:
        """Report arrays of transfers that were changed, and warn of messages that were not read."""
        self._watch.verify()
        queue = engine.queue
        lost = queue.messages[queue.next : len(queue.messages) - queue.lasting]
        unread = [self._port.members[source] for source, *_ in lost]
        if unread:
            self._watch.warn_of_unread(unread, self._process)

    def arrived(self, engine: Engine) -> None:
        """Report transfers that overlap."""
        self.compare([(pid, engine.arrivals.entries_of(pid)) for pid in range(engine.nprocs)])

    def compare(self, incoming: Iterable[tuple[int, list[Entry]]]) -> None:
        """Compare all that the transfers of a superstep do to the memory of this process.

        Args:
            incoming: entries of all processes for this one, its own included, by source.

        Raises:
            OverlapError: two of them exclude each other, or this process has changed what
                another one reads or writes at any time in the superstep.
            BoundsError: a put leaves its array, which is found only here in an oblivious
                superstep.
        """
        for source, entries in incoming:
            check_arrivals(self._registry, source, entries, self._data_of)
        transfers = [
            self._transfer_of(source, entry)
            for source, entries in incoming
            for entry in entries
            if is_put(entry[0]) or entry[0] in (ASK, STAGED_ASK)
        ]
        if transfers:
            refresh_variables()
        for transfer in transfers:
            registration = self._registry.at(transfer.what.slot)
            self._watch.warn_if_lost(registration, self._process, transfer.words())
        transfers.sort(key=lambda transfer: transfer.is_get)  # puts are named first in a report
        calls = [self._call(transfer) for transfer in transfers]
        for array, (operation, line) in self._watch.take():
            use, what = _HERE[operation]
            calls.append(_Call(use, _words(what, self._process, line), array, None))
        for group in _overlap_candidates(calls):
            _compare(group)
        for transfer in reversed(transfers):  # what is got has been read
            self._check_unchanged(transfer)
            self._check_unread(transfer)

    def delivered(self) -> None:
        """Begin to watch the next superstep."""
        self._watch.begin(self._registry)

    # -- the elements of this process's arrays that transfers name ---------------------------------

    def _transfer_of(self, source: int, entry: Entry) -> _Transfer:
        """Return the transfer that an entry of a process describes."""
        kind, _, _, description, indices, *_ = entry
        what, site = unpacked(description)
        where = parts_of(indices, self._data_of(source, entry))[0] if indices else None
        process = self._port.members[source]
        return _Transfer(what, where, process, site or ("", ""), not is_put(kind))

    def _call(self, transfer: _Transfer) -> _Call:
        """Return a transfer as a use of the memory of this process."""
        owner = self._registry.at(transfer.what.slot).handle
        return _Call(transfer.use(), transfer.words(), *self._part(transfer), owner)

    def _check_unchanged(self, transfer: _Transfer) -> None:
        """Raise if this process has changed what an hp-transfer names in its arrays."""
        operation, _ = transfer.site
        before = self._watch.before(transfer.what.slot) if operation in _AT_ANY_TIME else None
        if before is None:
            return
        now, then = (
            part if elements is None else part.flat[elements]
            for part, elements in (self._part(transfer), self._part(transfer, before))
        )
        if now.tobytes() != then.tobytes():
            raise OverlapError(
                f"process {self._process} has changed the {_AT_ANY_TIME[operation]} of "
                f"{transfer.words()} in the superstep that ends at {call_site.line()}"
            )

    def _check_unread(self, transfer: _Transfer) -> None:
        """Warn if a put of another process overwrites what this one has written for nobody."""
        owner = self._registry.at(transfer.what.slot).handle
        access = access_of(owner)
        if access is None or (transfer.process == self._process and not transfer.is_get):
            return
        part, elements = self._part(transfer)
        where = ... if elements is None else np.unravel_index(elements, part.shape)
        if transfer.is_get or transfer.use() == _Use.COMBINE:
            access.check_read(part, where)
            return
        name = call_site.name_of(owner)
        what = f"{repr(name) if name else 'an array'} of process {self._process}"
        self._watch.warn_of_overwritten(what, access.unread(part, where), transfer.words())

    def _part(
        self, transfer: _Transfer, array: Array | None = None
    ) -> tuple[Array, NDArray[np.int64] | None]:
        """Return a part of an array, and which elements of it a transfer names; None for all.

        Args:
            transfer: the transfer.
            array: a copy of its array in place of that.
        """
        what = transfer.what
        array = self._registry.at(what.slot).array if array is None else array
        assert array is not None  # the sender has checked
        if isinstance(what, Selected):
            index = from_wire(what.selection)
            return array[index if Ellipsis in index else (*index, Ellipsis)], None
        dense = array.flags.c_contiguous
        line = array.reshape(-1) if dense else array
        if isinstance(what, Single):
            return line, transfer.indices
        stop = what.first + what.count
        if dense:
            return line[what.first : stop], None
        return array, np.arange(what.first, stop)


class _Use(enum.IntFlag):
    """What a call does to an element, and when."""

    READ = enum.auto()  # read by a get, before anything is written
    ARRIVE = enum.auto()  # written as the destination of a get, before all puts
    PUT = enum.auto()  # written by a put, in the order of the puts
    COMBINE = enum.auto()  # combined by put_at with op=, in the order of the puts
    HP_READ = enum.auto()  # read at any time: source of an hpget or an hpput
    HP_WRITE = enum.auto()  # written at any time: destination of an hpput or an hpget


_HP = _Use.HP_READ | _Use.HP_WRITE
_WRITES = _Use.ARRIVE | _Use.PUT | _Use.COMBINE | _Use.HP_WRITE

_EXCLUDES = {
    _Use.READ: _Use.HP_WRITE,
    _Use.ARRIVE: _HP,
    _Use.PUT: _HP | _Use.PUT | _Use.COMBINE,
    _Use.COMBINE: _HP,  # keeps what an earlier put has written
    _Use.HP_READ: _WRITES,
    _Use.HP_WRITE: _WRITES | _Use.READ | _Use.HP_READ,
}

_HERE = {
    "hpput": (_Use.HP_READ, "source of hpput"),
    "hpget": (_Use.HP_WRITE, "destination of hpget"),
    "get": (_Use.ARRIVE, "destination of get"),
    "get_at": (_Use.ARRIVE, "destination of get_at"),
}
"""What a call does to the array that it was given, which belongs to the calling process."""

_AT_ANY_TIME = {"hpput": "destination", "hpget": "source"}
"""What a call names on another process, which must not change it before the sync."""


class _Call(NamedTuple):
    """A transfer, as far as it concerns the memory of this process."""

    use: _Use
    words: str
    """Text for errors: primitive, line and process of the call."""
    part: Array
    elements: NDArray[np.int64] | None
    """The elements of the part, by their number in C order; None for all."""
    owner: Any = None
    """The registered array to which the part belongs, as the program has it."""


def _words(operation: str, process: int, line: str) -> str:
    return f"{operation} ({line}, process {process})"


class _Transfer(NamedTuple):
    """A put or a get that names elements of this process."""

    what: Named
    indices: NDArray[np.int64] | None
    """Indices of single elements; None for the other kinds."""
    process: int
    """The process that called it, by its pid in the root group."""
    site: CallSite
    is_get: bool

    def words(self) -> str:
        """Return text for errors: primitive, line and process of the call."""
        operation, line = self.site
        return _words(operation, self.process, line)

    def use(self) -> _Use:
        """Return what it does to each element."""
        operation, _ = self.site
        if self.is_get:
            return _Use.HP_READ if operation == "hpget" else _Use.READ
        if isinstance(self.what, Single) and self.what.op is not None:
            return _Use.COMBINE
        return _Use.HP_WRITE if operation == "hpput" else _Use.PUT


def _overlap_candidates(calls: list[_Call]) -> list[list[_Call]]:
    """Return groups of calls whose ranges of memory overlap.

    Calls stay in order; a call that overlaps no other is left out.
    """
    spans = sorted((*memory_range(call.part), number) for number, call in enumerate(calls))
    groups: list[list[int]] = []
    reach = 0
    for low, high, number in spans:
        if groups and low < reach:
            groups[-1].append(number)
        else:
            groups.append([number])
        reach = max(reach, high)
    several = sorted(sorted(group) for group in groups if len(group) > 1)
    return [[calls[number] for number in group] for group in several]


class _Marks:
    """One mark for each unit of bytes of a range of memory that several arrays share."""

    def __init__(self, parts: Iterable[Array]) -> None:
        parts = list(parts)
        ranges = [memory_range(part) for part in parts]
        self._low = min(low for low, _ in ranges)
        high = max(high for _, high in ranges)
        self.unit = gcd(*(size for part in parts for size in self._sizes(part)))
        self.all = np.zeros((high - self._low) // self.unit, np.uint8)

    def _sizes(self, part: Array) -> Iterator[int]:
        """Return numbers of bytes of which the unit is a divisor."""
        yield part.itemsize
        yield address(part) - self._low
        yield from (s for n, s in zip(part.shape, part.strides, strict=True) if n > 1)

    def of(self, call: _Call) -> tuple[NDArray[np.uint8], Any]:
        """Return the marks of the call's array, and the index of its elements among them."""
        part = call.part
        marks = np.lib.stride_tricks.as_strided(
            self.all[(address(part) - self._low) // self.unit :],
            (part.itemsize // self.unit, *part.shape),
            (1, *(stride // self.unit for stride in part.strides)),
        )
        if call.elements is None:
            return marks, ...
        return marks, (slice(None), *np.unravel_index(call.elements, part.shape))


def _compare(calls: list[_Call]) -> None:
    """Raise if two of these calls use an element in ways that exclude each other."""
    marks = _Marks(call.part for call in calls)
    for number, call in enumerate(calls):
        view, index = marks.of(call)
        if np.any(view[index] & int(_EXCLUDES[call.use])):
            raise _overlap(marks, calls[:number], call)
        view[index] |= int(call.use)


def _overlap(marks: _Marks, earlier: list[_Call], late: _Call) -> OverlapError:
    """Return the error for a call and the last earlier call that excludes it."""
    marks.all[:] = 0
    view, index = marks.of(late)
    view[index] = 1
    for early in reversed(earlier):
        view, index = marks.of(early)
        if early.use & _EXCLUDES[late.use] and np.any(view[index]):
            break
    view[index] |= 2
    shared = int(np.count_nonzero(marks.all == 3)) * marks.unit
    count = -(-shared // late.part.itemsize)
    owner = early.owner if late.owner is None else late.owner
    name = None if owner is None else call_site.name_of(owner)
    return OverlapError(
        f"{early.words} and {late.words} overlap in {count} element{'s' * (count > 1)}"
        f"{f' of {name!r}' if name else ''}"
    )
