"""The tables of a run in chunks, so that one chunk after another is read and then forgotten.

A long run has far more rows than a report needs at any time. :class:`RunTable` is what a run
knows of a table: how many rows it has, and where each chunk begins. Its rows come as columns,
each contiguous, which numpy processes several times as fast as the fields of a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

ROWS = 2**14
"""Rows of a chunk of a table in memory."""


class Rows(Protocol):
    """The rows of a table of a run, whose fields are whole numbers.

    They are an array, or :class:`Columns`. The types of numpy do not say that a field has whole
    numbers; without that a type checker tries each way in which arrays can be added.
    """

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, key: str) -> NDArray[np.int64]: ...

    @overload
    def __getitem__(self, key: Any) -> Any: ...

    def copy(self) -> NDArray[np.void]:
        """Return an array that can be changed."""


class Columns:
    """Successive rows of a table by their fields. It is read as an array of rows is."""

    def __init__(self, fields: dict[str, NDArray[Any]], count: int) -> None:
        """Take over arrays of ``count`` elements, by name of the field."""
        self.fields = fields
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, key: Any) -> Any:
        """Return a field by its name, or some of the rows."""
        if isinstance(key, str):
            return self.fields[key]
        chosen = {name: values[key] for name, values in self.fields.items()}
        return Columns(chosen, len(next(iter(chosen.values()))))

    def copy(self) -> Columns:
        """Return the same rows, which can be changed."""
        return Columns({name: values.copy() for name, values in self.fields.items()}, self._count)

    def row(self, position: int) -> dict[str, int]:
        """Return one row, as plain numbers by name."""
        return {name: int(values[position]) for name, values in self.fields.items()}


def joined(parts: list[Columns]) -> Columns:
    """Return the rows of several parts with the same fields; at least one."""
    if len(parts) == 1:
        return parts[0]
    names = parts[0].fields
    return Columns(
        {name: _end_to_end([part.fields[name] for part in parts]) for name in names},
        sum(map(len, parts)),
    )


def constant(value: float, count: int, dtype: Any = np.int64) -> NDArray[Any]:
    """Return an array of equal values that takes the memory of one, and cannot be changed.

    Many columns of a long run are constant. Not to write and read all their values leaves the
    caches of a core to the other columns.
    """
    one = np.array(value, dtype)
    one.setflags(write=False)
    return np.ndarray((count,), dtype, one, strides=(0,))


def _end_to_end(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate columns; where all their values are equal, the result is a constant."""
    last = columns[-1]
    if last.strides == (0,) and len(last) and all((values_of(c) == last[0]).all() for c in columns):
        return constant(last[0], sum(map(len, columns)), last.dtype)
    return np.concatenate(columns)


def values_of(column: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a column with at least one row; of a constant one its value once."""
    return column[:1] if column.strides == (0,) else column


class RunTable(ABC):
    """A table of a run."""

    dtype: np.dtype[np.void]
    bounds: list[int]
    """Positions of the first row of each chunk, and the number of all rows at the end."""

    def __len__(self) -> int:
        return self.bounds[-1]

    @abstractmethod
    def read(self, number: int, names: Iterable[str] | None = None) -> Columns:
        """Return the rows of a chunk.

        Args:
            number: of the chunk.
            names: the fields that are wanted; default: all.

        Raises:
            TraceError: the file of the table was changed.
        """

    @abstractmethod
    def whole(self) -> NDArray[np.void]:
        """Return all rows, read-only where they come from a file."""

    def chunks(self, names: Iterable[str] | None = None) -> Iterator[tuple[int, Columns]]:
        """Yield the position of the first row and the rows of one chunk after another."""
        for number, first in enumerate(self.bounds[:-1]):
            yield first, self.read(number, names)

    def pick(self, positions: NDArray[np.int64], names: Iterable[str]) -> Columns:
        """Return some rows, in the order in which their positions in the table are given."""
        wanted = tuple(names)
        found = {name: np.zeros(len(positions), self.dtype[name]) for name in wanted}
        chunk = np.searchsorted(self.bounds, positions, side="right") - 1
        order = np.argsort(chunk, kind="stable")
        for here in np.split(order, np.flatnonzero(np.diff(chunk[order])) + 1):
            if len(here) == 0:
                continue
            number = int(chunk[here[0]])
            rows = self.read(number, wanted)
            for name in wanted:
                found[name][here] = rows[name][positions[here] - self.bounds[number]]
        return Columns(found, len(positions))


class ArrayTable(RunTable):
    """A table whose rows are in memory."""

    def __init__(self, rows: NDArray[np.void]) -> None:
        self._rows = rows
        self.dtype = rows.dtype
        self.bounds = [*range(0, len(rows), ROWS), len(rows)]

    def read(self, number: int, names: Iterable[str] | None = None) -> Columns:
        rows = self._rows[self.bounds[number] : self.bounds[number + 1]]
        wanted = self.dtype.names or () if names is None else names
        return Columns({name: np.ascontiguousarray(rows[name]) for name in wanted}, len(rows))

    def whole(self) -> NDArray[np.void]:
        return self._rows


class TableField:
    """A field of a run that is a table: its rows are read when they are first asked for."""

    def __set_name__(self, owner: type[object], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, run: None, owner: type[object]) -> TableField: ...

    @overload
    def __get__(self, run: object, owner: type[object]) -> Rows: ...

    def __get__(self, run: object | None, owner: type[object]) -> Rows | TableField:
        if run is None:
            raise AttributeError(self._name)  # for a dataclass: the field has no default
        rows = run.__dict__[self._name]
        if isinstance(rows, RunTable):
            rows = run.__dict__[self._name] = rows.whole()
        whole: Rows = rows
        return whole

    def __set__(self, run: object, rows: NDArray[np.void] | RunTable | Rows) -> None:
        run.__dict__[self._name] = rows

    def table(self, run: object) -> RunTable:
        """Return the table without reading it."""
        rows = run.__dict__[self._name]
        return rows if isinstance(rows, RunTable) else ArrayTable(rows)
