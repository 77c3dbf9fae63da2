"""The registrations of a group, as one of its processes sees them.

Every push and pop is numbered and announced to all at the next global sync, so that the
processes can check that they did the same, and know how large the arrays of the others
are. The number of a registration is called its slot.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import chain, count
from math import prod
from operator import itemgetter
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np

from bsplib.core.forms import DtypeCode, are_equal, decode_dtype, encode_dtype
from bsplib.errors import RegistrationError, SyncMismatchError
from bsplib.transfers.held_arrays import Origin
from bsplib.transfers.place import Array, Region, address, memory_range, region_of


class AnnouncedArray(NamedTuple):
    """What the other processes know of a registered array: its shape, dtype and address."""

    shape: tuple[int, ...]
    dtype: DtypeCode
    shared_address: int | None = None
    """Its address for all processes; None if others cannot reach it."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def is_like(self, other: AnnouncedArray | None) -> bool:
        """Tell whether another array has the same shape and dtype."""
        return (
            other is not None and self.shape == other.shape and are_equal(self.dtype, other.dtype)
        )


class StandIn:
    """Names a registration, in place of an array, on a process that registered None."""


class Registration:
    """One registered array, here and on the other processes."""

    def __init__(
        self,
        slot: int,
        array: Array | None,
        memory: memoryview | None = None,
        shared_address: int | None = None,
    ) -> None:
        self.slot = slot
        self.shared_address = shared_address
        """Where other processes find it; None if they cannot reach it."""
        self.array: Array | None = None if array is None else np.ndarray.view(array, np.ndarray)
        """A view of its own: the program may change shape, strides, dtype and flags of its one."""
        self.dtype: DtypeCode | None = None if array is None else encode_dtype(array.dtype)
        """That of the array, whose fields the program may give other names."""
        self.handle: Any = StandIn() if array is None else array
        """The object that the program uses to name it: an array or a stand-in."""
        self.memory = memory
        """Shared memory that the runtime allocated for it."""
        self.freed_by: str | None = None
        """Under ``check=True``: the call that popped it, as text for errors."""
        self.origin: Origin | None = None
        """Under ``check=True``: where it comes from."""
        self.announced: list[AnnouncedArray | None] | None = None
        """By pid, once announced: None where a process registered None."""
        self.alike = False
        """Shape and dtype are the same on all processes."""
        self.address = 0 if array is None else address(array)
        self.memory_range = (0, 0) if array is None else memory_range(array)
        """First byte of the array in memory, and first byte behind it."""
        self.itemsize = 0 if array is None else array.itemsize
        self.key = _key(self.handle)
        """Equal for all array objects that name the same elements; see :meth:`is_of`."""
        self.is_contiguous = array is not None and array.flags.c_contiguous

    def announcement(self) -> AnnouncedArray | None:
        """Return what is announced to the other processes; None if None is registered."""
        if self.array is None or self.dtype is None:
            return None
        return AnnouncedArray(self.array.shape, self.dtype, self.shared_address)

    def name(self) -> str | None:
        """Return the variable that has the array, where ``check=True`` has seen it."""
        return None if self.origin is None else self.origin.name

    def announced_on(self, pid: int) -> AnnouncedArray | None:
        """Return what a process announced; None where it registered None, or nothing yet."""
        return None if self.announced is None else self.announced[pid]

    def is_of(self, handle: Any) -> bool:
        """Tell whether an array or a stand-in names all elements of this registration."""
        array = self.array
        if array is None or getattr(handle, "shape", None) != array.shape:
            return array is None and handle is self.handle
        if handle is self.handle and handle.dtype is array.dtype:  # whatever its fields are called
            return handle.strides == array.strides and address(handle) == self.address
        return _key(handle) == self.key

    def contiguous_start(self, view: Array) -> int | None:
        """Return the first of the contiguous elements that a view of another shape has.

        None if the elements of the view are not contiguous in C order.
        """
        array = self.array
        if not self.is_contiguous or array is None or not view.flags.c_contiguous:
            return None
        first, rest = divmod(address(view) - self.address, self.itemsize or 1)
        inside = first >= 0 and first + view.size <= array.size
        return first if view.dtype == array.dtype and not rest and inside else None


def _key(handle: Any) -> tuple[Any, ...]:
    """Return a key that is equal for objects that name the same elements."""
    if not isinstance(handle, np.ndarray):
        return (id(handle),)
    # Strides of axes of length 1 have no meaning.
    steps = tuple(s for s, n in zip(handle.strides, handle.shape, strict=True) if n > 1)
    return address(handle), handle.shape, steps, encode_dtype(handle.dtype)


def _nearest(view: Array, around: list[Registration]) -> list[Registration]:
    """Return the registrations around a view without elements, the one that it names first.

    Where the view lies, another array may end, or begin: so its address does not tell whose it is.
    """
    owner, _ = _owner(view)
    return sorted(
        around,
        key=lambda registration: (
            not registration.is_of(view),
            _owner(registration.array)[0] is not owner,
        ),
    )


def _owner(array: Any) -> tuple[Array | None, Any]:
    """Return the array that an array is a view of, as are all views of it, and its memory.

    The memory is None where that array owns it.
    """
    whole, memory = None, array
    while isinstance(memory, np.ndarray | memoryview):
        if isinstance(memory, np.ndarray):
            whole, memory = memory, memory.base
        else:
            memory = memory.obj
    return whole, memory


def _was_freed(view: Array, registration: Registration) -> bool:
    """Tell whether a view is of an array that was in the memory of a registered one before it.

    Shared memory is used again after ``pop_reg``, and in the next run of a pool.
    """
    if registration.shared_address is None:
        return False
    (whole, memory), (registered, there) = _owner(view), _owner(registration.array)
    return memory is there and whole is not registered


class Clusters:
    """The registrations that are effective, by their memory and by the objects that name them.

    Arrays whose memory overlaps, directly or through others, are a **cluster**. Clusters are kept
    sorted by their first byte: to find, add or remove a registration is a binary search, and then
    concerns one cluster only, which has a single member in most programs.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._named: dict[int, list[Registration]] = {}
        """By id() of the object that names them, the latest last."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._members: list[list[tuple[int, Registration]]] = []
        """Of each cluster, numbered in the order in which they were added."""

    def add(self, registration: Registration) -> None:
        """Add a registration, the latest one."""
        self._named.setdefault(id(registration.handle), []).append(registration)
        if registration.memory_range != (0, 0):
            self._insert((next(self._numbers), registration))

    def _insert(self, member: tuple[int, Registration]) -> None:
        """Join a registration and all clusters that it overlaps into one."""
        low, high = _span(member[1])
        first, stop = bisect_right(self._ends, low), bisect_left(self._starts, high)
        if first < stop:
            low, high = min(low, self._starts[first]), max(high, self._ends[stop - 1])
        joined = [each for members in self._members[first:stop] for each in members]
        self._starts[first:stop], self._ends[first:stop] = [low], [high]
        self._members[first:stop] = [sorted([*joined, member], key=itemgetter(0))]

    def remove(self, registration: Registration) -> None:
        """Remove a registration."""
        named = self._named[id(registration.handle)]
        named.remove(registration)
        if not named:
            del self._named[id(registration.handle)]
        if registration.memory_range == (0, 0):
            return
        at = bisect_right(self._starts, _span(registration)[0]) - 1
        members = self._members[at]
        del self._starts[at], self._ends[at], self._members[at]
        for member in members:
            if member[1] is not registration:
                self._insert(member)

    def named_by(self, handle: Any) -> Registration | None:
        """Return the latest registration of an object; None if a later one contains its memory."""
        named = self._named.get(id(handle))
        if named is None:
            return None
        found = named[-1]
        low, high = found.memory_range
        for registration in self.near(low, high):
            if registration is found:
                break
            if registration.memory_range[0] <= low and high <= registration.memory_range[1]:
                return None
        return found

    def near(self, low: int, high: int) -> list[Registration]:
        """Return the registrations that may contain some memory, the latest first.

        Args:
            low: its first byte.
            high: the first byte behind it; ``low`` for an array without elements, which may lie at
                the end of the memory of another one.
        """
        first, stop = bisect_left(self._ends, low), bisect_left(self._starts, max(high, low + 1))
        if stop - first == 1:
            near = self._members[first]
            if len(near) == 1:  # as in most programs
                return [near[0][1]]
        else:
            near = sorted(chain(*self._members[first:stop]), key=itemgetter(0))
        return [registration for _, registration in reversed(near)]

    def is_alone(self, registration: Registration) -> bool:
        """Tell whether no other registered array shares memory with a registered one."""
        return len(self._members[bisect_right(self._starts, _span(registration)[0]) - 1]) == 1


def _span(registration: Registration) -> tuple[int, int]:
    """Return the memory of an array, of at least one byte: even empty arrays are at some place."""
    low, high = registration.memory_range
    return low, max(high, low + 1)


class Found(NamedTuple):
    """The registration that an array or view names."""

    registration: Registration
    region: Region | None
    """The part of it; None if it is the whole array, or no basic slice makes the view."""
    is_whole: bool
    """Whether all elements are named; see :meth:`Registration.is_of`."""


class Registry:
    """The registrations of a group, and the changes that the next global sync makes to them."""

    def __init__(self) -> None:
        self._active: dict[int, Registration] = {}  # effective ones, by slot; the latest last
        self._clusters = Clusters()
        self._pushed: dict[int, Registration] = {}  # by slot, as the next two
        self._popped: dict[int, Registration] = {}
        self._unannounced: dict[int, Registration] = {}
        self._stacks: dict[tuple[Any, ...], list[Registration]] = {}
        """By key: the registrations that are active or pushed, and not popped; the latest last."""
        self.changes: list[tuple[Any, ...]] = []
        """The operations to announce at the next global sync."""
        self._next_slot = 0

    def push(self, array: Array | None, shared_address: int | None = None) -> Registration:
        """Register an array, from the next global sync on."""
        registration = self._new("push_reg", array, None, shared_address)
        self._pushed[registration.slot] = registration
        return registration

    def allocate(
        self, array: Array, memory: memoryview, shared_address: int | None = None
    ) -> Registration:
        """Register an array that the runtime made; it is effective at once."""
        registration = self._new("allocation", array, memory, shared_address)
        self._activate(registration)
        return registration

    def pop(self, handle: Any) -> Registration:
        """Remove the latest registration of an array at the next global sync.

        Returns:
            The registration.

        Raises:
            RegistrationError: the array has none.
        """
        stack = self._stacks.get(_key(handle))
        if not stack or _was_freed(handle, stack[-1]):
            stack = self._stack_of_object(handle)
        registration = stack.pop()
        if not stack:
            del self._stacks[registration.key]
        self._popped[registration.slot] = registration
        self.changes.append(("pop_reg", registration.slot))
        return registration

    def _stack_of_object(self, handle: Any) -> list[Registration]:
        """Return the stack of an array whose shape has changed since it was registered."""
        for stack in self._stacks.values():
            if stack[-1].handle is handle:
                return stack
        raise RegistrationError("pop_reg: the array is not registered")

    def note(self, *operation: Any) -> None:
        """Announce another operation that all processes have to do alike."""
        self.changes.append(operation)

    def at(self, slot: int) -> Registration:
        """Return the registration that a transfer names."""
        return self._active[slot]

    def itemsize(self, slot: int) -> int:
        """Return the bytes of an element of a registered array, which may be None here."""
        registration = self._active[slot]
        if registration.array is not None:
            return registration.itemsize
        announced = registration.announced or []
        return next(decode_dtype(there.dtype).itemsize for there in announced if there is not None)

    def find(self, handle: Any) -> Found | None:
        """Return the latest effective registration that contains an array or view.

        A registration of which basic slices can make the view comes first; if there is none,
        it is the latest one whose memory surrounds the view.
        """
        registration = self.named_by(handle)
        if registration is not None and registration.is_of(handle):
            return Found(registration, None, True)
        if not isinstance(handle, np.ndarray):
            return None
        around = self._around(handle)
        if not handle.size:
            around = _nearest(handle, around)
        for registration in around:
            is_whole = registration.is_of(handle)
            if is_whole or not handle.size:
                return Found(registration, None, is_whole)
            array = registration.array
            assert array is not None  # _around
            region = region_of(array, handle)
            if region is not None:
                return Found(registration, region, False)
        return Found(around[0], None, False) if around else None

    def _around(self, view: Array) -> list[Registration]:
        """Return the registrations whose memory surrounds a view, the latest first."""
        low, high = memory_range(view)

        def is_around(registration: Registration) -> bool:
            first, end = registration.memory_range
            if low == high and first == end:  # numpy may place a part without elements anywhere
                return _owner(registration.array)[0] is _owner(view)[0]
            return first <= low and high <= end and first < end

        near = self._clusters.near(low, high) if low < high else reversed(self._active.values())
        return [
            registration
            for registration in near
            if is_around(registration) and not _was_freed(view, registration)
        ]

    def named_by(self, array: Any) -> Registration | None:
        """Return the registration that an array object names by its identity, or None."""
        return self._clusters.named_by(array)

    def is_alone(self, registration: Registration) -> bool:
        """Tell whether no other registered array shares memory with a registered one."""
        return self._clusters.is_alone(registration)

    def is_pending(self, handle: Any) -> bool:
        """Tell whether an array was pushed in this superstep."""
        return any(pushed.is_of(handle) for pushed in self._pushed.values())

    def swapped(self, operation: str, *others: Any) -> str:
        """Return a hint where another argument is registered than the one that has to be.

        Args:
            operation: name of the primitive.
            *others: the arguments beside the one that is not registered.
        """
        if any(self.find(other) is not None for other in others):
            return f", and another argument is: are they swapped? Write {_CALLS[operation]}"
        return ""

    def announcement(self) -> tuple[Any, ...]:
        """Return what to announce at a global sync."""
        made = self._unannounced
        return tuple(
            (*operation, _plain(made[operation[1]].announcement()), made[operation[1]].name())
            if operation[0] in ("push_reg", "allocation")
            else operation
            for operation in self.changes
        )

    def agree(self, agreement: Agreement) -> list[Registration]:
        """Compare own announcements with those of others; store the arrays that they announce.

        Args:
            agreement: what all processes have announced.

        Returns:
            The registrations that others can name from now on.

        Raises:
            SyncMismatchError: the processes did not register the same.
        """
        if not agreement.alike:
            mine = self.announcement()
            for pid, theirs in enumerate(agreement.announcements):
                _compare(mine, theirs, pid)
        for slot, announced, alike in agreement.arrays:
            registration = self._unannounced[slot]
            registration.announced = announced
            registration.alike = alike
        for registration in self._pushed.values():
            self._activate(registration)
        agreed = [*self._unannounced.values()]
        self._pushed.clear()
        self._unannounced.clear()
        self.changes.clear()
        return agreed

    def drop_popped(self) -> list[Registration]:
        """Let the pops of this superstep take effect; return those whose memory is free."""
        for registration in self._popped.values():
            del self._active[registration.slot]
            self._clusters.remove(registration)
        freed = [r for r in self._popped.values() if r.memory is not None]
        self._popped.clear()
        return freed

    def allocated(self) -> list[Registration]:
        """Return the arrays of the runtime that the program has not popped, the latest last."""
        return [
            registration
            for slot, registration in self._active.items()
            if registration.memory is not None and slot not in self._popped
        ]

    def with_memory(self) -> list[Registration]:
        """Return the registrations of all shared memory that the group allocated."""
        return [r for r in self._active.values() if r.memory is not None]

    def active(self) -> Iterable[tuple[int, Registration]]:
        """Return the effective registrations, by slot."""
        return self._active.items()

    def _new(
        self,
        operation: str,
        array: Array | None,
        memory: memoryview | None,
        shared_address: int | None,
    ) -> Registration:
        registration = Registration(self._next_slot, array, memory, shared_address)
        self.changes.append((operation, self._next_slot))
        self._unannounced[self._next_slot] = registration
        self._stacks.setdefault(registration.key, []).append(registration)
        self._next_slot += 1
        return registration

    def _activate(self, registration: Registration) -> None:
        self._active[registration.slot] = registration
        self._clusters.add(registration)


class Agreement(NamedTuple):
    """What all processes announce at a global sync."""

    announcements: list[tuple[Any, ...]]
    """By pid, those of :meth:`Registry.announcement`."""
    alike: bool
    """They did the same, with arrays of the same names, so that nothing has to be compared."""
    arrays: list[tuple[int, list[AnnouncedArray | None], bool]]
    """For each registration its slot, the arrays of all processes by pid, and whether all have one
    of the same shape and dtype. Empty where the processes did not do the same."""


def agreement_of(announcements: list[tuple[Any, ...]]) -> Agreement:
    """Return what all processes announce, from what each of them has announced, by pid."""
    first = announcements[0]
    did = [[operation[:2] for operation in each] for each in announcements]
    if any(each != did[0] for each in did):
        return Agreement(announcements, alike=False, arrays=[])
    names = [[operation[3:] for operation in each] for each in announcements]
    arrays = []
    for number, (operation, slot, *_) in enumerate(first):
        if operation in ("push_reg", "allocation"):
            announced = [_announced(each[number][2]) for each in announcements]
            like = announced[0]
            arrays.append((slot, announced, like is not None and all(map(like.is_like, announced))))
    return Agreement(announcements, all(each == names[0] for each in names), arrays)


def _plain(there: AnnouncedArray | None) -> tuple[Any, ...] | None:
    return None if there is None else tuple(there)


def _announced(plain: Any) -> AnnouncedArray | None:
    return None if plain is None else AnnouncedArray(*plain)


def _compare(mine: tuple[Any, ...], theirs: tuple[Any, ...], pid: int) -> None:
    """Raise if two processes did not announce the same operations in the same order."""
    for here, there in zip(mine, theirs, strict=False):
        if here[:2] != there[:2]:
            raise SyncMismatchError(
                f"process {pid} called {_words(there)} where this process called {_words(here)}"
            )
    if len(mine) == len(theirs):
        _compare_names(mine, theirs, pid)
        return
    missing = (*mine[len(theirs) :], *theirs[len(mine) :])
    if missing[0][0] == "set_tagsize":
        called, other = f"process {pid}", "this process"
        if len(mine) > len(theirs):
            called, other = other, called
        raise SyncMismatchError(
            f"{called} called {_words(missing[0])} in this superstep, and {other} did not; all "
            f"processes call set_tagsize with the same size in the same superstep"
        )
    raise SyncMismatchError(
        f"process {pid} made {len(theirs)} registrations and removals in this superstep, "
        f"and this one made {len(mine)}; all processes make the same ones in the same order"
    )


def _compare_names(mine: tuple[Any, ...], theirs: tuple[Any, ...], pid: int) -> None:
    """Raise if two processes registered arrays of the same names in another order."""
    pairs = [
        (here[3], there[3])
        for here, there in zip(mine, theirs, strict=True)
        if len(here) > 3 and here[3] and there[3]
    ]
    names_here, names_there = {here for here, _ in pairs}, {there for _, there in pairs}
    for here, there in pairs:
        if here != there and here in names_there and there in names_here:
            raise SyncMismatchError(
                f"process {pid} registered {there!r} where this process registered {here!r}, and "
                f"both have arrays of these names; register them in the same order on all "
                f"processes, or transfers reach the other array"
            )


def _words(operation: tuple[Any, ...]) -> str:
    name, number = operation[:2]
    return f"{name} of registration {number}" if name != "set_tagsize" else f"{name}({number})"


# -- the order of arguments, for errors of calls that have them in another one ---------------------


_CALLS = {
    "put": "put(pid, src, dst)",
    "hpput": "hpput(pid, src, dst)",
    "get": "get(pid, src, dst)",
    "hpget": "hpget(pid, src, dst)",
    "put_at": "put_at(pids, indices, values, dst)",
    "get_at": "get_at(pids, indices, src)",
    "send": "send(pid, payload)",
    "on": "on(pid, x)",
}


def no_process(operation: str, pid: Any) -> str:
    """Return what is wrong with a pid that is no integer."""
    text = f"an array of shape {pid.shape}" if isinstance(pid, np.ndarray) else short(pid)
    form = f"; write {_CALLS[operation]}" if operation in _CALLS else ""
    return f"{operation}: {text} is no process; a pid is an integer{form}"
