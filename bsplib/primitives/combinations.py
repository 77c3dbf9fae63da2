"""The collectives that combine a value of every process into one."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from bsplib.core.queue import Message
from bsplib.core.values import SCALARS, Fold, Recipe
from bsplib.errors import UsageError
from bsplib.experiments.collective_costs import LEAST_BYTES, ONE_STAGE_MOST, RADICES, most_received
from bsplib.primitives.collective_mail import (
    WORD,
    all_others,
    others_of,
    own_copy,
    piece_of,
    take_arrived,
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
            total = _combined_piece(bsp, recipe, x)
            sent = [] if bsp._pid == receiver else [((receiver,), total)]
            total = _piece_by_piece(bsp, recipe, x, sent, total, bsp._pid == receiver, target)
        else:
            stage = _to_root(bsp._pid, bsp._nprocs, receiver)
            values = bsp._values.exchanged(bsp, recipe, stage, x)
            total = bsp._values.total(recipe, values, target) if values else None
        return total if target is None else _given(bsp, recipe, target, total, out)
    except BaseException as error:
        bsp._note_failure(error)
        raise


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
        if recipe.cut:
            total = _combined_piece(bsp, recipe, x)
            sent = [(all_others(bsp), total)]
            total = _piece_by_piece(bsp, recipe, x, sent, total, True, target)
        else:
            total = bsp._values.combined(bsp, recipe, x, target)
        return total if target is None else _given(bsp, recipe, target, total, out)
    except BaseException as error:
        bsp._note_failure(error)
        raise


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
    sent = [((pid,), prefixes[pid]) for pid in all_others(bsp) if pid in receivers]
    own = prefixes[bsp._pid]
    if bsp._pid == receivers.start:
        own = own.copy()  # it is a piece as it came, which the sync makes invalid
    return _piece_by_piece(bsp, recipe, x, sent, own, bsp._pid in receivers, target)


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
    fold, shape, form, x = _form_of(bsp, operation, ufunc, x)
    nbytes, nprocs = x.size * WORD if fold.elementwise else WORD, bsp._nprocs
    in_stages = fold.in_tree and operation != "reduce"
    way = _choose(bsp._terms.machine, nbytes, nprocs, fold.elementwise, in_stages)
    recipe = Recipe(operation, fold, shape, way.cut, _stages_of(bsp._pid, nprocs, way.radix))
    # Others are not remembered: a function that is made anew in each call would be kept for ever.
    if form is not None and type(op) in (np.ufunc, str):
        recipes = bsp._values.recipes
        if len(recipes) > _MOST_FORMS:
            recipes.clear()
        recipes.setdefault((operation, form), {})[op] = recipe
    return recipe, x


def _form_of(bsp: GroupState, operation: str, op: Any, x: Any) -> tuple[Fold, str, Any, Any]:
    """Return how a value is combined, its shape in words, its form, and the value for that.

    By the form the engine finds the recipe from now on; it is None where it has to be made anew.
    """
    if not isinstance(op, np.ufunc) or op.signature is not None:
        return Fold(op, None, False), "any", None, bsp._to_read(operation, x)
    scalar = operations.scalar_of(x)
    form = None if scalar is None else type(scalar)
    if scalar is None:
        x = bsp._as_array(operation, bsp._to_read(operation, x))
        if x.ndim == 0 and x.dtype == object:
            scalar = x.item()  # a Fraction, which Python combines
    if scalar is None:
        x = operations.counted(x) if op is np.add else x
        return Fold(op, op, True), str(x.shape), x.shape, x
    scalar = operations.counted(scalar) if op is np.add else scalar
    return Fold(operations.on_scalars(op), op, False), SCALARS, form and type(scalar), scalar


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
    others = others_of(mine, bsp._nprocs)
    return bsp._values.take(bsp, recipe.operation, recipe, others, mine, own, True)


def _given(bsp: GroupState, recipe: Recipe, target: Any, result: Any, out: Any) -> Any:
    """Return the array of the program with a result, which may stand in it already."""
    fill(bsp, recipe.operation, target, result)
    return out


def _piece_by_piece(
    bsp: GroupState,
    recipe: Recipe,
    x: Any,
    sent: Sequence[tuple[Sequence[int], Any]],
    own: Any,
    receives: bool,
    target: Array | None,
) -> Any:
    """Send others pieces of their results; return the result of this process from its pieces.

    Args:
        bsp: the group.
        recipe: how the values are combined.
        x: the value of this process, whose form the result has.
        sent: processes, and the piece that each of them is sent.
        own: the piece of this process.
        receives: this process has a result.
        target: array of the program for the result; None if there is none.
    """
    for receivers, piece in sent:
        bsp._values.send_all(bsp, receivers, piece, recipe.tag_of_piece)
    # Messages of the program came with the first sync; the second one would drop them.
    kept = bsp._engine.queue.take_left(bsp._port.fetch)
    bsp.sync()
    arrived = take_arrived(bsp, recipe.operation, range(bsp._nprocs) if receives else [], kept)
    if not receives:
        return None
    if target is not None:
        check_form(bsp, recipe.operation, target, x.shape, own.dtype)
    whole = room_for(target, x.shape, own.dtype)
    whole[piece_of(bsp, bsp.pid, whole.size)] = own
    for pid, message in arrived.items():
        whole[piece_of(bsp, pid, whole.size)] = unwrap(bsp, message, copy=False)
    if target is not None and np.may_share_memory(whole, target):
        return target
    return whole.reshape(x.shape)[()]


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
def _stages_of(pid: int, nprocs: int, radix: int) -> tuple[Stage, ...]:
    """Return the stages of a process, of which there is one at least.

    The member of a block with number j hears of another block from the member with number j
    there; in a block that is shorter, since it is the last, from number j modulo its length.

    Args:
        pid: the process.
        nprocs: number of processes.
        radix: how many blocks come together in a stage; a power of two, or all.

    Source: the exchange by radix of Bruck et al. 1997, in blocks so that the order is that of the
    pids.
    """
    found: list[Stage] = []
    size = 1
    while size < nprocs or not found:
        own, member = divmod(pid, size)
        first = own // radix * radix
        own_length = min(size, nprocs - own * size)
        sources: list[int] = []
        receivers: list[int] = []
        for block in range(first, min(first + radix, -(-nprocs // size))):
            if block != own:
                start = block * size
                length = min(size, nprocs - start)
                sources.append(start + member % length)
                receivers += range(start + member, start + length, own_length)
        # They begin after this process, so that not all send to the same one.
        after = bisect(receivers, pid)
        receivers = receivers[after:] + receivers[:after]
        found.append(Stage(tuple(receivers), tuple(sources), own - first))
        size *= radix
    return tuple(found)


class _Way(NamedTuple):
    """How values of some size are combined."""

    radix: int
    """How many blocks come together in a stage."""
    cut: bool
    """The values are cut into pieces, and each process combines one piece of all values."""


def _choose(machine: Machine, nbytes: int, nprocs: int, may_be_cut: bool, in_stages: bool) -> _Way:
    """Return the way in which processes get the combination of all values.

    Args:
        machine: whose g and l decide.
        nbytes: size of a value.
        nprocs: number of processes.
        may_be_cut: the values are arrays that are combined element by element.
        in_stages: all processes get it, and the values may be combined in a tree.

    Raises:
        UsageError: l is a gap.

    Source: Jarvis et al. 2002, equation 8, up to 8 processes; otherwise the least h g + l, where
    a message counts for 256 bytes at least.
    """
    if nprocs <= ONE_STAGE_MOST or not in_stages:
        return _Way(nprocs, may_be_cut and machine.two_stages_pay(nbytes, nprocs))
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
    return _Way(radix, may_be_cut and pieces < costs[radix])
