"""Reading and writing arrays of other processes: put, get and their kin."""

from __future__ import annotations

import weakref
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from bsplib.call_site import here
from bsplib.core.entries import index_bytes
from bsplib.core.forms import are_equal
from bsplib.core.kinds import ASK, PLACED, STAGED_ASK, STAGED_PLACED
from bsplib.core.known_arrays import KnownArray
from bsplib.errors import PlaceError
from bsplib.primitives.state import GroupState
from bsplib.transfers.casting import cast_values, check_out
from bsplib.transfers.delivery import PendingGet
from bsplib.transfers.descriptions import (
    CallSite,
    Contiguous,
    Named,
    Selected,
    Single,
    packed,
)
from bsplib.transfers.irregular import (
    CountedElements,
    UncheckedElements,
    broadcast,
    check_axes,
    check_there,
    dtype_there,
    elements,
    encode_op,
    sort_by_process,
    whole_array,
)
from bsplib.transfers.place import Array
from bsplib.transfers.registry import Registration
from bsplib.transfers.target import target_of

Offset = int | None
"""Of the first element of a transfer, in C order of the whole array; None to name it
otherwise."""


_NO_DATA = np.empty(0, np.uint8)


def put_slowly(
    bsp: GroupState, operation: str, pid: Any, src: ArrayLike, dst: Any, offset: Offset, at: Any
) -> None:
    """Add a put, with every check there is, and keep what is known of its array."""
    bsp._check_usable(operation)
    to = bsp._check_pid(pid, operation)
    target = target_of(operation, bsp._registry, to, dst, offset, at, src)
    if bsp._watch is not None:
        src = bsp._watch.source(src, operation)
    values = cast_values(operation, src, target.dtype, exact=bsp._watch is not None)
    if values.size == 0:
        return
    put, arranged = target.for_put(values)
    if isinstance(put, Contiguous) and bsp._watch is None and bsp._engine.takes(put.slot):
        _keep_known(bsp, dst)
        early = operation == "hpput" and at is None  # perhaps it can be written at once
        if early and bsp._engine.put_quickly(to, src, dst, offset, True):
            return
        _add_contiguous(bsp, to, put, arranged)
    else:
        if bsp._watch is None and target.resolved:
            _keep_known(bsp, dst)
        _add_placed(bsp, to, put, arranged, None if bsp._watch is None else here(operation))
    if not target.resolved:
        bsp._engine.unresolved.append(target)


def _add_contiguous(bsp: GroupState, to: int, put: Contiguous, values: Array) -> None:
    """Add a put of elements that follow each other, which has been checked."""
    first = put.first * values.itemsize
    if bsp._engine.is_small(values.nbytes):
        bsp._engine.add_put(to, put.slot, first, np.ascontiguousarray(values))
        return
    where = bsp._port.stage_values(values, to)
    bsp._engine.add_staged(to, put.slot, first, where, values.nbytes)


def _add_placed(bsp: GroupState, to: int, put: Named, values: Array, site: CallSite | None) -> None:
    """Add a put that has been checked, with a description of its place."""
    nbytes, send_buffer, description = values.nbytes, bsp._engine.send_buffer, packed(put, site)
    if bsp._engine.is_small(nbytes):
        send_buffer.describe(to, PLACED, description, 0, np.ascontiguousarray(values))
    else:
        where = bsp._port.stage_values(values, to)
        send_buffer.describe_staged(to, STAGED_PLACED, description, 0, where, nbytes)
    bsp._engine.note_put(to, nbytes)


def _keep_known(bsp: GroupState, dst: Any) -> None:
    """Keep what is known of an array, now that a transfer has been checked.

    A transfer of a view uses the known array of the array that it is a view of.
    """
    registry = bsp._registry
    for handle in (dst, getattr(dst, "base", None)):
        registration = None if id(handle) in bsp._engine.known_arrays else registry.named_by(handle)
        if registration is None or registration.array is None:
            continue
        if registration.announced is not None and bsp._engine.takes(registration.slot):
            sizes = _sizes_there(registration, bsp._nprocs)
            alone = registry.is_alone(registration)
            array = registration.array  # it has the form that was registered for good
            known = KnownArray(array, registration.slot, sizes, registration.alike, alone)
            bsp._engine.known_arrays[id(handle)] = known


def get_slowly(
    bsp: GroupState,
    operation: str,
    pid: SupportsIndex,
    src: Any,
    dst: Array | None,
    offset: Offset,
    at: Any,
    count: Any,
) -> Array:
    """Add a get, with every check there is, and keep what is known of its array."""
    bsp._check_usable(operation)
    sender = bsp._check_pid(pid, operation)
    target = target_of(operation, bsp._registry, sender, src, offset, at, dst)
    destination = target.destination(dst, count)
    if destination.size == 0:
        return destination
    get = target.for_get(destination)
    if not target.resolved:
        bsp._engine.unresolved.append(target)
    elif bsp._watch is None:
        _keep_known(bsp, src)
    if dst is None:
        bsp._engine.fill_destination(destination)
    early = operation == "hpget"
    if at is None and bsp._engine.get_quickly(sender, src, destination, offset, early):
        return destination
    site = None
    if bsp._watch is not None:
        site = here(operation)
        destination = bsp._watch.destination(destination, operation, new=dst is None)
    # The program may change the shape of its array before the values come.
    into = np.ndarray.view(destination, np.ndarray)
    _ask(bsp, sender, get, PendingGet(sender, into, target.rearranged, target.dtype, site=site))
    return destination


def _ask(bsp: GroupState, sender: int, get: Contiguous | Selected, pending: PendingGet) -> None:
    """Ask another process for the values of a get that has been checked."""
    description = packed(get, pending.site)
    bsp._engine.send_buffer.describe(sender, ASK, description, 0, _NO_DATA)
    bsp._engine.add_ask(sender, pending.destination.size * pending.dtype.itemsize, pending)


# -- the array of another process -----------------------------------------------------------


def on(bsp: GroupState, pid: SupportsIndex, x: Array) -> RemoteArray:
    """Return the array ``x`` of process ``pid`` as a place with indices.

    ``bsp.on(2, x)[3:7] = values`` is ``bsp.put(2, values, x, at=numpy.s_[3:7])``, and
    ``got = bsp.on(2, x)[-1:]`` is ``got = bsp.get(2, x, at=numpy.s_[-1:])``: what is
    written takes effect, and what is read is valid, after the sync. Indices are basic
    ones, taken against the shape of the array on ``pid``. To add to elements there,
    as ``bsp.on(2, x)[i] += v`` might suggest, use :meth:`put_at` with ``op=numpy.add``.

    Args:
        pid: the other process, ``0 <= pid < nprocs``; may be this one.
        x: registered array, as a whole.

    Returns:
        The place, which may be used in later supersteps, too.

    Raises:
        ProcessRangeError: ``pid`` is no process of this group.
        RegistrationError: ``x`` is not registered, or not yet effective.
        PlaceError: ``x`` is a view of a registered array; its uses raise it where the
            result of a get is assigned before the sync. They also raise what
            :meth:`put` and :meth:`get` raise.
        PartitionError: the group cannot be used now.

    Cost: nothing; each use costs what its put or get costs.
    """
    bsp._check_usable("on")
    there = bsp._check_pid(pid, "on")
    bsp._checked(whole_array, "on", bsp._registry, x)
    return RemoteArray(bsp, there, x)


def put_at(
    bsp: GroupState,
    pids: ArrayLike,
    indices: ArrayLike | tuple[ArrayLike, ...],
    values: ArrayLike,
    dst: Array,
    op: np.ufunc | str | None,
) -> None:
    """Add puts of single elements; see :meth:`bsplib.core.calls.Calls.put_at`."""
    registration = whole_array("put_at", bsp._registry, dst, pids, indices, values)
    dtype = dtype_there("put_at", registration)
    code = encode_op("put_at", op, dtype)
    if bsp._watch is not None:
        values = bsp._watch.source(values, "put_at")
    check_axes("put_at", registration, pids, indices, values)
    named = elements("put_at", registration, pids, indices, bsp.nprocs)
    what = cast_values("put_at", values, dtype, exact=bsp._watch is not None)
    to, at, what = broadcast("put_at", *named[:2], what)
    chosen = _elements(bsp, "put_at", registration, to, at, named.inner)
    put = packed(Single(registration.slot, code), _site(bsp, "put_at"))
    buffers = _buffers(
        bsp,
        {
            pid: (index_bytes(number) + number * dtype.itemsize)
            for pid, number in chosen.numbers.items()
        },
    )
    chosen.deal(what.reshape(-1), {pid: memory for pid, (_, memory) in buffers.items()})
    for pid, (where, memory) in buffers.items():
        number = chosen.numbers[pid]
        _add_elements(bsp, pid, (PLACED, STAGED_PLACED), put, number, where, memory)
        bsp._engine.note_put(pid, number * dtype.itemsize)


def _site(bsp: GroupState, operation: str) -> CallSite | None:
    """Return the place of the present call, where the run is checked."""
    return None if bsp._watch is None else here(operation)


def _buffers(bsp: GroupState, sizes: dict[int, int]) -> dict[int, tuple[int | None, Array]]:
    """Return memory for the data of an entry for each process.

    Args:
        sizes: bytes, by process.

    Returns:
        By process: where the memory is staged, or None, and the memory.
    """
    buffers: dict[int, tuple[int | None, Array]] = {}
    for pid, nbytes in sizes.items():
        if bsp._engine.is_small(nbytes):
            buffers[pid] = None, np.empty(nbytes, np.uint8)
        else:
            (_, where, _), memory = bsp._port.stage(nbytes, pid)
            buffers[pid] = where, memory
    return buffers


def _add_elements(
    bsp: GroupState,
    to: int,
    kinds: tuple[int, int],
    description: bytes,
    number: int,
    where: int | None,
    memory: Array,
) -> None:
    """Add an entry of single elements; its kind depends on where its data are."""
    if where is None:
        bsp._engine.send_buffer.describe(to, kinds[0], description, number, memory)
    else:
        bsp._engine.send_buffer.describe_staged(
            to, kinds[1], description, number, where, len(memory)
        )


def get_at(
    bsp: GroupState,
    pids: ArrayLike,
    indices: ArrayLike | tuple[ArrayLike, ...],
    src: Array,
    out: Array | None,
) -> Array:
    """Add gets of single elements; see :meth:`bsplib.core.calls.Calls.get_at`."""
    registration = whole_array("get_at", bsp._registry, src, pids, indices)
    dtype = dtype_there("get_at", registration)
    named = elements("get_at", registration, pids, indices, bsp.nprocs)
    of, at = broadcast("get_at", *named[:2])
    destination = check_out("get_at", out, at.shape, dtype)
    if out is None:
        bsp._engine.fill_destination(destination)
    chosen = _elements(bsp, "get_at", registration, of, at, named.inner)
    site = _site(bsp, "get_at")
    get = packed(Single(registration.slot), site)
    buffers = _buffers(bsp, {pid: 8 * number for pid, number in chosen.numbers.items()})
    into = np.ndarray.view(destination, np.ndarray)
    positions = chosen.deal_positions({pid: memory for pid, (_, memory) in buffers.items()})
    for pid, (where, memory) in buffers.items():
        number = chosen.numbers[pid]
        _add_elements(bsp, pid, (ASK, STAGED_ASK), get, number, where, memory)
        pending = PendingGet(pid, into, None, dtype, positions[pid], site)
        bsp._engine.add_ask(pid, number * dtype.itemsize, pending)
    if bsp._watch is not None and destination.size:
        destination = bsp._watch.destination(destination, "get_at", new=out is None)
    return destination


def _elements(
    bsp: GroupState,
    operation: str,
    registration: Registration,
    pids: Array,
    indices: Array,
    inner: tuple[int, ...] | None,
) -> CountedElements:
    """Sort the elements of a call by process, with every check that is possible now."""
    chosen = sort_by_process(operation, pids, indices, bsp.nprocs)
    check_there(operation, registration, chosen)
    if registration.announced is None and chosen.numbers:
        bsp._engine.unresolved.append(UncheckedElements(operation, registration, chosen, inner))
    return chosen


def _sizes_there(registration: Registration, nprocs: int) -> list[int]:
    """Return the bytes of a registered array on each process; 0 where it cannot be named."""
    assert registration.array is not None  # the caller has checked
    assert registration.dtype is not None
    if registration.alike:
        return [registration.array.nbytes] * nprocs
    dtype = registration.dtype
    announced = [registration.announced_on(pid) for pid in range(nprocs)]
    return [
        0
        if there is None or not are_equal(there.dtype, dtype)
        else there.size * registration.itemsize
        for there in announced
    ]


# -- the array of another process as a place that is read and written by indices ------------------


class RemoteArray:
    """A registered array on another process; :meth:`Group.on` makes it.

    Indices are basic ones (integers, slices, Ellipsis, or several of them), taken against
    the shape that the array has on that process.

    Args:
        group: group of this process.
        pid: the other process.
        array: names the registration.
    """

    __iter__ = None
    """It has indices and no elements: a loop over it would ask for one get after the other."""

    def __init__(self, group: GroupState, pid: int, array: Any) -> None:
        self._group = group
        self._pid = pid
        self._array = array

    def __getitem__(self, index: Any) -> Array:
        """Read elements at the end of the superstep, as ``get(pid, x, at=index)`` does.

        Returns:
            A new array, whose content is valid after the sync; without axes for one element.
        """
        result: Array = self._group.get(self._pid, self._array, at=index)
        _await(self._group, result)
        return result

    def __setitem__(self, index: Any, values: ArrayLike) -> None:
        """Write elements at the end of the superstep, as ``put(pid, values, x, at=index)`` does."""
        group = self._group
        if _is_awaited(group, values):
            group._fail(
                PlaceError(
                    "on: the value is the result of a get that is complete after the sync only, so "
                    "that an assignment such as bsp.on(pid, x)[i] += v cannot add to it; write "
                    "bsp.put_at(pid, i, v, x, op=numpy.add)"
                )
            )
        group.put(self._pid, values, self._array, at=index)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: its values are on another process."""
        self._group._fail(
            PlaceError(
                f"on: the values of this array are on process {self._pid}; write bsp.on(pid, x)[:] "
                f"to get them, and use the result after the next sync"
            )
        )

    def __repr__(self) -> str:
        kind = type(self._array).__name__
        if isinstance(self._array, np.ndarray):
            kind = f"array of shape {self._array.shape} here"
        return f"<{kind}, on process {self._pid}>"


def _await(group: GroupState, result: Array) -> None:
    """Remember the result of a get, which the next sync fills."""
    if group._awaited_in != group._engine.superstep:
        group._awaited.clear()
        group._awaited_in = group._engine.superstep
    group._awaited[id(result)] = weakref.ref(result)


def _is_awaited(group: GroupState, values: Any) -> bool:
    """Tell whether values are a remembered result, or a view of one, before the sync."""
    if group._awaited_in != group._engine.superstep:
        return False
    known = [group._awaited.get(id(each)) for each in (values, getattr(values, "base", None))]
    return any(reference is not None and reference() is not None for reference in known)
