"""The collectives that combine a value of every process into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from bsplib.core.queue import Message
from bsplib.core.values import SCALARS, Fold, Recipe
from bsplib.errors import ShapeError, UsageError
from bsplib.primitives.blocks import by_process
from bsplib.primitives.collective_mail import header_of, others_of
from bsplib.primitives.contracts import shares
from bsplib.primitives.exchanges import Exchanges
from bsplib.primitives.stages import ONE_STAGE_MOST, Stage, choose, stages_of
from bsplib.transfers import operations

_WORD = 8
"""Bytes that an element counts where all processes have to choose alike."""
_MOST_FORMS = 256
"""Greatest number of forms of values whose recipes are remembered."""


_Value = TypeVar("_Value")
_Op = np.ufunc | str | Callable[[_Value, _Value], _Value]
_Listed = list[Any] | tuple[Any, ...]
"""What a ufunc combines as arrays."""


class Combinations(Exchanges):
    """Reduce, allreduce, scan and exscan."""

    @overload
    def reduce(
        self, x: _Listed, op: np.ufunc | str = ..., root: SupportsIndex = 0
    ) -> NDArray[Any] | None: ...
    @overload
    def reduce(
        self, x: _Value, op: _Op[_Value] = ..., root: SupportsIndex = 0
    ) -> _Value | None: ...
    def reduce(self, x: Any, op: Any = np.add, root: SupportsIndex = 0) -> Any:
        """Return ``x_0 op x_1 op ... op x_(p-1)`` on process ``root``.

        The values are combined in the order of the pids, element by element, so that the
        result is the same in every run, on every backend and Machine, bit by bit. Sums,
        products, minima, maxima, logical and bitwise operations combine in a binary tree:
        n values are the first m, where m is the largest power of two below n, combined with
        the rest. Any other ``op`` combines from the left; it need neither commute nor be
        associative.

        With a ufunc the values are numbers, or arrays of one shape (or what
        ``numpy.asarray`` takes). Of Python's own numbers and strings the result is one
        too: integers do not overflow, bools stay bools, strings add.

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

        Returns:
            The result on the root; None on the others.

        Raises:
            ProcessRangeError: ``root`` is no process of this group.
            UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
            ShapeError: with a ufunc, the shapes differ.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no reduce, or in one to elsewhere.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1 or 2.
        Cost: (p - 1) n g + l and (p - 1) n of computation on the root in one;
        2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two.
        Source: the second way is that of Jarvis et al. 2002, equation 7, backwards.
        """
        receiver = self._root_of("reduce", root)
        recipe = self._recipe_of("reduce", op, x)
        if recipe is None:
            recipe, x = self._new_recipe("reduce", op, x)
        if recipe.cut:
            return self._reduce_pieces(recipe, x, receiver)
        stage = _to_root(self._pid, self._nprocs, receiver)
        values = self._exchanged(recipe, stage, x)
        return self._combine(recipe.fold.whole, values) if values else None

    def _reduce_pieces(self, recipe: Recipe, x: Any, receiver: int) -> Any:
        total = self._combined_piece(recipe, x)
        if self._pid != receiver:
            self._send_value(receiver, total, recipe.tag_of_piece)
        kept = self._queue.take_left(self._port.fetch)
        self.sync()
        sources = range(self._nprocs) if self._pid == receiver else []
        arrived = self._arrived("reduce", sources, kept)
        return self._joined(x, arrived, total) if self._pid == receiver else None

    @overload
    def allreduce(self, x: _Listed, op: np.ufunc | str = ...) -> NDArray[Any]: ...
    @overload
    def allreduce(self, x: _Value, op: _Op[_Value] = ...) -> _Value: ...
    def allreduce(self, x: Any, op: Any = np.add) -> Any:
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

        Returns:
            The result, the same on all processes, bit by bit.

        Raises:
            UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
            ShapeError: with a ufunc, the shapes differ.
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
        recipe = self._recipe_of("allreduce", op, x)
        if recipe is None:
            recipe, x = self._new_recipe("allreduce", op, x)
        if recipe.cut:
            return self._allreduce_pieces(recipe, x)
        stages = recipe.stages
        total = self._combined(recipe, stages[0], x)
        if len(stages) > 1:
            kept = self._queue.take_left(self._port.fetch)
            for stage in stages[1:]:
                total = self._combined(recipe, stage, total)
            self._queue.fill(kept)
        return total

    def _allreduce_pieces(self, recipe: Recipe, x: Any) -> Any:
        total = self._combined_piece(recipe, x)
        self._send_all(self._others(), total, recipe.tag_of_piece)
        kept = self._queue.take_left(self._port.fetch)
        self.sync()
        return self._joined(x, self._arrived("allreduce", range(self._nprocs), kept), total)

    @overload
    def scan(self, x: _Listed, op: np.ufunc | str = ...) -> NDArray[Any]: ...
    @overload
    def scan(self, x: _Value, op: _Op[_Value] = ...) -> _Value: ...
    @shares("Args", "Raises", "Supersteps", "Cost", of=allreduce)
    def scan(self, x: Any, op: Any = np.add) -> Any:
        """Return ``x_0 op ... op x_pid`` on each process: the inclusive prefix.

        Order, arguments and choice are those of :meth:`allreduce`: either each process
        sends its whole value to those after it; or each process combines a piece of all
        arrays, and sends each process its prefix; or blocks exchange their results in stages.

        Returns:
            The combination of the values of this process and of those before it.
        """
        recipe = self._recipe_of("scan", op, x)
        if recipe is None:
            recipe, x = self._new_recipe("scan", op, x)
        if recipe.cut:
            return self._scan_pieces(recipe, x, range(self._nprocs))
        if self._nprocs > ONE_STAGE_MOST and recipe.fold.in_tree:
            return self._scan_in_stages(recipe, x, x)
        values = self._exchanged(recipe, _to_later(self._pid, self._nprocs, self._pid), x)
        own = values.pop()
        return self._combine(recipe.fold.prefix, values, own)

    def _scan_in_stages(self, recipe: Recipe, x: Any, prefix: Any) -> Any:
        """Return the prefix of this process: in each stage its block becomes a larger one.

        Args:
            recipe: of a scan or exscan.
            x: the value of this process.
            prefix: of this process in a block of its own; None if it has none.
        """
        total, kept = x, []
        prefix = None if prefix is None else self._kept(recipe, prefix)
        for stage in recipe.stages:
            blocks = self._exchanged(recipe, stage, total)
            kept += self._queue.take_left(self._port.fetch)
            prefix = self._combine(recipe.fold.prefix, blocks[: stage.place], prefix)
            if stage is not recipe.stages[-1]:
                total = self._combine(recipe.fold.whole, blocks)
        self._queue.fill(kept)
        return prefix

    @overload
    def exscan(self, x: _Listed, op: np.ufunc | str = ...) -> NDArray[Any] | None: ...
    @overload
    def exscan(self, x: _Value, op: _Op[_Value] = ...) -> _Value | None: ...
    @shares("Args", "Raises", "Supersteps", of=allreduce)
    def exscan(self, x: Any, op: Any = np.add) -> Any:
        """Return ``x_0 op ... op x_(pid-1)`` on each process: the exclusive prefix.

        Order, arguments and choice are those of :meth:`scan`. With the
        number of elements on each process as ``x``, the result is the position of the
        first element of this process among all.

        Returns:
            The combination of the values of the processes before this one. On process 0
            the identity of ``op`` in the form of ``x`` (zeros for a sum, ones for a
            product, an empty string for a sum of strings); None where ``op`` has no
            identity, as a minimum or a function.

        Cost: (p - 1) n g + l and (p - 2) n of computation in one;
        2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two;
        as for :meth:`allreduce` in stages.
        """
        recipe = self._recipe_of("exscan", op, x)
        if recipe is None:
            recipe, x = self._new_recipe("exscan", op, x)
        if recipe.cut:
            result = self._scan_pieces(recipe, x, range(1, self._nprocs))
        elif self._nprocs > ONE_STAGE_MOST and recipe.fold.in_tree:
            result = self._scan_in_stages(recipe, x, None)
        else:
            before = self._exchanged(recipe, _to_later(self._pid, self._nprocs, -1), x)
            result = self._combine(recipe.fold.prefix, before, None)
        if self._pid == 0:
            return operations.identity(recipe.fold.ufunc, x) if recipe.fold.ufunc else None
        return result

    def _scan_pieces(self, recipe: Recipe, x: Any, receivers: range) -> Any:
        """Combine one piece of all values; send others the pieces of their prefixes.

        Args:
            recipe: of a scan, or of an exscan, of which process 0 receives nothing.
            x: the value of this process.
            receivers: the processes that have a prefix; on others None is returned.
        """
        operands = self._pieces(recipe, x)
        prefixes = [None] * receivers.start + self._combine(_prefixes, recipe.fold, operands)
        for pid in self._others():
            if pid in receivers:
                self._send_value(pid, prefixes[pid], recipe.tag_of_piece)
        own = prefixes[self._pid]
        if self._pid == receivers.start:
            own = own.copy()  # it is a piece as it came, which the sync makes invalid
        kept = self._queue.take_left(self._port.fetch)
        self.sync()
        receives = self._pid in receivers
        arrived = self._arrived(recipe.operation, range(self._nprocs) if receives else [], kept)
        return self._joined(x, arrived, own) if receives else None

    # -- what these have in common ----------------------------------------------------------------

    def _checked_op(self, operation: str, op: Any) -> Any:
        op = operations.resolve(op)
        if type(op) is np.ufunc and op.nin == 2 and op.nout == 1:
            return op
        if isinstance(op, str):
            names = ", ".join(operations.NAMED)
            raise self._error(
                UsageError,
                f"{operation}: op is {op!r}; names are {names}, and those of numpy's binary ufuncs",
            )
        if isinstance(op, np.ufunc) and (op.nin, op.nout) != (2, 1):
            raise self._error(
                UsageError,
                f"{operation}: numpy's {op.__name__} takes {op.nin} values and returns {op.nout}; "
                f"an op takes two and returns one",
            )
        if not callable(op):
            raise self._error(
                UsageError,
                f"{operation}: op is {op!r}; it is a binary ufunc or a function of two values",
            )
        return op

    def _new_recipe(self, operation: str, op: Any, x: Any) -> tuple[Recipe, Any]:
        """Check what a process contributes; return how it is combined, and its value for that."""
        self._check_usable()
        ufunc = self._checked_op(operation, op)
        x = self._to_read(operation, x)
        if not isinstance(ufunc, np.ufunc) or ufunc.signature is not None:
            return self._recipe(operation, Fold(ufunc, None, False), "any", 0), x
        scalar = operations.scalar_of(x)
        if scalar is not None:
            fold = Fold(operations.on_scalars(ufunc), ufunc, False)
            recipe = self._recipe(operation, fold, SCALARS, _WORD)
            self._remember(recipe, op, type(scalar))
            return recipe, scalar
        values = self._as_array(operation, x)
        fold = Fold(ufunc, ufunc, True)
        recipe = self._recipe(operation, fold, str(values.shape), values.size * _WORD)
        self._remember(recipe, op, values.shape)
        return recipe, values

    def _remember(self, recipe: Recipe, op: Any, form: Any) -> None:
        """Let the core find the recipe for values of this form from now on."""
        if len(self._recipes) > _MOST_FORMS:
            self._recipes.clear()
        if type(op) in (np.ufunc, str):
            self._recipes.setdefault((recipe.operation, form), {})[op] = recipe

    def _recipe(self, operation: str, fold: Fold, shape: str, nbytes: int) -> Recipe:
        """Choose the way in which values of some size come together."""
        if fold.in_tree and operation != "reduce":
            way = choose(self.machine, nbytes, self._nprocs, may_be_cut=fold.elementwise)
            cut, radix = way.cut, way.radix
        else:
            cut = fold.elementwise and self.machine.two_stages_pay(nbytes, self._nprocs)
            radix = self._nprocs
        return Recipe(operation, fold, shape, cut, stages_of(self._pid, self._nprocs, radix))

    def _kept(self, recipe: Recipe, value: Any) -> Any:
        """Return the own value as it is at the call, in memory of its own."""
        if recipe.fold.elementwise:
            return value.copy()
        return value if recipe.fold.ufunc else self._own(recipe.operation, value)

    def _wire(self, recipe: Recipe, value: Any) -> Any:
        """Return a value in the form in which it is sent."""
        if recipe.shape == SCALARS and type(value) not in (float, int):
            return operations.to_wire(value)
        return value

    def _take_slowly(
        self, recipe: Recipe, sources: Sequence[int], place: int, own: Any
    ) -> list[Any]:
        """Take the values that have come from processes, with every check there is."""
        arrived = self._taken(recipe.operation)
        self._check_shapes(recipe, arrived)
        self._check_sources(recipe.operation, arrived, sources)
        copy = not recipe.fold.elementwise  # a function may change or keep what it is given
        values = [self._unwrap(arrived[pid], copy=copy) for pid in sources]
        if recipe.shape == SCALARS:
            values = [operations.from_wire(value) for value in values]
        if place >= 0:
            values.insert(place, own)
        return values

    def _combined_piece(self, recipe: Recipe, values: Any) -> Any:
        """Return the combination of one piece of the values of all."""
        return self._combine(recipe.fold.whole, self._pieces(recipe, values))

    def _pieces(self, recipe: Recipe, values: Any) -> list[Any]:
        """Send all others their pieces of the values; return the pieces of this process."""
        flat, mine = values.reshape(-1), self._pid
        for pid in self._others():
            self._send_value(pid, flat[self._piece(pid, flat.size)], recipe.tag)
        own = flat[self._piece(mine, flat.size)].copy()
        self.sync()
        return self._operands(recipe, others_of(mine, self._nprocs), mine, own)

    def _check_shapes(self, recipe: Recipe, arrived: dict[int, Message]) -> None:
        """Raise where the shapes of the values that have come differ."""
        shape = recipe.shape
        silent = recipe.cut and len(arrived) + 1 < self._nprocs
        if not silent and _are_alike(shape, arrived):
            return
        shapes = {pid: header_of(message) for pid, message in arrived.items()}
        shapes[self._pid] = shape
        if len(shapes) < self._nprocs:
            # A process that has all shapes raises in this superstep. Its error says more, and
            # run raises the error of the lowest superstep: this process waits for the next.
            self.sync()
        if len(set(shapes.values())) > 1:
            words = by_process(shapes)
            raise self._error(ShapeError, f"{recipe.operation}: the shapes of x differ: {words}")

    def _combine(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Combine operands. Virtual time counts this as computation: it overrides the method."""
        return function(*operands)

    def _joined(self, values: Any, arrived: dict[int, Message], own: Any) -> Any:
        """Put the pieces of a result together, which has the form of values."""
        whole = np.empty(values.size, own.dtype)
        whole[self._piece(self.pid, whole.size)] = own
        for pid, message in arrived.items():
            whole[self._piece(pid, whole.size)] = self._unwrap(message, copy=False)
        return whole.reshape(values.shape)[()]


def _prefixes(fold: Fold, operands: list[Any]) -> list[Any]:
    """Return the combination of the first value, of the first two, and so on."""
    count = len(operands)
    half = 1 << (count - 1).bit_length() >> 1 if fold.in_tree else count - 1
    if count < 2:
        return operands
    before = _prefixes(fold, operands[:half])
    after = _prefixes(fold, operands[half:])
    return before + [fold.whole([before[-1], each]) for each in after]


def _are_alike(shape: str, arrived: dict[int, Message]) -> bool:
    """Tell whether all values that have come are of a shape."""
    for message in arrived.values():  # noqa: SIM110  # a generator takes twice the time
        if header_of(message) != shape:
            return False
    return True


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
