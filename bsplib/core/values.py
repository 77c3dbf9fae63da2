"""The values of collectives: numbers and arrays that go to several processes, and come from them.

A collective (:mod:`bsplib.primitives.exchanges`, :mod:`bsplib.primitives.combinations`) sends
messages and ends supersteps like any program. This module does what has to be done for each of
its values. It takes what is frequent and simple, and declines everything else; then the collective,
or a method of the group, checks the value, and raises the error if there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.clock import Clock
from bsplib.core.engine import Engine
from bsplib.core.forms import (
    ARRAY,
    FLOAT64,
    INT64,
    Form,
    decode_dtype,
    form_of_array,
    head_of_collective,
)
from bsplib.core.queue import CollectiveTag
from bsplib.errors import BspError

if not cython.compiled:
    from bsplib.core.atomics import (
        FLOAT,
        INTEGER,
        address_of,
        array_at,
        copied,
        copy,
        copy_out,
        fits,
        form_of,
        is_array,
        is_boolean,
        is_of,
        is_packed,
        is_writable,
        length_of,
        nbytes_of,
        ndim_of,
        new_array,
        number_in,
        owns_memory,
        prepare,
        same_shape,
        small_integer,
        this_thread,
        write_number,
    )
prepare()

_UFUNC, _FLOAT64 = np.ufunc, np.float64  # bound once: a look-up in a module is slow

NUMBER = "number"
"""The header of a message with a number of Python's own, which travels as an array without axes."""
SCALARS = "()"
"""The header of a message with a scalar that is to be combined: the shape of all of them."""

_NUMPYS = 3
"""Beside FLOAT and INTEGER, the kind of a float64 of numpy's."""
_KINDS = {FLOAT64: FLOAT, INT64: INTEGER}
_FORM_OF_FLOAT: Form = (ARRAY, (), FLOAT64)
_FORM_OF_INTEGER: Form = (ARRAY, (), INT64)
_FORM_OF_NUMPYS: Form = (ARRAY, (1,), FLOAT64)
"""The forms of numbers. An array without axes stands for a number of Python's own."""
_SUM, _PRODUCT, _LEAST, _GREATEST = 1, 2, 3, 4
_CODES = {np.add: _SUM, np.multiply: _PRODUCT, np.minimum: _LEAST, np.maximum: _GREATEST}
_NO_LENGTH = (1 << 64) - 1
_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)
_BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
_IN_A_TREE = frozenset((*_CODES, *_LOGICAL, *_BITWISE))
"""What combines values in a tree over neighbouring ranges of pids; all else does from the left."""


class _Tags(dict[str, CollectiveTag]):
    """Tags with one header, by the name of the collective; each is made once."""

    def __init__(self, header: Any) -> None:
        self._header = header

    def __missing__(self, operation: str) -> CollectiveTag:
        tag = self[operation] = CollectiveTag(operation, self._header)
        return tag


_PLAIN, _NUMBERS = _Tags(None), _Tags(NUMBER)
"""The tags of messages with arrays, and with numbers."""


class Fold:
    """How the values of several processes, in the order of their pids, become one.

    Args:
        op: combines two values.
        ufunc: what ``op`` is or stands for; None if it is another function.
        elementwise: the values are arrays of one shape.
    """

    def __init__(self, op: Any, ufunc: Any, elementwise: bool) -> None:
        self.op = op
        self.ufunc = ufunc
        self.elementwise = elementwise
        self.counts = ufunc is np.add
        """Truth values have to be made numbers first: the sum of them is their number."""
        self.in_tree = ufunc is not None and ufunc in _IN_A_TREE
        self.keeps_dtype = self.in_tree and elementwise and ufunc not in _LOGICAL
        """The combination of arrays of one dtype has this dtype, too."""
        self._code = 0 if elementwise or ufunc is None else _CODES.get(ufunc, 0)

    def whole(self, operands: list[Any], out: Any) -> Any:
        """Combine all values, of which there is one at least. The list is used up.

        Args:
            operands: the values.
            out: array that takes the combination where there is more than one value; None for a
                new one. It has the form of the values, and the operation keeps their dtype.
        """
        count = len(operands)
        if not self.in_tree:
            total = operands[0]
            for number in range(1, count):
                total = self._two(total, operands[number], number > 1, None)
            return total
        width = 1
        while width < count:
            first = 0
            while first + width < count:
                into = out if 2 * width >= count else None  # it is the last combination
                right = operands[first + width]
                operands[first] = self._two(operands[first], right, width > 1, into)
                first += 2 * width
            width *= 2
        return operands[0]

    def prefix(self, operands: list[Any], own: Any, out: Any) -> Any:
        """Combine the values of all blocks before a block with what that block has so far.

        Args:
            operands: the values of the blocks before; the list is not changed.
            own: what the block has; None if it has nothing.
            out: as for :meth:`whole`.

        Returns:
            The combination, an array in memory of its own; None if there is nothing at all.
        """
        count = len(operands)
        if own is None and count == 1 and self.elementwise:
            return copied(operands[0])  # it may be memory of its sender
        if not self.in_tree:
            values = [*operands] if own is None else [*operands, own]
            return self.whole(values, None) if values else None
        size, first = 1, 0
        parts = []
        while 2 * size <= count:
            size *= 2
        while size:
            if first + size <= count:
                into = out if own is None and size == count else None
                parts.append(self.whole(operands[first : first + size], into))
                first += size
            size //= 2
        total = own
        while parts:
            part = parts.pop()
            into = None if parts else out
            total = part if total is None else self._two(part, total, False, into)
        return total

    def _two(self, left: Any, right: Any, ours: bool, out: Any) -> Any:
        """Combine two values.

        Args:
            left: the value of lower pids.
            right: the other one.
            ours: ``left`` was made here, and may be changed.
            out: array that takes the combination; None for a new one, or for ``left``.
        """
        if out is not None:
            return self.op(left, right, out=out)
        code = self._code
        if (
            code
            and type(left) is type(right)
            and (type(left) is float or type(left) is int or type(left) is _FLOAT64)
        ):
            if code == _SUM:
                return left + right
            if code == _PRODUCT:
                return left * right
            if left == left and right == right:  # noqa: PLR0124  # NaN differs from itself
                if code == _LEAST:
                    return right if right < left else left
                return right if right > left else left
        if not ours or not self.elementwise or not is_array(left) or left.dtype != right.dtype:
            return self.op(left, right)
        return self.op(left, right, out=left)


class Recipe:
    """How the values of one form are combined in one collective: all that is the same each time.

    Args:
        operation: name of the collective.
        fold: combines the values.
        shape: in words, the shape that the values of all processes must have; the header of
            messages with them.
        cut: the values are arrays that are cut into pieces, one for each process.
        stages: in which the values come together, where they are not cut; each is
            (receivers, sources, place).
    """

    def __init__(self, operation: str, fold: Fold, shape: str, cut: bool, stages: Any) -> None:
        self.operation = operation
        self.fold = fold
        self.shape = shape
        self.cut = cut
        self.stages = stages
        self.tag = CollectiveTag(operation, shape)
        self.tag_of_piece = CollectiveTag(operation)


def may_overlap(one: Any, other: Any) -> bool:
    """Tell whether two arrays may have an element in common, as ``numpy.may_share_memory`` does."""
    if is_array(one) and is_array(other) and is_packed(one) and is_packed(other):
        at, there = address_of(one), address_of(other)
        return at < there + nbytes_of(other) and there < at + nbytes_of(one)
    return np.may_share_memory(one, other)


class Values:
    """Sends the values of collectives, and takes those that have come.

    Args:
        engine: of the group.
        clock: of this process where its time is virtual: combining values is computation.
    """

    def __init__(self, engine: Engine, clock: Clock | None) -> None:
        self._engine = engine
        self._clock = clock
        self.began = 0
        """The superstep in which the last collective began."""
        self.recipes: dict[Any, dict[Any, Recipe]] = {}
        """Recipes by the form of the values, and then by op. A form is the name of the collective
        and the type of a number or the shape of an array. A value whose recipe is here has not to
        be checked again."""
        # The encoded heads of messages with a number that fits into 64 bits, by the tag.
        self._float_heads: dict[Any, bytes] = {}
        self._integer_heads: dict[Any, bytes] = {}
        self._numpys_heads: dict[Any, bytes] = {}
        # The head of the array with one axis that was sent last, and what it is the head of.
        self._last_form = 0
        self._last_length = 0
        self._last_tag: Any = None
        self._last_head: Any = None
        # Where the large array lies that was sent last, in memory that stays until the next sync.
        self._sent_at = 0
        # The head of a message that was taken last, and what is known of it.
        self._known_head: Any = None
        self._known_operation = self._known_header = ""
        self._known_kind = 0
        self._known_dtype: Any = None
        self._known_shape: Any = None

    def begin(self) -> None:
        """Note that a collective begins; what each of them calls first does the same."""
        self.began = self._engine.superstep

    # -- combining ----------------------------------------------------------------------------

    def recipe_of(self, operation: str, op: Any, x: Any) -> Any:
        """Return how a value is combined; None if it has to be checked first."""
        self.began = self._engine.superstep
        if this_thread() != self._engine.quick:
            return None
        if type(op) is not _UFUNC and type(op) is not str:
            return None
        if not is_array(x):
            recipes = self.recipes.get((operation, type(x)))
        elif is_packed(x):
            recipes = self.recipes.get((operation, x.shape))
        else:
            return None
        recipe: Recipe | None = None if recipes is None else recipes.get(op)
        if recipe is not None and recipe.fold.counts and is_array(x) and is_boolean(x):
            return None
        return recipe

    def combined(self, bsp: Any, recipe: Recipe, value: Any, out: Any) -> Any:
        """Return the combination of the values of all, by all stages; see :meth:`total`."""
        stages, unread = recipe.stages, []
        last = stages[len(stages) - 1]
        for stage in stages:
            is_last = stage is last
            operands = self.exchanged(bsp, recipe, stage, value)
            value = self.total(recipe, operands, out if is_last else None)
            if not is_last:  # of the program, which the next stage would drop
                unread += self._engine.queue.take_left(bsp._port.fetch)
        if unread:
            self._engine.queue.fill(unread)
        return value

    def total(self, recipe: Recipe, operands: list[Any], out: Any) -> Any:
        """Return the combination of values, in ``out`` where this has their form.

        Args:
            recipe: how they are combined.
            operands: the values; the list is used up.
            out: array of the program for the combination; None for a new one.
        """
        into = out if out is not None and self._fits(recipe, operands, out) else None
        if not self._engine.is_observed:
            return recipe.fold.whole(operands, into)
        return self.combine(recipe.fold.whole, operands, into)

    def prefix(self, recipe: Recipe, operands: list[Any], own: Any, out: Any) -> Any:
        """Return a prefix as :meth:`Fold.prefix`, in ``out`` where this has the form of it."""
        fits = out is not None and self._fits(recipe, [own, *operands], out)
        return self.combine(recipe.fold.prefix, operands, own, out if fits else None)

    def _fits(self, recipe: Recipe, operands: list[Any], out: Any) -> bool:
        """Tell whether an array has the form that a combination of arrays will have."""
        if not recipe.fold.keeps_dtype:
            return False
        for each in operands:
            if each is not None and not (
                is_array(each) and each.dtype == out.dtype and each.shape == out.shape
            ):
                return False
        return True

    def combine(self, function: Any, *operands: Any) -> Any:
        """Combine operands by a function, which is computation."""
        if self._clock is not None:
            with self._clock.computing():
                return function(*operands)
        self._engine.begin_computing()
        try:
            return function(*operands)
        finally:
            self._engine.end_computing()

    def exchanged(self, bsp: Any, recipe: Recipe, stage: Any, value: Any) -> list[Any]:
        """Exchange values with the other processes of a stage; return those of all blocks."""
        receivers, sources, place = stage
        own = value
        if recipe.fold.elementwise:
            is_copy = not is_packed(value)
            if is_copy:
                own = value = copied(value)
            self.send_all(bsp, receivers, value, recipe.tag)
            if place >= 0 and not is_copy:
                # What was sent will do where it is combined with other values before the next sync.
                own = self._as_sent(value) if sources else copied(value)
        else:
            if not (type(value) is float or type(value) is int or type(value) is _FLOAT64):
                own = bsp._own_value(recipe, value)
                value = bsp._wire(recipe, own)
            self.send_all(bsp, receivers, value, recipe.tag)
        self._engine.sync(bsp)
        views = recipe.fold.elementwise  # a function may change or keep what it is given
        return self.take(bsp, recipe.operation, recipe, sources, place, own, views)

    def root_of(self, bsp: Any, operation: str, root: Any) -> int:
        """Return the root of a collective, if this process may take part in it now."""
        self.began = self._engine.superstep
        number = small_integer(root)
        if this_thread() != self._engine.quick:
            number = -1
        if 0 <= number < self._engine.nprocs:
            return number
        checked: int = bsp._check_call(operation, root)
        return checked

    # -- sending ------------------------------------------------------------------------------

    def give(self, bsp: Any, operation: str, receivers: Any, x: Any) -> Any:
        """Send a value to several processes; return it as it is at the call.

        Args:
            bsp: the group.
            operation: the collective.
            receivers: these processes.
            x: the value.

        Returns:
            The value, which may be memory that is valid for one superstep more: after the sync
            :meth:`owned` makes it the caller's own.
        """
        self.began = self._engine.superstep
        if this_thread() == self._engine.quick:
            if type(x) is float or type(x) is int:
                self.send_all(bsp, receivers, x, _NUMBERS[operation])
                return x
            if is_array(x) and not x.dtype.hasobject:
                own = x if is_packed(x) else copied(x)
                self.send_all(bsp, receivers, own, _PLAIN[operation])
                return self._as_sent(own) if own is x else own
        return bsp._give(operation, receivers, x)

    def owned(self, given: Any) -> Any:
        """Return what was given before the last sync as the caller's own.

        The copy is made here, and not at the call, since the others read at the same time.
        """
        return copied(given) if is_array(given) and not owns_memory(given) else given

    def _as_sent(self, array: Any) -> Any:
        """Return an array that has just been sent, as it is now: the memory sent, or a copy."""
        if self._sent_at == 0:
            return copied(array)
        return array_at(array.shape, array.dtype, self._sent_at, nbytes_of(array))

    def give_parts(self, bsp: Any, operation: str, parts: list[Any], copies: bool) -> Any:
        """Send each other process its part, but None; return this process's own part.

        Args:
            bsp: the group.
            operation: the collective.
            parts: by pid.
            copies: an array of this process is copied; if not, it must not change before the
                collective has used it.

        Returns:
            None where a part has to be checked; then nothing was sent.
        """
        self.began = self._engine.superstep
        if this_thread() != self._engine.quick:
            return None
        pid, nprocs = self._engine.pid, self._engine.nprocs
        if len(parts) != nprocs:
            return None
        for part in parts:
            if not (type(part) is float or type(part) is int):
                if is_array(part) and not part.dtype.hasobject:
                    continue
                return None
        for number in range(1, nprocs):
            to = (pid + number) % nprocs  # not all send to the same process at once
            part = parts[to]
            tag = _PLAIN[operation] if is_array(part) else _NUMBERS[operation]
            self.send_all(bsp, (to,), part, tag)
        own = parts[pid]
        return copied(own) if copies and is_array(own) else own

    def send_all(self, bsp: Any, receivers: Any, value: Any, tag: Any) -> None:
        """Send one value to several processes."""
        self._sent_at = 0
        self._engine.begin_call()
        try:
            if not self._send_all_quickly(receivers, value, tag):
                for to in receivers:
                    if not self._engine.send_quickly(to, value, tag):
                        bsp._send_value(to, value, tag)
        except BspError as error:
            bsp._fail(error)
        finally:
            self._engine.end_call()

    def send_value(self, bsp: Any, to: int, value: Any, tag: Any) -> None:
        """Send a value to one process."""
        self.send_all(bsp, (to,), value, tag)

    def _send_all_quickly(self, receivers: Any, value: Any, tag: Any) -> bool:
        """Try to send a number, or a large array, which is staged once for all receivers."""
        if is_array(value):
            return is_packed(value) and self._send_array(receivers, value, tag)
        kind, heads, form = FLOAT, self._float_heads, _FORM_OF_FLOAT
        if type(value) is int:
            kind, heads, form = INTEGER, self._integer_heads, _FORM_OF_INTEGER
        elif type(value) is _FLOAT64:
            heads, form = self._numpys_heads, _FORM_OF_NUMPYS
        elif type(value) is not float:
            return False
        if not fits(kind, value):
            return False
        head = heads.get(tag)
        if head is None:
            if tag.header != SCALARS and (tag.header != NUMBER or form is _FORM_OF_NUMPYS):
                return False  # its receiver would take it for an array
            head = heads[tag] = head_of_collective(tag, form)
        for to in receivers:
            write_number(self._engine.message_room(to, head, 8), kind, value)
        return True

    def _send_array(self, receivers: Any, value: Any, tag: Any) -> bool:
        """Try to send an array; one that is large is staged once for all receivers."""
        head: Any = self._head_of(value, tag)
        if head is None or not receivers:
            return False
        nbytes = nbytes_of(value)
        if nbytes <= self._engine.most_in_buffer:
            for to in receivers:
                at = self._engine.message_room(to, head, nbytes)
                copy_out(at, address_of(value), nbytes)
            return True
        if self._is_copied_there(receivers, nbytes):
            address = self._engine.message_room(receivers[0], head, nbytes)
            copy_out(address, address_of(value), nbytes)
            self._sent_at = address
            return True
        if not self._engine.meeting.shares_memory:
            return False
        try:
            staged = self._engine.staging.reserve(nbytes, message=True)
        except BspError:  # what is declined tries again: its error names the line
            return False
        address = self._engine.meeting.address_of(staged)
        copy_out(address, address_of(value), nbytes)
        for to in receivers:
            self._engine.add_message(to, head, staged, nbytes)
        self._sent_at = address
        return True

    def _is_copied_there(self, receivers: Any, nbytes: int) -> bool:
        """Tell whether a large array goes into the buffer, which takes less time than to stage it.

        It does where there is one receiver: for several of them it is staged once.
        """
        return len(receivers) == 1 and self._engine.buffer_takes(nbytes)

    def _head_of(self, array: Any, tag: Any) -> Any:
        """Return the encoded head of a message with an array; None for an array of objects."""
        form = form_of(array)
        if form == 0:  # the names of its fields, among others, may have changed
            dtype = array.dtype
            if dtype.hasobject:
                return None
            return head_of_collective(tag, form_of_array(array.shape, dtype))
        length = length_of(array, 0) if ndim_of(array) == 1 else _NO_LENGTH
        if (
            form == self._last_form
            and length == self._last_length
            and tag is self._last_tag
            and length != _NO_LENGTH
        ):
            return self._last_head
        key = form, array.shape, tag
        head = self._engine.heads_out.get(key)
        if head is None:
            head = head_of_collective(tag, form_of_array(array.shape, array.dtype))
            self._engine.remember_head(key, head)
        self._last_form, self._last_length, self._last_tag = form, length, tag
        self._last_head = head
        return head

    # -- taking -------------------------------------------------------------------------------

    def take(
        self,
        bsp: Any,
        operation: str,
        recipe: Recipe | None,
        sources: Any,
        place: int,
        own: Any,
        views: bool,
    ) -> list[Any]:
        """Take the values that several processes have sent in a collective.

        Args:
            bsp: the group.
            operation: the collective.
            recipe: how they are combined; None where they are not, and may have any form.
            sources: these processes, by pid.
            place: where the own value stands among the others; -1 if it does not.
            own: the value of this process, as it was given.
            views: large arrays may be memory of their senders, which is valid until the next sync;
                otherwise the own value is made the caller's own, too.

        Returns:
            The values, the own one among them at its place.
        """
        if not views:
            own = self.owned(own)
        header = None if recipe is None else recipe.shape
        values: list[Any] | None = self._take_quickly(operation, header, sources, place, own, views)
        if values is None:
            values = bsp._take(operation, recipe, sources, place, own, views)
        return values

    def _take_quickly(
        self, operation: str, header: Any, sources: Any, place: int, own: Any, views: bool
    ) -> Any:
        """Try to take the values; None if anything else has come, or is left from before."""
        self._engine.begin_call()
        try:
            queue = self._engine.queue
            messages, count = queue.messages, len(sources)
            if queue.next or len(messages) != count:
                return None
            values = []
            for number in range(count):
                source, head, content = messages[number]
                if source != sources[number] or not self._knows(head, operation, header):
                    return None
                value = self._value_in(content, views)
                if value is None:
                    return None
                if number == place:
                    values.append(own)
                values.append(value)
            if place == count:
                values.append(own)
            queue.messages, queue.lasting = [], 0  # all of them were taken
            return values
        finally:
            self._engine.end_call()

    # -- into arrays of the program -----------------------------------------------------------

    def places(self, out: Any) -> Any:
        """Return the arrays for the values of all processes; None for what has to be checked.

        Args:
            out: array whose first axis has an index for each process, or a list of arrays.
        """
        nprocs = self._engine.nprocs
        if type(out) is list:
            for each in out:
                if not is_array(each) or not is_writable(each):
                    return None
            return [*out] if len(out) == nprocs else None
        if not is_array(out) or not is_writable(out):
            return None
        if ndim_of(out) == 0 or length_of(out, 0) != nprocs:
            return None
        return [out[pid, ...] for pid in range(nprocs)]  # with ... a number is a view, too

    def fill(self, targets: list[Any], values: list[Any]) -> bool:
        """Write values that are arrays into arrays of the same form.

        Args:
            targets: these arrays; none of them has memory of a value.
            values: as many; nothing is written for None.

        Returns:
            False where one of them has to be checked; then nothing was written.
        """
        count = len(values)
        for number in range(count):
            value = values[number]
            if value is not None and not self._is_like(targets[number], value):
                return False
        for number in range(count):
            value = values[number]
            if value is not None:
                copy(address_of(targets[number]), address_of(value), nbytes_of(value))
        return True

    def _is_like(self, target: Any, value: Any) -> bool:
        """Tell whether a value can be copied to an array byte by byte."""
        if not is_array(value) or not is_array(target) or not same_shape(target, value):
            return False
        if not is_packed(value) or not is_packed(target) or may_overlap(target, value):
            return False
        dtype = target.dtype
        return (is_of(value, dtype) or value.dtype == dtype) and not dtype.hasobject

    # -- one message --------------------------------------------------------------------------

    def _knows(self, head: Any, operation: str, header: Any) -> bool:
        """Tell whether a message with this head has a number or an array of a collective.

        As a side effect the attributes ``_known_...`` describe it.
        """
        is_known = head is self._known_head and header is self._known_header
        if is_known and operation is self._known_operation:
            return True
        tag, form = head[0], head[2]
        self._known_head = None
        if type(tag) is not tuple or tag[0] != operation or form[0] != "array":
            return False
        found = tag[1]
        if header is None:
            if found is not None and found != NUMBER:
                return False  # a pickle, or a piece
        elif found != header:
            return False
        if type(form[2]) is not str:
            return False  # each array gets a dtype of its own, which its reader may change
        kind = 0
        if found in (SCALARS, NUMBER):
            kind = _KINDS.get(form[2], 0)
            if form[1]:
                kind = _NUMPYS if kind == FLOAT else 0
            if kind == 0:
                return False
        self._known_kind, self._known_shape = kind, form[1]
        self._known_dtype = decode_dtype(form[2])
        self._known_head, self._known_operation, self._known_header = head, operation, header
        return True

    def _value_in(self, content: Any, views: bool) -> Any:
        """Return the number or array of a message with the head that is known."""
        if type(content) is bytes:
            kind = self._known_kind
            if kind:
                return (
                    _FLOAT64(number_in(content, FLOAT))
                    if kind == _NUMPYS
                    else number_in(content, kind)
                )
            return new_array(self._known_shape, self._known_dtype, content)
        if type(content) is bytearray:
            return np.ndarray(self._known_shape, self._known_dtype, content)
        if not self._engine.meeting.shares_memory or type(content[1]) is not int:
            return None  # it lies where only the port finds it
        address = self._engine.meeting.address_of(content[1])
        there = array_at(self._known_shape, self._known_dtype, address, content[2])
        return there if views else copied(there)
