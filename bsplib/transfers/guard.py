"""Arrays under ``check=True``: using them at the wrong time is an error.

An array that the runtime allocates may not be used once it has been freed, and the
destination of a get may not be read before the sync. A plain array cannot check this.
Under ``check=True`` programs are given a :class:`GuardedArray` instead. The :class:`AccessCheck` of
a piece of memory stores whether it may be used, and what was written there and not read since;
every access through numpy asks the check first.

An access that does not go through numpy is not noticed, such as ``memoryview(x)`` or one
through an array that ``numpy.asarray`` made earlier.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from bsplib import call_site
from bsplib.transfers.place import Array, address

Report = Callable[[bool, str], Exception]
"""Makes the error of a wrong use. Arguments: True if the memory was freed, False if a get will
write it; and the text."""

_MOST_SITES = 255
"""A site has its number in one byte: all sites from here on share this number."""


class AccessCheck:
    """Whether one piece of memory may be used, and which parts of it may be read.

    Args:
        memory: array that covers it.
        report: makes the error of a wrong use.
    """

    def __init__(self, memory: Array, report: Report) -> None:
        self._low = address(memory)
        self._nbytes = memory.nbytes
        self._report = report
        self._freed: str | None = None
        self._marks: Array | None = None
        self._sites: list[str] = []
        self._written: Array | None = None
        self._lines: dict[tuple[CodeType, int], tuple[int, str]] = {}
        """Lines that have written in this superstep: a number for the marks, and the words."""

    def covers(self, array: Array) -> bool:
        """Tell whether an array begins in this memory."""
        return not array.size or self._low <= address(array) < self._low + self._nbytes

    def free(self, how: str) -> None:
        """Make every further use an error.

        Args:
            how: text for errors: what freed the memory, and where.
        """
        self._freed = how

    def expect(self, part: Array, words: str) -> None:
        """Make reading a part of the memory an error until :meth:`settle`.

        Args:
            part: what a get will write.
            words: text of the error.
        """
        if self._marks is None:
            self._marks = np.zeros(self._nbytes, np.uint8)
        self._sites.append(words)
        self._shadow(self._marks, part)[...] = min(len(self._sites), _MOST_SITES)

    def settle(self) -> None:
        """Allow everything to be read again."""
        self._marks = None
        self._sites.clear()

    def check_use(self) -> None:
        """Raise if the memory has been freed."""
        if self._freed is not None:
            raise self._report(True, f"the array was freed by {self._freed} and is used afterwards")

    def check_read(self, part: Array, index: Any = ...) -> None:
        """Raise if elements of a part of the memory may not be read."""
        self.check_use()
        if self._written is not None and part.size and part.dtype.names is None:
            self._shadow(self._written, part)[index] = 0
        if self._marks is None or not part.size:
            return
        number = int(np.max(self._shadow(self._marks, part)[index], initial=0))
        if number:
            raise self._report(False, self._sites[number - 1])

    def note_write(self, part: Array, index: Any, value: Any) -> None:
        """Note that the program has written elements of a part.

        Zero, or one value for several elements, is what a program clears an array with before
        others put into it: nobody misses that.
        """
        if not part.size or part.dtype.names is not None:
            return
        if self._written is None:
            self._written = np.zeros(self._nbytes, np.uint8)
        marks = self._shadow(self._written, part)
        if np.ndim(value) == 0 and (marks[index].size > 1 or not value):
            marks[index] = 0
            return
        frame = sys._getframe(2)  # to look for the line of the program each time takes longer
        place = frame.f_code, frame.f_lineno
        if place not in self._lines:
            self._lines[place] = min(len(self._lines) + 1, _MOST_SITES), call_site.line()
        marks[index] = self._lines[place][0]

    def unread(self, part: Array, index: Any) -> Iterator[tuple[str, int]]:
        """Yield lines that have written elements which were not read since, and how many each."""
        if self._written is not None and part.size:
            marks = self._shadow(self._written, part)[index]
            for number, line in self._lines.values():
                if count := int(np.count_nonzero(marks == number)):
                    yield line, count

    def forget_writes(self) -> None:
        """Begin a superstep: nothing has been written in it."""
        self._written = None
        self._lines.clear()

    def _shadow(self, marks: Array, part: Array) -> Array:
        """Return the marks of a part: one for each of its elements, at its first byte."""
        return np.ndarray(part.shape, np.uint8, marks.data, address(part) - self._low, part.strides)


_METADATA = frozenset(
    ("_access", "base", "dtype", "flags", "itemsize", "nbytes", "ndim", "shape", "size", "strides")
)
"""Attributes that do not access the memory."""

_READS = frozenset(
    (
        *("all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "byteswap"),
        *("choose", "clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "data"),
        *("diagonal", "dot", "dump", "dumps", "flat", "flatten", "item", "max", "mean", "min"),
        *("nonzero", "partition", "prod", "ravel", "repeat", "round", "searchsorted", "sort"),
        *("std", "sum", "take", "tobytes", "tofile", "tolist", "trace", "var"),
    )
)
"""Attributes that read elements, or allow to read them without a check."""


class GuardedArray(np.ndarray[Any, Any]):
    """An array whose use is checked."""

    _access: AccessCheck | None

    def __array_finalize__(self, obj: Any) -> None:
        access = getattr(obj, "_access", None)
        if access is not None and not access.covers(plain(self)):
            access = None  # a copy
        self._access = access

    def __getattribute__(self, name: str) -> Any:
        if name not in _METADATA:
            access = object.__getattribute__(self, "__dict__").get("_access")
            if access is not None and not name.startswith("__array_f"):
                access.check_use()
                if name in _READS:
                    access.check_read(plain(self))
        return super().__getattribute__(name)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if self._access is not None:
            self._access.check_use()
            if not (isinstance(found, GuardedArray) and found._access is not None):
                self._access.check_read(plain(self), index)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        access = self._access
        if access is not None:
            access.check_use()
        super().__setitem__(index, readable(value))
        if access is not None:
            access.note_write(plain(self), index, value)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        operands = [readable(each) for each in inputs]
        out = more.get("out")
        if out is not None:
            more["out"] = tuple(usable(each) for each in out)
        if method == "at":
            operands[0] = usable(inputs[0])
        result = getattr(ufunc, method)(*operands, **more)
        for each in out or ():
            access = access_of(each)
            if access is not None:
                access.note_write(plain(each), ..., plain(each))
        return result if out is None else out[0] if len(out) == 1 else out

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        accesses: list[AccessCheck] = []
        result = func(*_opened(args, accesses), **_opened(kwargs, accesses))
        return _closed(result, accesses)


def _reading(name: str) -> Callable[..., Any]:
    """Return a method of arrays that reads all elements."""

    def read(self: GuardedArray, *args: Any) -> Any:
        return getattr(readable(self), name)(*args)

    return read


for _name in (
    *("__reduce_ex__", "__copy__", "__deepcopy__", "__repr__", "__str__", "__format__"),
    *("__contains__", "__bool__", "__int__", "__float__", "__complex__", "__index__"),
):
    setattr(GuardedArray, _name, _reading(_name))


def guarded(array: Array, access: AccessCheck) -> GuardedArray:
    """Return an array that asks an access check before it is used."""
    made = array.view(GuardedArray)
    made._access = access
    return made


def plain(array: Any) -> Any:
    """Return a guarded array as a plain one, without a check; anything else unchanged."""
    return np.ndarray.view(array, np.ndarray) if type(array) is GuardedArray else array


def readable(value: Any) -> Any:
    """Return a guarded array as a plain one that may be read; anything else unchanged."""
    if type(value) is not GuardedArray:
        return value
    values = plain(value)
    if value._access is not None:
        value._access.check_read(values)
    return values


def usable(value: Any) -> Any:
    """Return a guarded array as a plain one that may be written; anything else unchanged."""
    if type(value) is not GuardedArray:
        return value
    if value._access is not None:
        value._access.check_use()
    return plain(value)


def access_of(array: Any) -> AccessCheck | None:
    """Return the access check of an array; None if it has none."""
    return array._access if type(array) is GuardedArray else None


def _opened(value: Any, accesses: list[AccessCheck]) -> Any:
    """Return the arguments of a function with plain arrays in them; collect their accesses."""
    if type(value) is GuardedArray:
        if value._access is not None:
            accesses.append(value._access)
        return readable(value)
    if type(value) in (tuple, list):
        return type(value)([_opened(each, accesses) for each in value])
    if type(value) is dict:
        return {key: _opened(each, accesses) for key, each in value.items()}
    return value


def _closed(value: Any, accesses: list[AccessCheck]) -> Any:
    """Return a result in which views of guarded memory are guarded again."""
    if type(value) is np.ndarray:
        access = next((access for access in accesses if access.covers(value)), None)
        return value if access is None or value.base is None else guarded(value, access)
    if type(value) in (tuple, list):
        return type(value)([_closed(each, accesses) for each in value])
    return value
