"""The collectives that bring values to other processes, whole or in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib.core.forms import DtypeCode, decode_dtype, encode_dtype
from bsplib.core.values import may_overlap
from bsplib.errors import UsageError
from bsplib.primitives import blocks
from bsplib.primitives.collective_mail import (
    WORD,
    Piece,
    all_others,
    copied,
    others_of,
    own_copy,
    pack,
    piece_of,
    tag_of,
    take_arrived,
    unpack,
    unwrap,
)
from bsplib.primitives.outs import (
    Out,
    Outs,
    check_form,
    fill,
    fill_all,
    is_untouched,
    room_for,
    target_of,
    targets_of,
)
from bsplib.primitives.state import GroupState
from bsplib.transfers.place import Array

_PIECE = "piece"
"""The header of a message with a piece of a value."""
_Value = TypeVar("_Value")


# -- one value to all, or from all ----------------------------------------------------


@overload
def broadcast(
    bsp: GroupState,
    x: _Value | None,
    root: SupportsIndex = 0,
    stages: int | None = None,
    *,
    out: None = None,
) -> _Value: ...
@overload
def broadcast(
    bsp: GroupState,
    x: Any,
    root: SupportsIndex = 0,
    stages: int | None = None,
    *,
    out: Out,
) -> Out: ...
def broadcast(
    bsp: GroupState,
    x: Any,
    root: SupportsIndex = 0,
    stages: int | None = None,
    *,
    out: Array | None = None,
) -> Any:
    """Return process ``root``'s ``x`` on every process.

    In one stage the root sends the whole to everybody. In two it sends each
    process a piece, which that one sends to everybody: this costs a superstep
    more and spreads the communication evenly. Pieces are of an array's elements,
    or of the bytes of a pickle.

    Args:
        x: an array, a number, bytes or any picklable object; ignored on
            processes other than the root.
        root: process whose ``x`` it is.
        stages: 1 or 2; None leaves it to the Machine: two stages from
            ``n > l / (p g - 2 g)`` on, and never with one or two processes. What
            the root says counts.
        out: array for the result, with its shape and dtype, in place of a new one; it
            may be ``x``. Each process may give one or not.

    Returns:
        The value, or ``out`` with it.

    Raises:
        ProcessRangeError: ``root`` is no process of this group.
        UsageError: ``stages`` is not 1, 2 or None.
        PlaceError: ``out`` is no writable array.
        ShapeError: ``out`` has another shape than the value.
        DtypeError: ``out`` has another dtype than the value.
        MessageError: ``x`` cannot be pickled.
        SyncMismatchError: the root is in no broadcast, or in one from elsewhere.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1 or 2.
    Cost: (p - 1) n g + l in one stage, 2 (p - 1)/p n g + 2 l in two.
    Source: Jarvis et al. 2002, section 3.2, equations 6 to 8.
    """
    source = bsp._values.root_of(bsp, "broadcast", root)
    if stages not in (None, 1, 2):
        raise bsp._error(
            UsageError,
            f"broadcast: stages is {stages!r}; it is 1, 2, or None to leave it to the Machine",
        )
    target = target_of(bsp, "broadcast", out)
    try:
        is_root = bsp._pid == source
        value: Any = None
        pieces: _Pieces | None = None
        if is_root:
            stays = target is not None and target is x and is_untouched(bsp, target)
            value, pieces = _send_whole_or_pieces(bsp, x, stages, stays=stays)
        bsp.sync() if stages is None else _ENDED_BY[stages](bsp)
        sources, views = () if is_root else (source,), target is not None
        arrived = bsp._values.take(bsp, "broadcast", None, sources, -1, None, views)
        if is_root:
            value = value if views else bsp._values.owned(value)
        else:
            value = arrived[0]
            if type(value) is Piece:
                pieces = _Pieces.with_own(bsp, target, value)
        if pieces is not None:
            whole = _exchange_pieces(bsp, source, pieces)
            value = value if is_root else whole
        if target is None:
            return value
        fill(bsp, "broadcast", target, value)
    except BaseException as error:
        bsp._note_failure(error)
        raise
    return out


def in_one_stage(bsp: GroupState) -> None:
    """End the superstep of a broadcast whose ``stages=1`` the program gives.

    The call stack of the record then has this function: so a trace tells that the Machine did not
    choose, and that the form is the same at all sizes.
    """
    bsp.sync()


def in_two_stages(bsp: GroupState) -> None:
    """End the first superstep of a broadcast whose ``stages=2`` the program gives."""
    bsp.sync()


_ENDED_BY = {1: in_one_stage, 2: in_two_stages}
"""What ends the first superstep of a broadcast, by the number of stages that the program gives."""


def _exchange_pieces(bsp: GroupState, source: int, pieces: _Pieces) -> Any:
    """Send all others the piece of this process; return the whole value but on the root."""
    piece = pieces.flat[piece_of(bsp, bsp.pid, pieces.flat.size)]
    others = [pid for pid in all_others(bsp) if pid != source]
    bsp._values.send_all(bsp, others, piece, tag_of("broadcast", _PIECE))
    kept = bsp._engine.queue.take_left(bsp._port.fetch)
    bsp.sync()
    sources = [] if bsp._pid == source else range(bsp._nprocs)
    for pid, message in take_arrived(bsp, "broadcast", sources, kept).items():
        pieces.flat[piece_of(bsp, pid, pieces.flat.size)] = unwrap(bsp, message, copy=False)
    return None if bsp._pid == source else pieces.whole(bsp)


@overload
def gather(
    bsp: GroupState, x: _Value, root: SupportsIndex = 0, *, axis: None = None, out: None = None
) -> list[_Value] | None: ...
@overload
def gather(
    bsp: GroupState, x: ArrayLike, root: SupportsIndex = 0, *, axis: int, out: None = None
) -> NDArray[Any] | None: ...
@overload
def gather(
    bsp: GroupState, x: ArrayLike, root: SupportsIndex = 0, *, axis: int | None = None, out: Outs
) -> Outs | None: ...
def gather(
    bsp: GroupState,
    x: Any,
    root: SupportsIndex = 0,
    *,
    axis: int | None = None,
    out: Array | Sequence[Array] | None = None,
) -> Any:
    """Return the ``x`` of all processes on process ``root``, as a list or joined.

    Args:
        x: an array, a number, bytes or any picklable object; of any size.
        root: process that receives them.
        axis: along which arrays are joined, in the order of the pids, as by
            ``numpy.concatenate``; None for the list of the values.
        out: array for the joined result, with its shape and dtype; without ``axis``
            an array whose first axis has an index for each process, or a list with an
            array for each. Ignored on processes other than the root.

    Returns:
        The values by pid on the root, or with ``axis`` one array, or ``out`` with them;
        None on the others.

    Raises:
        ProcessRangeError: ``root`` is no process of this group.
        UsageError: ``axis`` is no integer, or ``out`` is not for as many processes.
        PlaceError: ``out`` is no writable array, nor a list of such.
        ShapeError: an array has no such axis, or they differ along another one, or
            from ``out``.
        DtypeError: with ``axis``, there is no dtype for all of them, or one holds
            Python objects; or ``out`` has another one.
        MessageError: ``x`` cannot be pickled.
        SyncMismatchError: a process is in no gather, or in one to elsewhere.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1.
    Cost: (p - 1) n g + l; with unequal values the sum of all but the root's for
    (p - 1) n.
    """
    receiver = bsp._values.root_of(bsp, "gather", root)
    is_root = bsp._pid == receiver
    targets = targets_of(bsp, "gather", out, axis) if is_root else None
    block = x if axis is None else _of_axis(bsp, blocks.block, "gather", x, axis)
    try:
        own = bsp._values.give(bsp, "gather", () if is_root else (receiver,), block)
        bsp.sync()
        if is_root:
            return _from_all(bsp, "gather", own, axis, out, targets)
        bsp._values.take(bsp, "gather", None, (), -1, None, False)
    except BaseException as error:
        bsp._note_failure(error)
        raise
    return None


@overload
def allgather(
    bsp: GroupState, x: _Value, *, axis: None = None, out: None = None
) -> list[_Value]: ...
@overload
def allgather(bsp: GroupState, x: ArrayLike, *, axis: int, out: None = None) -> NDArray[Any]: ...
@overload
def allgather(bsp: GroupState, x: ArrayLike, *, axis: int | None = None, out: Outs) -> Outs: ...
def allgather(
    bsp: GroupState,
    x: Any,
    *,
    axis: int | None = None,
    out: Array | Sequence[Array] | None = None,
) -> Any:
    """Return the ``x`` of all processes on every process, as a list or joined.

    Args:
        x: an array, a number, bytes or any picklable object; of any size.
        axis: along which arrays are joined, in the order of the pids, as by
            ``numpy.concatenate``; None for the list of the values.
        out: array for the joined result, with its shape and dtype; without ``axis``
            an array whose first axis has an index for each process, or a list with an
            array for each.

    Returns:
        The values by pid, or with ``axis`` one array, or ``out`` with them.

    Raises:
        UsageError: ``axis`` is no integer, or ``out`` is not for as many processes.
        PlaceError: ``out`` is no writable array, nor a list of such.
        ShapeError: an array has no such axis, or they differ along another one, or
            from ``out``.
        DtypeError: with ``axis``, there is no dtype for all of them, or one holds
            Python objects; or ``out`` has another one.
        MessageError: ``x`` cannot be pickled.
        SyncMismatchError: a process is in no allgather.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1.
    Cost: (p - 1) n g + l; with unequal values h is the greater of (p - 1) times
    the largest and the sum of all but the smallest.
    """
    targets = targets_of(bsp, "allgather", out, axis)
    block = x if axis is None else _of_axis(bsp, blocks.block, "allgather", x, axis)
    try:
        own = bsp._values.give(bsp, "allgather", all_others(bsp), block)
        bsp.sync()
        return _from_all(bsp, "allgather", own, axis, out, targets)
    except BaseException as error:
        bsp._note_failure(error)
        raise


# -- parts ----------------------------------------------------------------------------


@overload
def scatter(
    bsp: GroupState,
    parts: NDArray[Any] | None,
    root: SupportsIndex = 0,
    *,
    axis: None = None,
    out: None = None,
) -> Any: ...
@overload
def scatter(
    bsp: GroupState,
    parts: Sequence[_Value] | None,
    root: SupportsIndex = 0,
    *,
    axis: None = None,
    out: None = None,
) -> _Value: ...
@overload
def scatter(
    bsp: GroupState,
    parts: ArrayLike | None,
    root: SupportsIndex = 0,
    *,
    axis: int,
    out: None = None,
) -> NDArray[Any]: ...
@overload
def scatter(
    bsp: GroupState, parts: Any, root: SupportsIndex = 0, *, axis: int | None = None, out: Out
) -> Out: ...
def scatter(
    bsp: GroupState,
    parts: Any,
    root: SupportsIndex = 0,
    *,
    axis: int | None = None,
    out: Array | None = None,
) -> Any:
    """Return part ``pid`` of process ``root``'s parts on each process.

    Args:
        parts: one part for each process, by pid, of any sizes: a list, or an array
            whose first axis has an index for each process; with ``axis`` an array
            of any shape. Ignored on processes other than the root.
        root: process that has them.
        axis: along which the array is cut into a block for each process, as by
            ``numpy.array_split``: the first blocks are longer by one element where
            they cannot be equal. What the root says counts.
        out: array for the result, with its shape and dtype, in place of a new one; it
            may be a part of ``parts``. Each process may give one or not.

    Returns:
        The part, or the block, or ``out`` with it.

    Raises:
        ProcessRangeError: ``root`` is no process of this group.
        UsageError: there are more or fewer parts than processes, or ``axis`` is no
            integer.
        PlaceError: ``out`` is no writable array.
        ShapeError: the array has no such axis, or ``out`` has another shape.
        DtypeError: with ``axis``, the array holds Python objects; or ``out`` has another
            dtype.
        MessageError: a part cannot be pickled.
        SyncMismatchError: the root is in no scatter, or in one from elsewhere.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1.
    Cost: (p - 1) n g + l; with unequal parts the sum of all but the root's for
    (p - 1) n.
    """
    source = bsp._values.root_of(bsp, "scatter", root)
    target = target_of(bsp, "scatter", out)
    try:
        is_root, part = bsp._pid == source, None
        if is_root:
            if axis is not None:
                parts = _of_axis(bsp, blocks.cut, "scatter", parts, axis, bsp._nprocs)
            part = _give_parts(bsp, "scatter", parts, None if target is None else ())
        bsp.sync()
        sources, views = () if is_root else (source,), target is not None
        arrived = bsp._values.take(bsp, "scatter", None, sources, -1, None, views)
        if not is_root:
            part = arrived[0]
        if target is None:
            return part
        fill(bsp, "scatter", target, part)
    except BaseException as error:
        bsp._note_failure(error)
        raise
    return out


@overload
def alltoall(
    bsp: GroupState, parts: NDArray[Any], *, axis: None = None, out: None = None
) -> list[Any]: ...
@overload
def alltoall(
    bsp: GroupState, parts: Sequence[_Value], *, axis: None = None, out: None = None
) -> list[_Value]: ...
@overload
def alltoall(
    bsp: GroupState, parts: ArrayLike, *, axis: int | tuple[int, int], out: None = None
) -> NDArray[Any]: ...
@overload
def alltoall(
    bsp: GroupState, parts: Any, *, axis: int | tuple[int, int] | None = None, out: Outs
) -> Outs: ...
def alltoall(
    bsp: GroupState,
    parts: Any,
    *,
    axis: int | tuple[int, int] | None = None,
    out: Array | Sequence[Array] | None = None,
) -> Any:
    """Send part i to process i, and return what the processes sent here.

    Args:
        parts: one part for each process, by pid, of any sizes: a list, or an array
            whose first axis has an index for each process; with ``axis`` an array
            of any shape. None where there is nothing for a process.
        axis: along which the array is cut into a block for each process, as by
            ``numpy.array_split``, and the blocks that come are joined. With two
            axes it is cut along the first and joined along the second one: a matrix
            in blocks of rows becomes one in blocks of columns by ``axis=(1, 0)``.
        out: array for the joined result, with its shape and dtype; without ``axis``
            an array whose first axis has an index for each process, or a list with an
            array for each. The place for the part of a process that
            had nothing stays as it is. It may be ``parts``.

    Returns:
        By pid, the part that each process had for this one; None from a process
        that had nothing. With ``axis`` one array. Or ``out`` with them.

    Raises:
        UsageError: there are more or fewer parts than processes, ``axis`` is
            neither an integer nor two, or ``out`` is not for as many processes.
        PlaceError: ``out`` is no writable array, nor a list of such.
        ShapeError: the array has no such axis, or blocks differ along another one, or
            from ``out``.
        DtypeError: with ``axis``, there is no dtype for all blocks, or the array
            holds Python objects; or ``out`` has another one.
        MessageError: a part cannot be pickled.
        SyncMismatchError: a process is in another collective.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1.
    Cost: (p - 1) n g + l; with unequal parts h is the bytes in or out of a
    process, its part for itself apart. None is not sent and costs nothing.
    """
    along, joined = blocks.two_axes(axis)
    targets = targets_of(bsp, "alltoall", out, joined)
    written = [targets] if isinstance(targets, np.ndarray) else targets
    try:
        if axis is not None:
            bsp._values.begin()
            _of_axis(bsp, blocks.block, "alltoall", parts, joined)
            parts = _of_axis(bsp, blocks.cut, "alltoall", parts, along, bsp._nprocs)
        own = _give_parts(bsp, "alltoall", parts, written)
        bsp.sync()
        return _from_all(bsp, "alltoall", own, joined, out, targets)
    except BaseException as error:
        bsp._note_failure(error)
        raise


# -- what these have in common --------------------------------------------------------------


def _give_parts(
    bsp: GroupState, operation: str, parts: Any, targets: Sequence[Array] | None
) -> Any:
    """Send each process its part; return this process's own. See :func:`_is_copied`."""
    own = None
    if type(parts) is list and len(parts) == bsp._nprocs:
        copies = targets is None or _is_copied(bsp, parts[bsp._pid], targets)
        own = bsp._values.give_parts(bsp, operation, parts, copies)
    return _send_parts(bsp, operation, parts, targets) if own is None else own


def _is_copied(bsp: GroupState, own: Any, targets: Sequence[Array] | None) -> bool:
    """Tell whether this process copies its part for itself at the call.

    It does not where the part is copied to the array of the program, and stays as it is until then.

    Args:
        bsp: the group.
        own: the part.
        targets: what is written before that, by the sync apart; None where there is no array of
            the program.
    """
    if targets is None or not isinstance(own, np.ndarray) or not is_untouched(bsp, own):
        return True
    return any(may_overlap(own, target) for target in targets)


def _of_axis(
    bsp: GroupState, find: Callable[..., Any], operation: str, x: Any, axis: Any, *nprocs: int
) -> Any:
    """Return the array that a value is, or its blocks along an axis."""
    return bsp._checked(find, operation, bsp._to_read(operation, x), axis, *nprocs)


def _from_all(
    bsp: GroupState, operation: str, own: Any, axis: int | None, out: Any, targets: Any
) -> Any:
    """Take the values of all; return them as a list, or joined along an axis, or in ``out``.

    Args:
        bsp: the group.
        operation: the collective.
        own: the value of this process.
        axis: along which they are joined; None if they are not.
        out: as the program has given it.
        targets: the same as plain arrays; None if there is none.
    """
    pid, views = bsp._pid, targets is not None
    others = others_of(pid, bsp._nprocs)
    values: list[Any] = bsp._values.take(bsp, operation, None, others, pid, own, views)
    if axis is None and targets is None:
        return values
    if axis is None:
        fill_all(bsp, operation, targets, values)
        return out
    if targets is None:
        return bsp._checked(blocks.join, operation, values, axis)
    form = bsp._checked(blocks.joined_form, operation, values, axis)
    check_form(bsp, operation, targets, *form)
    np.concatenate(values, axis, out=targets)
    return out


def _check_parts(bsp: GroupState, operation: str, parts: Any) -> None:
    try:
        count = len(parts)
    except TypeError:
        raise bsp._error(
            UsageError,
            f"{operation}: parts is a {type(parts).__name__}; it is a list with one part for "
            f"each of the {bsp.nprocs} processes",
        ) from None
    if count != bsp.nprocs:
        cut = "; axis=0 cuts an array into blocks" if isinstance(parts, np.ndarray) else ""
        raise bsp._error(
            UsageError,
            f"{operation}: there are {count} parts for {bsp.nprocs} processes; each "
            f"process has one{cut}",
        )


def _send_parts(
    bsp: GroupState, operation: str, parts: Any, targets: Sequence[Array] | None
) -> Any:
    """Send each process its part; return this process's own. See :func:`_is_copied`."""
    bsp._values.begin()
    bsp._check_usable()
    _check_parts(bsp, operation, parts)
    own = parts[bsp.pid]
    own = own_copy(bsp, operation, own) if _is_copied(bsp, own, targets) else own
    given = [pid for pid in all_others(bsp) if parts[pid] is not None or operation == "scatter"]
    packed = [pack(bsp, operation, parts[pid]) for pid in given]  # before any of them is sent
    for pid, (data, header) in zip(given, packed, strict=True):
        bsp._values.send_value(bsp, pid, data, tag_of(operation, header))
    return own


def _send_whole_or_pieces(
    bsp: GroupState, x: Any, stages: int | None, *, stays: bool
) -> tuple[Any, _Pieces | None]:
    """Send all others the whole value or a piece each.

    Args:
        bsp: the group.
        x: the value.
        stages: what the program says of them.
        stays: the array for the result is the value, and nothing changes it until the end.

    Returns:
        The value, and its pieces where it travels in pieces.
    """
    if bsp._nprocs < 3 and stages != 2 and not stays:
        return bsp._values.give(bsp, "broadcast", all_others(bsp), x), None
    data, header = pack(bsp, "broadcast", x)
    data = data if stays else copied(data)
    if not _takes_two_stages(bsp, data, stages):
        bsp._values.send_all(bsp, all_others(bsp), data, tag_of("broadcast", header))
        return unpack(bsp, data, pickled=header is True), None
    pieces = _Pieces.of(bsp, data, pickled=header is True)
    tag = tag_of("broadcast", pieces.header())
    for pid in all_others(bsp):
        bsp._values.send_value(bsp, pid, pieces.flat[piece_of(bsp, pid, pieces.flat.size)], tag)
    return unpack(bsp, data, pickled=header is True), pieces


def _takes_two_stages(bsp: GroupState, data: Any, stages: int | None) -> bool:
    """Tell whether a broadcast takes two stages, as the program or the Machine has chosen."""
    if stages is not None or bsp._nprocs < 3:
        return stages == 2
    nbytes = len(data) if type(data) is bytes else getattr(data, "nbytes", WORD)
    return bsp.machine.two_stages_pay(nbytes, bsp._nprocs)


class _Pieces(NamedTuple):
    """A value that travels in pieces."""

    form: str
    """``array``, ``bytes`` or ``pickle``."""
    shape: tuple[int, ...]
    flat: NDArray[Any]

    @classmethod
    def of(cls, bsp: GroupState, data: Any, *, pickled: bool) -> _Pieces:
        """Lay out what travels for a value."""
        if type(data) is np.ndarray:
            return cls("array", data.shape, data.reshape(-1))
        if type(data) is not bytes:
            data, pickled = bsp._engine.dumps(data), True
        flat = np.frombuffer(data, np.uint8)
        return cls("pickle" if pickled else "bytes", flat.shape, flat)

    @classmethod
    def with_own(cls, bsp: GroupState, target: Array | None, own: Piece) -> _Pieces:
        """Make room for all pieces, in the array of the program if there is one."""
        form, shape, code = own.header
        dtype = decode_dtype(code)
        if form != "array":
            target = None
        elif target is not None:
            check_form(bsp, "broadcast", target, shape, dtype)
        flat = room_for(target, shape, dtype)
        flat[piece_of(bsp, bsp.pid, flat.size)] = own.elements
        return cls(form, shape, flat)

    def header(self) -> tuple[str, tuple[int, ...], DtypeCode]:
        """Return what the receivers need to know."""
        return self.form, self.shape, encode_dtype(self.flat.dtype)

    def whole(self, bsp: GroupState) -> Any:
        """Return the value once all pieces are there."""
        if self.form == "array":
            return self.flat.reshape(self.shape)
        return unpack(bsp, self.flat.tobytes(), pickled=self.form == "pickle")
