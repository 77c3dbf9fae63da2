"""The collectives that combine a value of every process into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from bsplib.core.queue import Message
from bsplib.core.values import SCALARS, Fold, Recipe
from bsplib.errors import ShapeError, UsageError
from bsplib.experiments.collective_costs import LEAST_BYTES, ONE_STAGE_MOST, RADICES, most_received
from bsplib.primitives.blocks import by_process
from bsplib.primitives.collective_mail import (
    WORD,
    all_others,
    check_sources,
    header_of,
    others_of,
    own_copy,
    piece_of,
    take_arrived,
    take_messages,
    unwrap,
)
from bsplib.primitives.outs import Out, check_form, fill, room_for, target_of
from bsplib.primitives.state import GroupState, typed_as
from bsplib.transfers import operations
from bsplib.transfers.place import Array

if TYPE_CHECKING:
    from bsplib.machine import Machine

_MOST_FORMS = 256
"""Greatest number of forms of values whose recipes are remembered: a program may use a new shape in
each call."""


_Value = TypeVar("_Value")
_Op = np.ufunc | str | Callable[[_Value, _Value], _Value]
_Listed = list[Any] | tuple[Any, ...]
"""What a ufunc combines as arrays."""


@overload
def reduce(
    bsp: GroupState,
    x: _Listed,
    op: np.ufunc | str = ...,
    root: SupportsIndex = 0,
    *,
    out: None = None,
) -> NDArray[Any] | None: ...
@overload
def reduce(
    bsp: GroupState,
    x: _Value,
    op: _Op[_Value] = ...,
    root: SupportsIndex = 0,
    *,
    out: None = None,
) -> _Value | None: ...
@overload
def reduce(
    bsp: GroupState, x: Any, op: _Op[Any] = ..., root: SupportsIndex = 0, *, out: Out
) -> Out | None: ...
def reduce(
    bsp: GroupState,
    x: Any,
    op: Any = np.add,
    root: SupportsIndex = 0,
    *,
    out: Array | None = None,
) -> Any:
    """Return ``x_0 op x_1 op ... op x_(p-1)`` on process ``root``.

    The values are combined in the order of the pids, element by element, so that the
    result is the same in every run, on every backend and Machine, bit by bit. Sums,
    products, minima, maxima, logical and bitwise operations combine in a binary tree:
    n values are the first m, where m is the largest power of two below n, combined with
    the rest. Any other ``op`` combines from the left; it need neither commute nor be
    associative.

    With a ufunc the values are numbers, or arrays of one shape (or what
    ``numpy.asarray`` takes). Of Python's own numbers and strings the result is one
    too: integers do not overflow, strings add. A sum of truth values is their number,
    also in arrays; other operations on them give truth values.

    For arrays the Machine chooses, as for :meth:`broadcast` and counting 8 bytes
    for each element: either everything goes to the root, which combines it; or each
    process combines a piece of all arrays, and the pieces go to the root. Any other
    function is given the values whole.

    Args:
        x: what this process contributes.
        op: a binary ufunc, its name (``"sum"``, ``"prod"``, ``"min"``, ``"max"``,
            ``"and"``, ``"or"``, ``"xor"``, ``"all"``, ``"any"``), or a function of
            two values. Python's ``sum``, ``all`` and ``any``, ``numpy.sum`` and the
            like mean the operation of their name.
        root: process that receives the result.
        out: array for the result, with its shape and dtype, in place of a new one; it may
            be ``x``. Ignored on processes other than the root.

    Returns:
        The result on the root, or ``out`` with it; None on the others.

    Raises:
        ProcessRangeError: ``root`` is no process of this group.
        UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
        PlaceError: ``out`` is no writable array.
        ShapeError: with a ufunc, the shapes differ; or ``out`` has another one.
        DtypeError: ``out`` has another dtype than the result.
        MessageError: ``x`` cannot be pickled.
        SyncMismatchError: a process is in no reduce, or in one to elsewhere.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1 or 2.
    Cost: (p - 1) n g + l and (p - 1) n of computation on the root in one;
    2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two.
    Source: the second way is that of Jarvis et al. 2002, equation 7, backwards.
    """
    receiver = bsp._values.root_of(bsp, "reduce", root)
    recipe = bsp._values.recipe_of("reduce", op, x)
    if recipe is None:
        recipe, x = _new_recipe(bsp, "reduce", op, x)
    target = target_of(bsp, "reduce", out if bsp._pid == receiver else None)
    try:
        if recipe.cut:
            total = _reduce_pieces(bsp, recipe, x, receiver, target)
        else:
            stage = _to_root(bsp._pid, bsp._nprocs, receiver)
            values = bsp._values.exchanged(bsp, recipe, stage, x)
            total = bsp._values.total(recipe, values, target) if values else None
        return total if target is None else _given(bsp, recipe, target, total, out)
    except BaseException as error:
        bsp._note_failure(error)
        raise


def _reduce_pieces(
    bsp: GroupState, recipe: Recipe, x: Any, receiver: int, target: Array | None
) -> Any:
    total = _combined_piece(bsp, recipe, x)
    if bsp._pid != receiver:
        bsp._values.send_value(bsp, receiver, total, recipe.tag_of_piece)
    # Messages of the program came with the first sync; the second one would drop them.
    kept = bsp._engine.queue.take_left(bsp._port.fetch)
    bsp.sync()
    sources = range(bsp._nprocs) if bsp._pid == receiver else []
    arrived = take_arrived(bsp, "reduce", sources, kept)
    return _joined(bsp, recipe, x, arrived, total, target) if bsp._pid == receiver else None


@overload
def allreduce(
    bsp: GroupState, x: _Listed, op: np.ufunc | str = ..., *, out: None = None
) -> NDArray[Any]: ...
@overload
def allreduce(bsp: GroupState, x: _Value, op: _Op[_Value] = ..., *, out: None = None) -> _Value: ...
@overload
def allreduce(bsp: GroupState, x: Any, op: _Op[Any] = ..., *, out: Out) -> Out: ...
def allreduce(bsp: GroupState, x: Any, op: Any = np.add, *, out: Array | None = None) -> Any:
    """Return ``x_0 op x_1 op ... op x_(p-1)`` on every process.

    Order and arguments are those of :meth:`reduce`. Everybody sends its whole value
    to everybody, or each process combines a piece of all arrays and sends the piece to
    everybody: the Machine chooses, as for :meth:`broadcast`. With more than 8 processes
    there is a third way for operations that combine in a tree: in each stage, r blocks
    of processes exchange their results and become one block, where r is 2, 4 or 8. Then
    the Machine chooses what costs least.

    Args:
        x: what this process contributes.
        op: a binary ufunc, its name (``"sum"``, ``"prod"``, ``"min"``, ``"max"``,
            ``"and"``, ``"or"``, ``"xor"``, ``"all"``, ``"any"``), or a function of
            two values. Python's ``sum``, ``all`` and ``any``, ``numpy.sum`` and the
            like mean the operation of their name.
        out: array for the result, with its shape and dtype, in place of a new one; it may
            be ``x``. Each process may give one or not.

    Returns:
        The result, the same on all processes, bit by bit, or ``out`` with it.

    Raises:
        UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
        PlaceError: ``out`` is no writable array.
        ShapeError: with a ufunc, the shapes differ; or ``out`` has another one.
        DtypeError: ``out`` has another dtype than the result.
        MessageError: ``x`` cannot be pickled.
        SyncMismatchError: a process calls another collective, or none.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1 or 2; log_r p, rounded up, in stages.
    Cost: (p - 1) n g + l and (p - 1) n of computation in one;
    2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two;
    (r - 1) n g + l for each stage, and up to r n g + l for one in which the last block
    has fewer processes.
    Source: the stages are those of Bruck et al. 1997, in blocks of neighbours.
    """
    recipe = bsp._values.recipe_of("allreduce", op, x)
    if recipe is None:
        recipe, x = _new_recipe(bsp, "allreduce", op, x)
    target = None if out is None else target_of(bsp, "allreduce", out)
    try:
        stages = recipe.stages
        if recipe.cut:
            total = _allreduce_pieces(bsp, recipe, x, target)
        elif len(stages) == 1:
            total = bsp._values.combined(bsp, recipe, stages[0], x, target)
        else:
            total = bsp._values.combined(bsp, recipe, stages[0], x, None)
            # Messages of the program came with the first stage; the next one would drop them.
            kept = bsp._engine.queue.take_left(bsp._port.fetch)
            for stage in stages[1:]:
                into = target if stage is stages[-1] else None
                total = bsp._values.combined(bsp, recipe, stage, total, into)
            bsp._engine.queue.fill(kept)
        return total if target is None else _given(bsp, recipe, target, total, out)
    except BaseException as error:
        bsp._note_failure(error)
        raise


def _allreduce_pieces(bsp: GroupState, recipe: Recipe, x: Any, target: Array | None) -> Any:
    total = _combined_piece(bsp, recipe, x)
    bsp._values.send_all(bsp, all_others(bsp), total, recipe.tag_of_piece)
    kept = bsp._engine.queue.take_left(bsp._port.fetch)
    bsp.sync()
    arrived = take_arrived(bsp, "allreduce", range(bsp._nprocs), kept)
    return _joined(bsp, recipe, x, arrived, total, target)


@typed_as(allreduce)
def scan(bsp: GroupState, x: Any, op: Any = np.add, *, out: Array | None = None) -> Any:
    """Return ``x_0 op ... op x_pid`` on each process: the inclusive prefix.

    Order, arguments and choice are those of :meth:`allreduce`: either each process
    sends its whole value to those after it; or each process combines a piece of all
    arrays, and sends each process its prefix; or blocks exchange their results in stages.

    Args:
        x: what this process contributes.
        op: a binary ufunc, its name (``"sum"``, ``"prod"``, ``"min"``, ``"max"``,
            ``"and"``, ``"or"``, ``"xor"``, ``"all"``, ``"any"``), or a function of
            two values. Python's ``sum``, ``all`` and ``any``, ``numpy.sum`` and the
            like mean the operation of their name.
        out: array for the result, with its shape and dtype, in place of a new one; it may
            be ``x``. Each process may give one or not.

    Returns:
        The combination of the values of this process and of those before it, or ``out``
        with it.

    Raises:
        UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
        PlaceError: ``out`` is no writable array.
        ShapeError: with a ufunc, the shapes differ; or ``out`` has another one.
        DtypeError: ``out`` has another dtype than the result.
        MessageError: ``x`` cannot be pickled.
        SyncMismatchError: a process calls another collective, or none.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1 or 2; log_r p, rounded up, in stages.
    Cost: (p - 1) n g + l and (p - 1) n of computation in one;
    2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two;
    (r - 1) n g + l for each stage, and up to r n g + l for one in which the last block
    has fewer processes.
    """
    return _prefixed(bsp, "scan", x, op, out, inclusive=True)


def _scan_in_stages(
    bsp: GroupState, recipe: Recipe, x: Any, prefix: Any, target: Array | None
) -> Any:
    """Return the prefix of this process: in each stage its block becomes a larger one.

    Args:
        recipe: of a scan or exscan.
        x: the value of this process.
        prefix: of this process in a block of its own; None if it has none.
        target: array of the program for the prefix; None if there is none.
    """
    unread: list[Message] = []  # of the program, which the next stage would drop
    total = x
    prefix = None if prefix is None else own_value(bsp, recipe, prefix)
    for stage in recipe.stages:
        blocks = bsp._values.exchanged(bsp, recipe, stage, total)
        unread += bsp._engine.queue.take_left(bsp._port.fetch)
        is_last = stage is recipe.stages[-1]
        into = target if is_last else None
        prefix = bsp._values.prefix(recipe, blocks[: stage.place], prefix, into)
        if not is_last:
            total = bsp._values.total(recipe, blocks, None)
    bsp._engine.queue.fill(unread)
    return prefix


@overload
def exscan(
    bsp: GroupState, x: _Listed, op: np.ufunc | str = ..., *, out: None = None
) -> NDArray[Any] | None: ...
@overload
def exscan(
    bsp: GroupState, x: _Value, op: _Op[_Value] = ..., *, out: None = None
) -> _Value | None: ...
@overload
def exscan(bsp: GroupState, x: Any, op: _Op[Any] = ..., *, out: Out) -> Out | None: ...
def exscan(bsp: GroupState, x: Any, op: Any = np.add, *, out: Array | None = None) -> Any:
    """Return ``x_0 op ... op x_(pid-1)`` on each process: the exclusive prefix.

    Order, arguments and choice are those of :meth:`scan`. With the
    number of elements on each process as ``x``, the result is the position of the
    first element of this process among all.

    Args:
        x: what this process contributes.
        op: a binary ufunc, its name (``"sum"``, ``"prod"``, ``"min"``, ``"max"``,
            ``"and"``, ``"or"``, ``"xor"``, ``"all"``, ``"any"``), or a function of
            two values. Python's ``sum``, ``all`` and ``any``, ``numpy.sum`` and the
            like mean the operation of their name.
        out: array for the result, with its shape and dtype, in place of a new one; it may
            be ``x``. Each process may give one or not.

    Returns:
        The combination of the values of the processes before this one, or ``out`` with
        it. On process 0 the identity of ``op`` in the form of ``x`` (zeros for a sum, ones for a
        product, an empty string for a sum of strings); None where ``op`` has no
        identity, as a minimum or a function; then ``out`` stays as it is.

    Raises:
        UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
        PlaceError: ``out`` is no writable array.
        ShapeError: with a ufunc, the shapes differ; or ``out`` has another one.
        DtypeError: ``out`` has another dtype than the result.
        MessageError: ``x`` cannot be pickled.
        SyncMismatchError: a process calls another collective, or none.
        OutOfSharedMemoryError: there is no room for the copy of a value.
        PartitionError: the group cannot be used now.

    Supersteps: 1 or 2; log_r p, rounded up, in stages.
    Cost: (p - 1) n g + l and (p - 2) n of computation in one;
    2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two;
    as for :meth:`allreduce` in stages.
    """
    return _prefixed(bsp, "exscan", x, op, out, inclusive=False)


def _prefixed(
    bsp: GroupState, operation: str, x: Any, op: Any, out: Array | None, *, inclusive: bool
) -> Any:
    """Return the prefix of this process, with its own value or without it."""
    recipe = bsp._values.recipe_of(operation, op, x)
    if recipe is None:
        recipe, x = _new_recipe(bsp, operation, op, x)
    target = target_of(bsp, operation, out)
    pid, nprocs = bsp._pid, bsp._nprocs
    is_first = pid == 0 and not inclusive
    if is_first:  # x may be the array for the result
        identity = operations.identity(recipe.fold.ufunc, x) if recipe.fold.ufunc else None
    try:
        if recipe.cut:
            receivers = range(0 if inclusive else 1, nprocs)
            result = _scan_pieces(bsp, recipe, x, receivers, target)
        elif nprocs > ONE_STAGE_MOST and recipe.fold.in_tree:
            result = _scan_in_stages(bsp, recipe, x, x if inclusive else None, target)
        else:
            stage = _to_later(pid, nprocs, pid if inclusive else -1)
            values = bsp._values.exchanged(bsp, recipe, stage, x)
            own = values.pop() if inclusive else None
            result = bsp._values.prefix(recipe, values, own, target)
        if is_first:
            result = identity
        if target is None or result is None:
            return result
        return _given(bsp, recipe, target, result, out)
    except BaseException as error:
        bsp._note_failure(error)
        raise


def _scan_pieces(
    bsp: GroupState, recipe: Recipe, x: Any, receivers: range, target: Array | None
) -> Any:
    """Combine one piece of all values; send others the pieces of their prefixes.

    Args:
        recipe: of a scan, or of an exscan, of which process 0 receives nothing.
        x: the value of this process.
        receivers: the processes that have a prefix; on others None is returned.
        target: array of the program for the prefix; None if there is none.
    """
    operands = _pieces(bsp, recipe, x)
    prefixes = [None] * receivers.start + bsp._values.combine(_prefixes, recipe.fold, operands)
    for pid in all_others(bsp):
        if pid in receivers:
            bsp._values.send_value(bsp, pid, prefixes[pid], recipe.tag_of_piece)
    own = prefixes[bsp._pid]
    if bsp._pid == receivers.start:
        own = own.copy()  # it is a piece as it came, which the sync makes invalid
    kept = bsp._engine.queue.take_left(bsp._port.fetch)
    bsp.sync()
    receives = bsp._pid in receivers
    arrived = take_arrived(bsp, recipe.operation, range(bsp._nprocs) if receives else [], kept)
    return _joined(bsp, recipe, x, arrived, own, target) if receives else None


# -- what these have in common ----------------------------------------------------------------


def _checked_op(bsp: GroupState, operation: str, op: Any) -> Any:
    op = operations.resolve(op)
    if type(op) is np.ufunc and op.nin == 2 and op.nout == 1:
        return op
    if isinstance(op, str):
        names = ", ".join(operations.NAMED)
        raise bsp._error(
            UsageError,
            f"{operation}: op is {op!r}; names are {names}, and those of numpy's binary ufuncs",
        )
    if isinstance(op, np.ufunc) and (op.nin, op.nout) != (2, 1):
        raise bsp._error(
            UsageError,
            f"{operation}: numpy's {op.__name__} takes {op.nin} values and returns {op.nout}; "
            f"an op takes two and returns one",
        )
    if not callable(op):
        raise bsp._error(
            UsageError,
            f"{operation}: op is {op!r}; it is a binary ufunc or a function of two values",
        )
    return op


def _new_recipe(bsp: GroupState, operation: str, op: Any, x: Any) -> tuple[Recipe, Any]:
    """Check what a process contributes; return how it is combined, and its value for that."""
    bsp._check_usable()
    ufunc = _checked_op(bsp, operation, op)
    x = bsp._to_read(operation, x)
    if not isinstance(ufunc, np.ufunc) or ufunc.signature is not None:
        return _recipe(bsp, operation, Fold(ufunc, None, False), "any", 0), x
    scalar, is_known = operations.scalar_of(x), True
    if scalar is None:
        values = bsp._as_array(operation, x)
        if values.ndim == 0 and values.dtype == object:
            scalar, is_known = values.item(), False  # a Fraction, which Python combines
    if scalar is not None:
        scalar = operations.counted(scalar) if ufunc is np.add else scalar
        fold = Fold(operations.on_scalars(ufunc), ufunc, False)
        recipe = _recipe(bsp, operation, fold, SCALARS, WORD)
        if is_known:
            _remember(bsp, recipe, op, type(scalar))
        return recipe, scalar
    values = operations.counted(values) if ufunc is np.add else values
    fold = Fold(ufunc, ufunc, True)
    recipe = _recipe(bsp, operation, fold, str(values.shape), values.size * WORD)
    _remember(bsp, recipe, op, values.shape)
    return recipe, values


def _remember(bsp: GroupState, recipe: Recipe, op: Any, form: Any) -> None:
    """Let the engine find the recipe for values of this form from now on."""
    if len(bsp._values.recipes) > _MOST_FORMS:
        bsp._values.recipes.clear()
    # Others are not remembered: a function that is made anew in each call would be kept for ever.
    if type(op) in (np.ufunc, str):
        bsp._values.recipes.setdefault((recipe.operation, form), {})[op] = recipe


def _recipe(bsp: GroupState, operation: str, fold: Fold, shape: str, nbytes: int) -> Recipe:
    """Choose the way in which values of some size come together."""
    if fold.in_tree and operation != "reduce":
        way = choose(bsp.machine, nbytes, bsp._nprocs, may_be_cut=fold.elementwise)
        cut, radix = way.cut, way.radix
    else:
        cut = fold.elementwise and bsp.machine.two_stages_pay(nbytes, bsp._nprocs)
        radix = bsp._nprocs
    return Recipe(operation, fold, shape, cut, stages_of(bsp._pid, bsp._nprocs, radix))


def own_value(bsp: GroupState, recipe: Recipe, value: Any) -> Any:
    """Return the own value as it is at the call, in memory of its own."""
    if recipe.fold.elementwise:
        return value.copy()
    return value if recipe.fold.ufunc else own_copy(bsp, recipe.operation, value)


def wire(_: GroupState, recipe: Recipe, value: Any) -> Any:
    """Return a value in the form in which it is sent."""
    if recipe.shape == SCALARS and type(value) not in (float, int):
        return operations.to_wire(value)
    return value


def take_values(
    bsp: GroupState, recipe: Recipe, sources: Sequence[int], place: int, own: Any
) -> list[Any]:
    """Take the values that have come from processes, with every check there is."""
    arrived = take_messages(bsp, recipe.operation)
    _check_shapes(bsp, recipe, arrived)
    check_sources(bsp, recipe.operation, arrived, sources)
    copy = not recipe.fold.elementwise  # a function may change or keep what it is given
    values = [unwrap(bsp, arrived[pid], copy=copy) for pid in sources]
    if recipe.shape == SCALARS:
        values = [operations.from_wire(value) for value in values]
    if place >= 0:
        values.insert(place, own)
    return values


def _combined_piece(bsp: GroupState, recipe: Recipe, values: Any) -> Any:
    """Return the combination of one piece of the values of all."""
    return bsp._values.total(recipe, _pieces(bsp, recipe, values), None)


def _pieces(bsp: GroupState, recipe: Recipe, values: Any) -> list[Any]:
    """Send all others their pieces of the values; return the pieces of this process."""
    flat, mine = values.reshape(-1), bsp._pid
    for pid in all_others(bsp):
        bsp._values.send_value(bsp, pid, flat[piece_of(bsp, pid, flat.size)], recipe.tag)
    own = flat[piece_of(bsp, mine, flat.size)].copy()
    bsp.sync()
    return bsp._values.operands(bsp, recipe, others_of(mine, bsp._nprocs), mine, own)


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


def _given(bsp: GroupState, recipe: Recipe, target: Any, result: Any, out: Any) -> Any:
    """Return the array of the program with a result, which may stand in it already."""
    fill(bsp, recipe.operation, target, result)
    return out


def _joined(
    bsp: GroupState,
    recipe: Recipe,
    values: Any,
    arrived: dict[int, Message],
    own: Any,
    target: Array | None,
) -> Any:
    """Put the pieces of a result together, which has the form of values.

    Args:
        bsp: the group.
        recipe: of the collective.
        values: what this process contributes.
        arrived: the other pieces.
        own: the piece of this process.
        target: array of the program for the result; None if there is none.
    """
    if target is not None:
        check_form(bsp, recipe.operation, target, values.shape, own.dtype)
    whole = room_for(target, values.shape, own.dtype)
    whole[piece_of(bsp, bsp.pid, whole.size)] = own
    for pid, message in arrived.items():
        whole[piece_of(bsp, pid, whole.size)] = unwrap(bsp, message, copy=False)
    if target is not None and np.may_share_memory(whole, target):
        return target
    return whole.reshape(values.shape)[()]


def _prefixes(fold: Fold, operands: list[Any]) -> list[Any]:
    """Return the combination of the first value, of the first two, and so on."""
    count = len(operands)
    half = 1 << (count - 1).bit_length() >> 1 if fold.in_tree else count - 1
    if count < 2:
        return operands
    before = _prefixes(fold, operands[:half])
    after = _prefixes(fold, operands[half:])
    return before + [fold.whole([before[-1], each], None) for each in after]


@lru_cache(maxsize=256)
def _to_root(pid: int, nprocs: int, root: int) -> Stage:
    """Return the stage in which all processes send their values to one."""
    return Stage((), others_of(root, nprocs), root) if pid == root else Stage((root,), (), -1)


@lru_cache(maxsize=256)
def _to_later(pid: int, nprocs: int, place: int) -> Stage:
    """Return the stage in which each process sends its value to those after it.

    Args:
        pid: of the process.
        nprocs: number of processes.
        place: of its own value among those that it combines; -1 for none.
    """
    return Stage(tuple(range(pid + 1, nprocs)), tuple(range(pid)), place)


# -- the ways in which values of all processes come together, chosen by g, l and p -----------------
# Operations that are associative, but for rounding, combine the values in a binary tree over
# neighbouring ranges of pids. The tree depends on the number of processes alone: a range of n
# values is the combination of its first m, where m is the largest power of two below n, and of
# the rest. So the result is the same, bit by bit, in whatever stages the values travel.
#
# In each stage some blocks of neighbouring processes that have combined their values exchange the
# results, and are one block from then on. A block has a power of two of processes, but the last
# one may have fewer; so every block is a part of the tree.


class Stage(NamedTuple):
    """What one process does in one superstep in which blocks exchange their results."""

    receivers: tuple[int, ...]
    """The other processes to which it sends the result of its own block."""
    sources: tuple[int, ...]
    """The other processes from which it receives results, in the order of the blocks."""
    place: int
    """Which of the blocks that come together is its own, from 0 on."""


@lru_cache(maxsize=1024)
def stages_of(pid: int, nprocs: int, radix: int) -> tuple[Stage, ...]:
    """Return the stages of a process, of which there is one at least.

    Args:
        pid: the process.
        nprocs: number of processes.
        radix: how many blocks come together in a stage; a power of two.

    Source: the exchange by radix of Bruck et al. 1997, in blocks so that the order is that of the
    pids.
    """
    found, size = [_stage(pid, nprocs, 1, radix)], radix
    while size < nprocs:
        found.append(_stage(pid, nprocs, size, radix))
        size *= radix
    return tuple(found)


def _stage(pid: int, nprocs: int, size: int, radix: int) -> Stage:
    """Return what a process does where blocks of some size come together.

    The member of a block with number j hears of another block from the member with number j
    there; in a block that is shorter, since it is the last, from number j modulo its length.
    """
    own = pid // size
    first = own // radix * radix
    blocks = range(first, min(first + radix, -(-nprocs // size)))
    lengths = {block: min(size, nprocs - block * size) for block in blocks}
    member = pid - own * size
    others = [block for block in blocks if block != own]
    sources = tuple(block * size + member % lengths[block] for block in others)
    receivers = [
        block * size + other
        for block in others
        for other in range(member, lengths[block], lengths[own])
    ]
    # They begin after this process, so that not all send to the same one.
    receivers.sort(key=lambda receiver: (receiver - pid) % nprocs)
    return Stage(tuple(receivers), sources, own - first)


class Way(NamedTuple):
    """How values of some size are combined."""

    radix: int
    """How many blocks come together in a stage."""
    cut: bool
    """The values are cut into pieces, and each process combines one piece of all values."""


def choose(machine: Machine, nbytes: int, nprocs: int, *, may_be_cut: bool) -> Way:
    """Return the way in which all processes get the combination of all values.

    Args:
        machine: whose g and l decide.
        nbytes: size of a value.
        nprocs: number of processes.
        may_be_cut: the values are arrays that are combined element by element.

    Raises:
        UsageError: l is a gap.

    Source: Jarvis et al. 2002, equation 8, up to 8 processes; otherwise the least h g + l, where
    a message counts for 256 bytes at least.
    """
    if nprocs <= ONE_STAGE_MOST:
        cut = may_be_cut and machine.two_stages_pay(nbytes, nprocs)
        return Way(ONE_STAGE_MOST, cut)
    latency = machine.need("l") if may_be_cut else machine.l or 0.0
    costs = {
        radix: sum(
            count * max(nbytes, LEAST_BYTES) * machine.g + latency
            for count in most_received(nprocs, radix)
        )
        for radix in RADICES
    }
    radix = min(costs, key=costs.__getitem__)
    pieces = 2 * ((nprocs - 1) * max(nbytes / nprocs, LEAST_BYTES) * machine.g + latency)
    return Way(radix, may_be_cut and pieces < costs[radix])
