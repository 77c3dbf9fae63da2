"""What a probe measured with one number of processes, and the price of a superstep from it.

A superstep costs::

    T(h) r + (calls - calls of the pattern) c + O(objects) + C(cold) + P(placed) + F(fetched)
        + B(fresh) + W(wait) + A(apart) + E(h) min(apart / a, 1)

with T the measured time of its pattern by the bytes of the h-relation, made of messages that are
read in place; r the time of an exchange by the calls that make it (puts, gets, collectives),
divided by that of one by messages; c the time of one more call, by its kind; O what it takes to
pickle and unpickle objects; C the additional time of memory that is touched for the first time,
and P and F that of single elements that are put or got by their indices: they are sorted by
process, and read and written one by one. B is what the first two supersteps take more in which a
process makes calls: code runs for the first time, of which parts are loaded then. A superstep
without communication costs what an empty sync takes, W and A.

W, A and E are the state in which the superstep finds the computer. T is measured in supersteps in a
row. In a program a process may come later than the others by a time ``wait``, so that these sleep:
W is what the sync takes more from its arrival on. And a time ``apart`` after the last sync of
the group the caches hold other data: A is what any sync takes more then, since also its own code
and words have left the caches, and E what an exchange takes more still when all of it does, after
a computation of a or longer. Machines that were probed before have none of them, and price all
calls as messages that are read in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bsplib.directions import Direction

__all__ = [
    "FRESH",
    "Begun",
    "Curve",
    "HRelation",
    "Measured",
    "Touched",
    "memory_slowdown",
    "price_parts",
    "slowdown",
]


FRESH = 2
"""Number of supersteps with calls of one way in which a process runs code for the first time."""


class HRelation(NamedTuple):
    """What a superstep moves: numbers, or arrays with one element for each superstep."""

    h: Any
    """Bytes of the h-relation, by the rule of the Machine."""
    calls: Any = 0
    """Calls of put, get and send of the process that made most; an empty superstep has 0."""
    cold: Any = 0
    """Bytes that a process sends through memory that it touches for the first time."""
    wait: Any = 0.0
    """Seconds from the first to the last arrival of the group."""
    apart: Any = 0.0
    """Seconds from the last sync of the group to the last arrival."""
    placed: Any = 0
    """Bytes of its h-relation that are elements of puts by index, by the rule of the Machine."""
    fetched: Any = 0
    """The same of gets by index."""
    fresh: Any = 0
    """How many first supersteps are left to a process, with this one; see :class:`Begun`."""
    put: Any = 0
    """Bytes of its h-relation that are put, by the rule of the Machine, as for ``placed``."""
    got: Any = 0
    """The same of gets, and of hpputs that write at once: they are copied a single time."""
    copied: Any = 0
    """The same of messages of collectives, which the receiver copies."""
    pickled: Any = 0
    """The same of pickles, without the arrays inside them."""
    gets: Any = 0
    """How many of the calls are gets of blocks."""
    messages: Any = 0
    """How many of the calls are messages."""
    objects: Any = 0
    """How many of the messages are pickled."""
    unpickled: Any = 0
    """How many pickled messages come to a process."""


COUNTS = ("gets", "messages", "objects", "unpickled")
"""The amounts of an h-relation that depend on the directions, and are no bytes."""
PARTS = ("placed", "fetched", "put", "got", "copied", "pickled", *COUNTS)
"""All amounts that depend on the directions."""


class ByDirection(NamedTuple):
    """What processes transfer in one direction: arrays."""

    h_in: Any
    """Bytes that come to each process."""
    h_out: Any
    """Bytes that leave it."""
    made: Any
    """Transfers that it calls for."""
    met: Any
    """Transfers that others call for, with it."""


def amounts_of(
    found: Mapping[int, ByDirection], rule: Callable[[Any, Any], Any], nothing: Any
) -> dict[str, Any]:
    """Return the amounts of an h-relation that depend on the directions, by their names there.

    Args:
        found: all transfers, by ``Direction``.
        rule: returns the h of bytes in and bytes out.
        nothing: 0 for each process.
    """

    def bytes_of(*some: Direction) -> Any:
        chosen = [found[each] for each in some if each in found]
        if not chosen:
            return nothing
        return rule(sum(each.h_in for each in chosen), sum(each.h_out for each in chosen))

    def made(*some: Direction) -> Any:
        return sum((found[each].made for each in some if each in found), nothing)

    pickled = found.get(Direction.OUT_PICKLED)
    return {
        "placed": bytes_of(Direction.OUT_BY_INDEX),
        "fetched": bytes_of(Direction.IN_BY_INDEX),
        "put": bytes_of(Direction.OUT_PUT),
        "got": bytes_of(Direction.IN, Direction.OUT_AT_ONCE),
        "copied": bytes_of(Direction.OUT_COPIED),
        "pickled": bytes_of(Direction.OUT_PICKLED),
        "gets": made(Direction.IN),
        "messages": made(Direction.OUT, Direction.OUT_COPIED, Direction.OUT_PICKLED),
        "objects": made(Direction.OUT_PICKLED),
        "unpickled": nothing if pickled is None else pickled.met,
    }


_FROM_ARRAY = (Direction.IN, Direction.OUT_AT_ONCE)
"""Gets, and hpputs that write at once, copy from array to array."""


def staged_out(found: Mapping[int, ByDirection]) -> Any:
    """Return the bytes that processes send through memory of their own; None if there are none."""
    sent = [each.h_out for direction, each in found.items() if direction not in _FROM_ARRAY]
    return sum(sent) if sent else None


class Begun:
    """Counts the supersteps in which a process communicates, up to ``FRESH`` of each way.

    The ways are collectives, and put, get and send. In the first of them the code of the library
    runs for the first time: parts of it are loaded, and pages and tables of the process are made.
    """

    def __init__(self) -> None:
        self._ended = [0, 0]

    def fresh(self, calls: int, in_collectives: int = 0) -> int:
        """Return how many of the first supersteps are left, with that of these calls.

        Args:
            calls: puts, gets and messages of the process in its next superstep.
            in_collectives: how many of them are messages of collectives.
        """
        left = 0
        for way, count in enumerate((calls - in_collectives, in_collectives)):
            if count and self._ended[way] < FRESH:
                self._ended[way] += 1
                left = max(left, FRESH + 1 - self._ended[way])
        return left


class Touched:
    """Finds out how many bytes a process sends through memory that is new to it.

    A process lays out what it sends in shared memory, and uses this memory again when the next
    superstep has ended. So it holds the bytes of two supersteps at once, and memory is new as
    far as these are more than ever before in the run. Supersteps in which the process sends
    nothing do not count.
    """

    def __init__(self) -> None:
        self._last = 0
        self._most = 0

    def cold(self, sent_bytes: int) -> int:
        """Return how many of the bytes sent in the next superstep go through new memory.

        Args:
            sent_bytes: bytes that leave the process in its next superstep, of whatever group.
        """
        if not sent_bytes:
            return 0
        held, self._last = self._last + sent_bytes, sent_bytes
        cold = held - self._most
        if cold <= 0:
            return 0
        self._most = held
        return min(cold, sent_bytes)


@dataclass(frozen=True)
class Curve:
    """Seconds by bytes, as lines between knots; behind the last knot the last line goes on."""

    nbytes: tuple[int, ...]
    """Message size of each knot, ascending; at least two."""
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.nbytes) != len(self.seconds) or len(self.nbytes) < 2:  # a line
            raise ValueError("a curve has at least two knots, each with its bytes and seconds")
        if any(one >= two for one, two in pairwise(self.nbytes)) or self.nbytes[0] < 0:
            raise ValueError("the bytes of a curve have to ascend from 0 or more")

    def at(self, nbytes: Any) -> Any:
        """Return the seconds for a number of bytes, or for an array of them."""
        wanted = np.asarray(nbytes, float)
        inside = np.interp(wanted, self.nbytes, self.seconds)
        (x, last), (y, top) = self.nbytes[-2:], self.seconds[-2:]
        slope = max((top - y) / (last - x), 0.0)
        return inside + np.maximum(wanted - last, 0.0) * slope


@dataclass(frozen=True)
class Measured:
    """What a probe measured with one number of processes; times are in seconds."""

    p: int
    """Number of processes."""
    empty: float
    """A superstep in which nothing is communicated."""
    call: float = 0.0
    """Each put that a process makes beyond those of the pattern, of an array of 8 bytes."""
    get: float = 0.0
    """What a get takes more, beyond those of the pattern."""
    message: float = 0.0
    """What a message takes more, beyond those of the pattern, with what it takes to read it."""
    pickle: float = 0.0
    """What the sender of a message of a Python object takes more."""
    unpickle: float = 0.0
    """What its receiver takes more."""
    pickle_byte: float = 0.0
    """What both take more for each byte of a pickle."""
    start: float | None = None
    """From the call of ``run`` to its return, where processes do nothing."""
    recording: float | None = None
    """What recording adds to a superstep."""
    slowdown: float = 1.0
    """Time of a computation while all processes compute, divided by its time alone. Where
    processes share cores, this includes waiting for a core."""
    patterns: Mapping[str, Curve] = field(default_factory=dict)
    """Seconds of a superstep by the bytes of its h-relation, in memory in use, by pattern."""
    puts: Curve | None = None
    """Seconds of an exchange by puts, by the bytes of its h-relation; messages are read in place,
    and not copied into arrays."""
    gets: Curve | None = None
    """The same by gets, which copy once."""
    collectives: Curve | None = None
    """Seconds of a superstep of a collective, in which each process sends to all others."""
    cold: Curve | None = None
    """Additional seconds by the bytes that a process sends through new memory."""
    late: Curve | None = None
    """Additional seconds of a sync, by the ns that one process comes later than the others."""
    evicted: Curve | None = None
    """Additional seconds by the bytes of an exchange where the caches hold other data."""
    evicted_puts: Curve | None = None
    """The same of an exchange by puts, whose values are copied on both sides; where it was not
    measured, they take no more than messages."""
    evicted_collectives: Curve | None = None
    """The same of collectives, whose code has left the caches, too, however few the bytes are."""
    evicting: float = 0.0
    """Seconds of a computation after which the caches hold other data."""
    apart: Curve | None = None
    """Additional seconds of a sync, by the ns that all processes computed since the last one."""
    placed: Curve | None = None
    """Additional seconds by the bytes that go to places by their indices, in puts of elements."""
    fetched: Curve | None = None
    """The same of gets of elements."""
    first: Curve | None = None
    """Additional seconds by the first supersteps that are left to a process, with this one."""
    first_messages: Curve | None = None
    """The same where a process makes no puts and gets; where it was not measured, ``first``."""
    first_collectives: Curve | None = None
    """The same of collectives; where it was not measured, they take no more than messages."""
    passes: Curve | None = None
    """Seconds of a pass over arrays by their bytes, while all processes make one."""
    misfit: float | None = None
    """Greatest relative error of the curves at sizes between their knots."""
    spread: float | None = None
    """Mean relative difference of the times of one half of the rounds and the other half."""

    def seconds(self, relation: HRelation, pattern: str) -> Any:
        """Return the seconds of a superstep, of which :attr:`empty` is the sync alone."""
        h, calls, cold = relation[:3]
        curve = self.patterns.get(pattern)
        moved = self.empty if curve is None else curve.at(h) * self._by_calls(relation)
        found = np.maximum(moved, self.empty) + self._calls_s(relation, pattern)
        found = found + _on(self.cold, cold)
        found = found + _on(self.placed, relation.placed) + _on(self.fetched, relation.fetched)
        found = found + self._first_s(relation)
        if self.evicted is not None:
            part = np.minimum(np.asarray(relation.apart) / self.evicting, 1) if self.evicting else 1
            found = found + self._evicted_s(relation) * part
        return np.where((np.asarray(calls) > 0) | (np.asarray(h) > 0), found, self.empty)

    def _by_calls(self, relation: HRelation) -> Any:
        """Return the time of an exchange by its calls, divided by that of one by messages."""
        found: Any = 1.0
        for curve, nbytes, pattern in (
            (self.puts, relation.put, "exchange"),
            (self.gets, relation.got, "exchange"),
            (self.collectives, relation.copied, "all-to-all"),
        ):
            messages = self.patterns.get(pattern)
            if curve is not None and messages is not None and np.any(nbytes):
                whole = messages.at(relation.h)
                whole = np.where(whole > 0, whole, np.inf)  # no ratio to a time of 0
                more = (curve.at(nbytes) - messages.at(nbytes)) / whole
                found = found + np.where(np.asarray(nbytes) > 0, more, 0.0)
        return np.maximum(found, 0.0)

    def _first_s(self, relation: HRelation) -> Any:
        """Return the seconds of code that runs for the first time."""
        first = _on(self.first, relation.fresh)
        if self.first_messages is None:
            return first
        others = self.first_messages.at(relation.fresh)
        if self.first_collectives is not None:
            collected = self.first_collectives.at(relation.fresh)
            others = np.where(np.asarray(relation.copied) > 0, collected, others)
        of_arrays = relation.put + relation.got + relation.placed + relation.fetched
        return np.where(np.asarray(of_arrays) > 0, first, others)

    def _evicted_s(self, relation: HRelation) -> Any:
        """Return the seconds of an exchange after which nothing of it was in the caches."""
        if self.evicted_puts is None:
            return _on(self.evicted, relation.h)
        in_collectives = np.asarray(relation.copied)
        # What is copied a single time passes through no memory that has left the caches.
        others = np.maximum(relation.h - relation.put - in_collectives - relation.got, 0)
        found = _on(self.evicted, others)
        if self.evicted_collectives is None:
            return found + self.evicted_puts.at(relation.put + in_collectives)
        more = self.evicted_collectives.at(in_collectives)
        return found + self.evicted_puts.at(relation.put) + np.where(in_collectives > 0, more, 0.0)

    def _calls_s(self, relation: HRelation, pattern: str) -> Any:
        """Return the seconds of calls beyond those of a pattern, and of pickles."""
        own = self._own_calls(pattern)
        kinds = ((relation.calls, self.call), (relation.gets, self.get))
        found: Any = 0.0
        for count, seconds in (*kinds, (relation.messages, self.message)):
            if seconds:
                found = found + np.maximum(np.asarray(count) - own, 0) * seconds
        found = found + relation.objects * self.pickle + relation.unpickled * self.unpickle
        return found + relation.pickled * self.pickle_byte

    def lateness(self, relation: HRelation) -> Any:
        """Return the seconds by which late processes, and what was computed, lengthen the sync."""
        late = _on(self.late, np.asarray(relation.wait) * 1e9)
        return late + _on(self.apart, np.asarray(relation.apart) * 1e9)

    def byte_s(self, nbytes: float) -> float | None:
        """Return the seconds for each byte of a pass over arrays; None where none was measured."""
        if self.passes is None:
            return None
        used = max(nbytes, self.passes.nbytes[0])
        return float(self.passes.at(used)) / used

    @property
    def has_state(self) -> bool:
        """Whether its prices depend on what came before a superstep."""
        return any(curve is not None for curve in (self.late, self.evicted, self.apart))

    @property
    def lacks_calls(self) -> bool:
        """Whether it was probed before puts, gets and objects had prices of their own."""
        return bool(self.patterns) and self.puts is None

    def _own_calls(self, pattern: str) -> int:
        return 1 if pattern in ("exchange", "ping-pong", "all-to-one") else max(self.p - 1, 1)


def _on(curve: Curve | None, amount: Any) -> Any:
    """Return the seconds of a curve; 0 where it was not measured."""
    return 0.0 if curve is None else curve.at(amount)


_DEFAULT = "all-to-all"
"""Pattern of a superstep of which none is known."""


def price_parts(
    measured: Sequence[Measured], relation: HRelation, pattern: str | None, nprocs: int
) -> tuple[Any, Any]:
    """Return the seconds of a superstep for communication, and those of an empty one.

    Between two numbers of processes that were measured, times are interpolated; outside of
    them the nearest one holds.

    Args:
        measured: at least one, in order of p.
        relation: what the superstep moves; numbers or arrays.
        pattern: pattern of the superstep; None if it is not known.
        nprocs: number of processes of the group.
    """
    empty, late = 0.0, 0.0
    total: Any = 0.0
    for part, share in _around(measured, nprocs):
        total = total + share * part.seconds(relation, pattern or _DEFAULT)
        empty += share * part.empty
        late = late + share * part.lateness(relation)
    return total - empty, empty + late


def slowdown(measured: Sequence[Measured], nprocs: int) -> float:
    """Return the time of a computation beside ``nprocs - 1`` others, divided by its time alone."""
    return sum(share * part.slowdown for part, share in _around(measured, nprocs))


def memory_slowdown(
    measured: Sequence[Measured], nprocs: int, before: float, nbytes: float
) -> float:
    """Return how much longer a pass over each byte takes where processes use more memory.

    Args:
        measured: at least one, in order of p.
        nprocs: number of processes that compute.
        before: bytes that a process used.
        nbytes: bytes that it uses.

    Returns:
        1 or more; 1 where no passes were measured.
    """
    found = 0.0
    for part, share in _around(measured, nprocs):
        one, two = part.byte_s(before), part.byte_s(nbytes)
        found += share * (1.0 if not one or not two else max(two / one, 1.0))
    return found


def _around(measured: Sequence[Measured], nprocs: int) -> Iterable[tuple[Measured, float]]:
    """Return the entries of the nearest numbers of processes, with their shares."""
    for one, two in pairwise(measured):
        if one.p <= nprocs < two.p:
            share = (nprocs - one.p) / (two.p - one.p)
            return [(one, 1 - share), (two, share)] if share else [(one, 1.0)]
    nearest = measured[0] if nprocs < measured[0].p else measured[-1]
    return [(nearest, 1.0)]
