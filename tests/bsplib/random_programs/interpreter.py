"""What the contract says that a program does: plain, slow, and without bsplib.

All processes of a group are taken through a step together; nothing travels before
the superstep ends. A process's memory is a dict of numpy arrays.
"""

from __future__ import annotations

import copy
import pickle
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .steps import (
    Allocate,
    Array,
    Change,
    Get,
    GetAt,
    Handle,
    Make,
    Oblsync,
    Partition,
    Pause,
    Place,
    Pop,
    Program,
    Push,
    Put,
    PutAt,
    Read,
    Ref,
    Scope,
    Send,
    Shape,
    Split,
    Sync,
    TagSize,
    drop_oldest,
    plain,
    values,
)

Key = tuple[tuple[tuple[int, int], ...], int, int]
"""Partitions that led to a group as (ordinal, index), superstep, pid of the root."""


class WrongError(Exception):
    """A step breaks the contract; ``kind`` names the error that it has to raise."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass
class Cost:
    """Payload of one process in one superstep."""

    kind: str = "END"
    out: int = 0
    come: int = 0
    own: int = 0


@dataclass(eq=False)
class Registration:
    name: str
    refs: tuple[Ref | None, ...]
    allocated: bool
    announced: bool = False


@dataclass
class Written:
    """A put on its way."""

    registration: Registration
    positions: list[int]
    values: list[Any]
    op: str | None = None


@dataclass
class Asked:
    """A get on its way: where from, element by element, and where to."""

    words: list[tuple[int, Registration, int]]
    into: Array


@dataclass(eq=False)
class Group:
    members: Sequence[int]
    """Processes of the root."""
    path: tuple[tuple[int, int], ...] = ()
    superstep: int = 0
    partitions: int = 0
    registrations: list[Registration] = field(default_factory=list)
    pushed: list[Registration] = field(default_factory=list)
    popped: list[Registration] = field(default_factory=list)
    tag_size: int | None = None
    next_tag_size: int | None = None
    puts: dict[int, list[tuple[int, Written]]] = field(default_factory=lambda: defaultdict(list))
    gets: dict[int, list[Asked]] = field(default_factory=lambda: defaultdict(list))
    sends: dict[int, list[tuple[int, Any, Any, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    queues: dict[int, list[tuple[int, Any, Any, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    lasting: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """How many of the last messages of a queue outlive the next sync if they are not read."""
    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Messages for an oblsync, by receiver."""
    costs: dict[int, Cost] = field(default_factory=lambda: defaultdict(Cost))
    held: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """Messages of which a process has views."""

    @property
    def size(self) -> int:
        return len(self.members)

    def pending(self) -> bool:
        return any(any(by.values()) for by in (self.puts, self.gets, self.sends))


class Interpreter:
    """The whole run."""

    def __init__(self, nprocs: int) -> None:
        self.root = Group(range(nprocs))
        self.memory: list[dict[str, Array]] = [{} for _ in range(nprocs)]
        self.logs: list[list[Any]] = [[] for _ in range(nprocs)]
        self.kept: list[list[Any]] = [[] for _ in range(nprocs)]
        self.fetched: dict[tuple[Group, int], list[Array]] = defaultdict(list)
        self.costs: dict[Key, Cost] = {}

    def run(self, program: Program) -> list[list[Any]]:
        """Run a program; return the log of every process."""
        self._block(self.root, program.block)
        self.close(self.root)
        for log, kept in zip(self.logs, self.kept, strict=True):
            log.append(("kept", plain(kept)))
        return self.logs

    def _block(self, group: Group, block: list[Any]) -> None:
        for step in block:
            if isinstance(step, Partition):
                for sub, inner in zip(self.parts(group, step.ends), step.blocks, strict=True):
                    if sub.size:
                        self._block(sub, inner)
                        self.close(sub)
            elif isinstance(step, Split):
                self.apply(group, step)
                for sub, inner in zip(self.groups(group, step.members()), step.blocks, strict=True):
                    self._block(sub, inner)
                    self.close(sub)
            elif isinstance(step, Scope):
                self._block(group, step.block)
                self.leave_scope(group, step.block)
            else:
                self.apply(group, step)

    def apply(self, group: Group, step: Any) -> None:
        """Do one step; raise before anything has changed if it is wrong."""
        doing = getattr(self, f"_{type(step).__name__.lower()}")
        doing(group, step)

    # -- memory -------------------------------------------------------------------------

    def here(self, group: Group, pid: int) -> dict[str, Array]:
        return self.memory[group.members[pid]]

    def view(self, group: Group, pid: int, ref: Ref) -> Array:
        return ref.of(self.here(group, pid)[ref.name])

    def numbers(self, group: Group, pid: int, ref: Ref) -> Array:
        """Tell for each element of a view which one of its array it is."""
        array = self.here(group, pid)[ref.name]
        return ref.of(np.arange(array.size).reshape(array.shape))

    def _value(self, group: Group, pid: int, source: Any) -> Any:
        return self.view(group, pid, source) if isinstance(source, Ref) else source.make()

    # -- registration ---------------------------------------------------------------------

    def _allocate(self, group: Group, step: Allocate) -> None:
        for pid, shape in enumerate(step.shapes):
            made = values(shape, step.dtype, step.seed + pid)
            self.here(group, pid)[step.name] = made * 0 if step.how == "zeros" else made
        refs = tuple(Ref(step.name) for _ in step.shapes)
        group.registrations.append(Registration(step.name, refs, allocated=True))

    def _make(self, group: Group, step: Make) -> None:
        for pid, shape in enumerate(step.shapes):
            self.here(group, pid)[step.name] = values(shape, step.dtype, step.seed + pid)

    def _push(self, group: Group, step: Push) -> None:
        group.pushed.append(Registration(step.name, step.refs, allocated=False))

    def _pop(self, group: Group, step: Pop) -> None:
        found = {self.latest(group, pid, place) for pid, place in enumerate(step.place)}
        if len(found) > 1:
            raise WrongError("SyncMismatchError")
        (registration,) = found
        if registration is None:
            raise WrongError("RegistrationError")
        group.popped.append(registration)

    def latest(self, group: Group, pid: int, place: Place) -> Registration | None:
        """Return the latest registration of this very array that nobody has popped."""
        ref = self._meant(group, pid, place)
        for registration in reversed(group.registrations + group.pushed):
            if registration in group.popped:
                continue
            if ref is None and isinstance(place, Handle) and place.name == registration.name:
                return registration
            if ref is not None and self._same(group, pid, ref, registration.refs[pid]):
                return registration
        return None

    def _meant(self, group: Group, pid: int, place: Place) -> Ref | None:
        """Return the view that is meant; None for the stand-in of None."""
        if isinstance(place, Ref):
            return place
        for registration in group.registrations + group.pushed:
            if registration.name == place.name:
                return registration.refs[pid]
        raise WrongError("RegistrationError")

    def _same(self, group: Group, pid: int, one: Ref, other: Ref | None) -> bool:
        if other is None or one.name != other.name:
            return False
        mine, theirs = self.numbers(group, pid, one), self.numbers(group, pid, other)
        return one == other or (mine.size > 0 and np.array_equal(mine, theirs))

    def find(self, group: Group, pid: int, place: Place) -> Registration:
        """Return the latest effective registration that contains an array or view."""
        ref = self._meant(group, pid, place)
        for registration in reversed(group.registrations):
            theirs = registration.refs[pid]
            if ref is None:
                if isinstance(place, Handle) and place.name == registration.name:
                    return registration
            elif theirs is not None and theirs.name == ref.name:
                inside = set(self.numbers(group, pid, theirs).flat)
                mine = set(self.numbers(group, pid, ref).flat)
                if (mine and mine <= inside) or ref == theirs:
                    return registration
        raise WrongError("RegistrationError")

    def _tagsize(self, group: Group, step: TagSize) -> None:
        for pid in range(group.size):
            self._log(group, pid, ("set_tagsize", group.tag_size))
        group.next_tag_size = step.size

    def drop(self, group: Group, registration: Registration) -> None:
        """Take back a registration, and the memory that was allocated for it."""
        group.registrations.remove(registration)
        if registration.allocated:
            for pid in range(group.size):
                del self.here(group, pid)[registration.name]

    def leave_scope(self, group: Group, block: list[Any]) -> None:
        """Pop what was allocated in a scope and is not popped yet."""
        made = {step.name for step in block if isinstance(step, Allocate)}
        for one in group.registrations:
            if one.name in made and one not in group.popped:
                group.popped.append(one)

    # -- transfers --------------------------------------------------------------------------

    def _put(self, group: Group, step: Put) -> None:
        check_pid(group, step.to)
        if isinstance(step.offset, int) and step.offset < 0:
            raise WrongError("BoundsError")
        registration = self.find(group, step.pid, step.place)
        self._check_named(group, step)
        array = self._there(group, registration, step.to)
        value = self._value(group, step.pid, step.source)
        given = np.asarray(value)
        if given.size == 0 and not isinstance(value, np.ndarray):
            return  # an empty list has no dtype
        if not np.can_cast(given.dtype, array.dtype, "same_kind"):
            raise WrongError("DtypeError")
        if given.size == 0:
            return
        if step.offset is not None:
            positions = contiguous(step.offset, given.size, array.size)
            sent = given
        else:
            place = self._places(group, step.pid, registration, step.to, step.place, step.at)
            if place.size == 0 or not broadcasts(given.shape, place.shape):
                raise WrongError("BoundsError")
            positions = place.ravel().tolist()
            sent = np.broadcast_to(given, place.shape)
        words = sent.astype(array.dtype).ravel()
        nbytes = (given.size if step.at is not None else words.size) * array.itemsize
        group.puts[step.to].append((step.pid, Written(registration, positions, list(words))))
        group.counts[step.to] += 1
        charge(group, step.pid, step.to, nbytes)

    def _check_named(self, group: Group, step: Put | Get) -> None:
        """Raise where the stand-in of None is to say which elements are meant."""
        by_view = step.offset is None and step.at is None
        if by_view and self._meant(group, step.pid, step.place) is None:
            raise WrongError("PlaceError")

    def _there(self, group: Group, registration: Registration, pid: int) -> Array:
        ref = registration.refs[pid]
        if ref is None:
            raise WrongError("RegistrationError")
        return self.view(group, pid, ref)

    def _places(
        self,
        group: Group,
        pid: int,
        registration: Registration,
        other: int,
        place: Place,
        at: Any,
    ) -> Array:
        """Return which elements of the array there are named, in C order there."""
        shape = self._there(group, registration, other).shape
        every = np.arange(int(np.prod(shape))).reshape(shape)
        if at is not None:
            try:
                return np.asarray(every[at])
            except IndexError:
                raise WrongError("BoundsError") from None
        mine, view = registration.refs[pid], self._meant(group, pid, place)
        if mine is None or view is None:
            raise WrongError("PlaceError")
        base = self.numbers(group, pid, mine)
        index_of = {int(number): index for index, number in np.ndenumerate(base)}
        named = self.numbers(group, pid, view)
        positions = [index_of[int(number)] for number in named.flat]
        if any(not lies_in(index, shape) for index in positions):
            raise WrongError("BoundsError")
        return np.array([every[index] for index in positions], int).reshape(named.shape)

    def _get(self, group: Group, step: Get) -> None:
        check_pid(group, step.of)
        if isinstance(step.offset, int) and step.offset < 0:
            raise WrongError("BoundsError")
        into = None if step.into is None else self._value(group, step.pid, step.into)
        view = self._meant(group, step.pid, step.place)
        if step.offset is None and step.at is None and view is not None:
            self._check_shape(into, self.view(group, step.pid, view).shape)
        if isinstance(into, np.ndarray) and into.size == 0:
            self.find(group, step.pid, step.place)
            self._check_named(group, step)
            self._fetch(group, step, into)
            return
        registration = self.find(group, step.pid, step.place)
        array = self._there(group, registration, step.of)
        if step.offset is not None:
            if into is None:
                raise WrongError("PlaceError")
            places = np.array(contiguous(step.offset, into.size, array.size)).reshape(into.shape)
        else:
            places = self._places(group, step.pid, registration, step.of, step.place, step.at)
        if into is None:
            into = np.empty(places.shape, array.dtype)
        elif into.shape != places.shape:
            raise WrongError("PlaceError" if step.at is None else "BoundsError")
        if not np.can_cast(array.dtype, into.dtype, "same_kind"):
            raise WrongError("DtypeError")
        self._fetch(group, step, into)
        if places.size:
            words = [(step.of, registration, int(position)) for position in places.flat]
            group.gets[step.pid].append(Asked(words, into))
            charge(group, step.of, step.pid, places.size * array.itemsize)

    def _fetch(self, group: Group, step: Get, into: Array) -> None:
        if not isinstance(step.into, Ref):  # that one is seen among the arrays
            self.fetched[group, step.pid].append(into)

    @staticmethod
    def _check_shape(into: Array | None, shape: Shape) -> None:
        if into is not None and into.size and into.shape != shape:
            raise WrongError("PlaceError")

    def _putat(self, group: Group, step: PutAt) -> None:
        registration = self._whole(group, step.pid, step.place)
        source = self._value(group, step.pid, step.source)
        pids, indices, given = broadcast(step.pids, step.indices, source)
        receivers = []
        for to, index, value in zip(pids, indices, given, strict=True):
            check_pid(group, to)
            array = self._there(group, registration, to)
            if not np.can_cast(given.dtype, array.dtype, "same_kind"):
                raise WrongError("DtypeError")
            if not 0 <= index < array.size:
                raise WrongError("BoundsError")
            receivers.append((to, index, array.dtype.type(value), array.itemsize))
        for to, index, value, nbytes in receivers:
            written = Written(registration, [int(index)], [value], step.op)
            group.puts[to].append((step.pid, written))
            charge(group, step.pid, to, nbytes)
        for to in set(pids.tolist()):
            group.counts[to] += 1

    def _whole(self, group: Group, pid: int, place: Place) -> Registration:
        """Return the registration of an array that is named as a whole."""
        registration, ref = self.find(group, pid, place), self._meant(group, pid, place)
        if ref is not None and not self._same(group, pid, ref, registration.refs[pid]):
            raise WrongError("PlaceError")
        return registration

    def _getat(self, group: Group, step: GetAt) -> None:
        registration = self._whole(group, step.pid, step.place)
        shape = np.broadcast_shapes(np.shape(step.pids), np.shape(step.indices))
        pids, indices = broadcast(step.pids, step.indices)
        words = []
        dtype = self._dtype(group, registration)
        for of, index in zip(pids, indices, strict=True):
            check_pid(group, of)
            if not 0 <= index < self._there(group, registration, of).size:
                raise WrongError("BoundsError")
            words.append((int(of), registration, int(index)))
        into = np.empty(shape, dtype) if step.into is None else step.into.make()
        if into.shape != shape:
            raise WrongError("PlaceError")
        if not np.can_cast(dtype, into.dtype, "same_kind"):
            raise WrongError("DtypeError")
        self.fetched[group, step.pid].append(into)
        if words:
            group.gets[step.pid].append(Asked(words, into))
        for of, _, _ in words:
            charge(group, of, step.pid, dtype.itemsize)

    def _dtype(self, group: Group, registration: Registration) -> np.dtype[Any]:
        for pid, ref in enumerate(registration.refs):
            if ref is not None:
                return self.view(group, pid, ref).dtype
        raise WrongError("RegistrationError")

    def _send(self, group: Group, step: Send) -> None:
        check_pid(group, step.to)
        sized, tag = group.tag_size is not None, step.tag
        if group.tag_size == 0 and tag is None:
            tag = b""
        if sized and (not isinstance(tag, bytes) or len(tag) != group.tag_size):
            raise WrongError("MessageError")
        payload = copy.deepcopy(self._value(group, step.pid, step.payload))
        nbytes = payload_bytes(payload)
        group.sends[step.to].append((step.pid, tag, payload, nbytes))
        group.counts[step.to] += 1
        charge(group, step.pid, step.to, nbytes)

    def _pause(self, group: Group, step: Pause) -> None:
        pass

    def _change(self, group: Group, step: Change) -> None:
        self.view(group, step.pid, step.ref)[...] = step.value

    # -- reading messages -------------------------------------------------------------------

    def _log(self, group: Group, pid: int, entry: Any) -> None:
        self.logs[group.members[pid]].append(entry)

    def _read(self, group: Group, step: Read) -> None:
        for action in step.actions:
            self._read_one(group, step.pid, action)

    def _read_one(self, group: Group, pid: int, action: str) -> None:
        queue = group.queues[pid]
        match action:
            case "qsize":
                self._log(group, pid, (len(queue), sum(message[3] for message in queue)))
            case "get_tag":
                self._log(group, pid, ("get_tag", plain(queue[0][1]) if queue else None))
            case "hpmove":
                took = plain(queue.pop(0)[1:3]) if queue else None
                self._log(group, pid, ("hpmove", took))
            case "hold":
                group.held[pid] += [message[1:3] for message in take(queue, 1)]
            case "move":
                for _, _, payload, _ in take(queue, 1):
                    self._keep(group, pid, payload)
            case _:
                for source, tag, payload, _ in take(queue, 1 if action == "first" else len(queue)):
                    self._log(group, pid, ("message", source, plain(tag)))
                    self._keep(group, pid, payload)

    def _keep(self, group: Group, pid: int, payload: Any) -> None:
        self._log(group, pid, plain(payload))
        kept = self.kept[group.members[pid]]
        kept.append(payload)
        for dropped in drop_oldest(kept):
            self._log(group, pid, dropped)

    # -- the end of a superstep ---------------------------------------------------------------

    def _sync(self, group: Group, step: Sync | Split) -> None:
        self._deliver(group, "SYNC")
        group.registrations += group.pushed
        for registration in group.registrations:
            registration.announced = True
        for registration in group.popped:
            self.drop(group, registration)
        group.pushed, group.popped = [], []
        group.tag_size = group.next_tag_size
        self._look(group, step.hidden)

    def _split(self, group: Group, step: Split) -> None:
        """Do the sync of a split, in which all tell each other their colours and keys."""
        for pid in range(group.size):
            for other in range(group.size):
                if other != pid:
                    charge(group, pid, other, step.nbytes(pid))
        unread, group.queues = group.queues, defaultdict(list)
        lasting = group.lasting
        self._sync(group, step)
        for pid in range(group.size):  # they outlive it as they would outlive a partition
            sent = group.queues[pid]
            group.queues[pid] = unread[pid] + sent
            group.lasting[pid] = min(lasting[pid], len(unread[pid])) + len(sent)

    def _oblsync(self, group: Group, step: Oblsync) -> None:
        if any(group.gets.values()):
            raise WrongError("PendingTransferError")
        for pid, count in enumerate(step.counts):
            if count != group.counts[pid]:
                raise WrongError("SyncMismatchError")
        self._deliver(group, "OBLSYNC")
        self._look(group, step.hidden)

    def _deliver(self, group: Group, kind: str) -> None:
        """Gets read; gets write; puts write; messages become readable."""
        self._let_go(group)
        asked = [asked for pid in range(group.size) for asked in group.gets[pid]]
        come = [[self._word(group, word) for word in one.words] for one in asked]
        for one, words in zip(asked, come, strict=True):
            one.into[...] = np.array(words).reshape(one.into.shape)
        for to in range(group.size):
            for _, written in sorted(group.puts[to], key=lambda put: put[0]):
                self._write(group, to, written)
        for to in range(group.size):
            left = group.queues[to]
            lasts = left[len(left) - min(group.lasting[to], len(left)) :]
            group.queues[to] = sorted(lasts + group.sends[to], key=lambda message: message[0])
        group.lasting = defaultdict(int)
        group.puts, group.gets = defaultdict(list), defaultdict(list)
        group.sends, group.counts = defaultdict(list), defaultdict(int)
        self._account(group, kind)
        group.superstep += 1

    def _word(self, group: Group, word: tuple[int, Registration, int]) -> Any:
        pid, registration, position = word
        return self._there(group, registration, pid).flat[position]

    def _write(self, group: Group, to: int, written: Written) -> None:
        array = self._there(group, written.registration, to)
        combine = (lambda _, value: value) if written.op is None else getattr(np, written.op)
        with np.errstate(over="ignore"):  # whole numbers wrap around
            for position, value in zip(written.positions, written.values, strict=True):
                array.flat[position] = combine(array.flat[position], value)

    def _account(self, group: Group, kind: str) -> None:
        for pid in range(group.size):
            cost = group.costs[pid]
            cost.kind = kind
            self.costs[group.path, group.superstep, group.members[pid]] = cost
        group.costs = defaultdict(Cost)

    def _look(self, group: Group, hidden: Sequence[tuple[int, str]]) -> None:
        path = "".join(f"/{index}" for _, index in group.path)
        for pid in range(group.size):
            seen = {
                name: plain(array)
                for name, array in self.here(group, pid).items()
                if (pid, name) not in hidden
            }
            fetched = plain(self.fetched.pop((group, pid), []))
            self._log(group, pid, (path, pid, group.size, seen, fetched))

    # -- groups -------------------------------------------------------------------------------

    def parts(self, group: Group, ends: Sequence[int]) -> list[Group]:
        """Return the sub-groups of a partition, the empty ones too."""
        starts = [0, *ends[:-1]]
        return self.groups(group, [range(*both) for both in zip(starts, ends, strict=True)])

    def groups(self, group: Group, members: Sequence[Sequence[int]]) -> list[Group]:
        """Return sub-groups of some processes each."""
        number, group.partitions = group.partitions, group.partitions + 1
        return [
            Group([group.members[pid] for pid in pids], (*group.path, (number, index)))
            for index, pids in enumerate(members)
        ]

    def _let_go(self, group: Group) -> None:
        """Look at the messages of which processes have views."""
        for pid in range(group.size):
            if group.held[pid]:
                self._log(group, pid, ("held", plain(group.held[pid])))
        group.held.clear()

    def close(self, group: Group) -> None:
        """Leave a group, or end the program."""
        if group.pending():
            raise WrongError("PendingTransferError")
        self._let_go(group)
        self._account(group, "END")
        if group.path:
            for registration in [one for one in group.registrations if one.allocated]:
                self.drop(group, registration)


def check_pid(group: Group, pid: int) -> None:
    if not 0 <= pid < group.size:
        raise WrongError("ProcessRangeError")


def contiguous(offset: int, count: int, size: int) -> list[int]:
    if offset + count > size:
        raise WrongError("BoundsError")
    return list(range(offset, offset + count))


def broadcasts(shape: Shape, into: Shape) -> bool:
    try:
        return np.broadcast_shapes(shape, into) == into
    except ValueError:
        return False


def broadcast(*arrays: Any) -> list[Array]:
    return [array.ravel() for array in np.broadcast_arrays(*arrays)]


def lies_in(index: tuple[int, ...], shape: Shape) -> bool:
    return len(index) == len(shape) and all(i < n for i, n in zip(index, shape, strict=True))


def charge(group: Group, source: int, target: int, nbytes: int) -> None:
    if source == target:
        group.costs[source].own += nbytes
    else:
        group.costs[source].out += nbytes
        group.costs[target].come += nbytes


def payload_bytes(payload: Any) -> int:
    """Bytes of an array, of bytes, or of a pickle and the arrays beside it."""
    if isinstance(payload, np.ndarray):
        return payload.nbytes
    if isinstance(payload, bytes):
        return len(payload)
    beside: list[pickle.PickleBuffer] = []
    head = pickle.dumps(payload, 5, buffer_callback=beside.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in beside)


def take(queue: list[Any], count: int) -> list[Any]:
    taken = queue[:count]
    del queue[:count]
    return taken
