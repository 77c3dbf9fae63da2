"""Relations in CSV and Parquet files, and in Arrow tables, distributed in blocks, cyclically.

An empty field of a CSV file is NULL, and ``""`` the empty string. A file is written
completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.arrow import csv, pa, parquet
from bsplib.apps.sql.relation import CODE, Column, Mask, QueryError, Relation, union
from bsplib.apps.work import charge_values
from bsplib.output_file import written_whole

BLOCK = 1024
"""Rows of a block: with few rows for many processes some get a block more than others."""
FORMATS = (".csv", ".parquet")
_HEAD = 120
"""Number of characters of a library's own error that are shown."""


def scan(
    bsp: bsplib.Group,
    source: pa.Table | Path | str,
    columns: Sequence[str] | None = None,
    *,
    block: int = BLOCK,
) -> Relation:
    """Read the rows of this process: block i goes to process i mod p (``FROM``).

    Collective, with the same arguments everywhere.

    Args:
        bsp: the group.
        source: a ``.csv`` or ``.parquet`` file, or an Arrow table; of integers, floats,
            dates and strings, with NULLs. In CSV an empty field is NULL.
        columns: the columns to read; all if None.
        block: rows of a block, 1 or more.

    Raises:
        QueryError: there is no such file, it cannot be read, a column is missing, twice
            there or of another type, or a float is NaN. Nothing is ever written.

    Supersteps: 1 where there are strings, else none.
    Cost: w = O(n) to read a CSV file, O(n/p) else; h = p times the distinct strings of a
        process.
    Source: Jarvis et al. 2002, section 4: a simple block-cyclic distribution.
    """
    if block < 1:
        raise QueryError(f"scan: a block cannot have {block} rows; it has 1 or more")
    table = read_blocks(source, columns, block, bsp.pid, bsp.nprocs)

    def place_of(row: int) -> int:
        return (row // block * bsp.nprocs + bsp.pid) * block + row % block

    rows = from_arrow(table, place_of, _name_of(source))
    charge_values(bsp, rows.values)
    return share_words(bsp, rows)


def share_words(bsp: bsplib.Group, relation: Relation) -> Relation:
    """Convert strings to positions among the words of all processes: 1 superstep, or none.

    Args:
        bsp: the group.
        relation: the rows of this process, with their own words; the same columns everywhere.
    """
    mine = {name: col.words for name, col in relation.columns.items() if col.words is not None}
    if not mine:
        return relation
    told = bsp.allgather(mine)
    shared = {name: union([words[name] for words in told]) for name in mine}
    return relation.plus(
        **{name: relation[name].with_words(words) for name, words in shared.items()}
    )


def read_blocks(
    source: pa.Table | Path | str,
    columns: Sequence[str] | None,
    block: int,
    pid: int,
    nprocs: int,
) -> pa.Table:
    """Read the rows whose blocks fall to one process.

    Args:
        source: an Arrow table, a ``.csv`` file, which is read whole, or a ``.parquet`` file, of
            which only the row groups are read that hold such rows.
        columns: the columns to read; all if None.
        block: rows of a block; block i falls to process i mod p.
        pid: the process.
        nprocs: p.

    Raises:
        QueryError: there is no such file, it cannot be read, or a column is missing.
    """
    if isinstance(source, pa.Table):
        table = source
    else:
        path = Path(source)
        with _reading(path):
            if path.suffix == ".parquet":
                return _read_parquet(path, columns, block, pid, nprocs)
            table = _read_csv(path)
    check_columns(table.column_names, columns, _name_of(source))
    return blocks_of(table.select(list(columns or table.column_names)), block, pid, nprocs)


def _name_of(source: pa.Table | Path | str) -> str:
    return "the table" if isinstance(source, pa.Table) else Path(source).name


def blocks_of(table: pa.Table, block: int, pid: int, nprocs: int, first: int = 0) -> pa.Table:
    """Return the rows of a table whose blocks fall to one process.

    Args:
        table: rows in a row of a relation.
        block: as for :func:`read_blocks`.
        pid: as for :func:`read_blocks`.
        nprocs: as for :func:`read_blocks`.
        first: position of the first row in the relation.
    """
    places = np.arange(first, first + table.num_rows)
    return table.filter(pa.array(places // block % nprocs == pid))


def check_columns(there: Sequence[str], wanted: Sequence[str] | None, what: str) -> None:
    """Raise QueryError if a required column is missing, or two have the same name."""
    twice = [name for name in there if there.count(name) > 1]
    if twice:
        raise QueryError(f"{what}: two columns are named {twice[0]!r}; rename one of them")
    missing = [name for name in wanted or () if name not in there]
    if missing:
        raise QueryError(f"{what}: there is no column {missing[0]!r}; it has {', '.join(there)}")


def write_tables(tables: Iterable[pa.Table], path: Path, *, force: bool = False) -> int:
    """Write tables one after the other to a ``.csv`` or ``.parquet`` file, whole or not at all.

    Args:
        tables: of the same columns; at least one.
        path: the file; its folder must exist.
        force: replace a file that exists.

    Returns:
        The number of rows.

    Raises:
        QueryError: the file is of another kind, or cannot be written.
    """
    _check_format(path)
    kind = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
    rows = 0
    try:
        with written_whole(path, force=force) as temporary, ExitStack() as stack:
            writer = None
            for table in tables:
                writer = writer or stack.enter_context(kind(temporary, table.schema))
                writer.write_table(table)
                rows += table.num_rows
    except OSError as error:
        raise QueryError(f"{path} cannot be written: {error.strerror or _head(error)}") from None
    return rows


# -- columns and Arrow ----------------------------------------------------------------------------


def from_arrow(table: pa.Table, place_of: Callable[[int], int] = int, what: str = "") -> Relation:
    """Return the rows of an Arrow table; strings are positions among those that are here.

    Args:
        table: of integers, floats, dates and strings.
        place_of: returns where a row stands in the relation, for errors.
        what: the relation, for errors.

    Raises:
        QueryError: a column is of another type, or holds NaN.
    """
    columns = {}
    for name, chunked in zip(table.column_names, table.columns, strict=True):
        where = f"{what}: column {name!r}" if what else f"column {name!r}"
        columns[name] = _from_arrow(chunked.combine_chunks(), where)
        _refuse_nan(columns[name], place_of, where)
    return Relation(columns)


def to_arrow(relation: Relation) -> pa.Table:
    """Return an Arrow table of the rows that are here."""
    return pa.table({name: _to_arrow(column) for name, column in relation.columns.items()})


def _from_arrow(array: pa.Array, where: str) -> Column:
    kind = array.type
    valid: Mask | None = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _from_strings(array, valid, where)
    if pa.types.is_null(kind):
        return Column(np.zeros(len(array), np.int64), valid)
    if pa.types.is_date(kind):
        days = array.cast(pa.date32()).view(pa.int32())
        return Column(_filled(days).astype(np.int64).view("datetime64[D]"), valid)
    if pa.types.is_floating(kind):
        return Column(_filled(array.cast(pa.float64())), valid)
    if pa.types.is_integer(kind):
        values = _filled(array)
        if values.dtype == np.uint64 and len(values) and values.max() >= 2**63:
            raise QueryError(f"{where} holds {values.max()}, which does not fit 63 bits and a sign")
        return Column(values.astype(np.int64) if values.dtype == np.uint64 else values, valid)
    raise QueryError(f"{where} is of type {kind}; it may be integers, floats, dates or strings")


def _from_strings(array: pa.Array, valid: Mask | None, where: str) -> Column:
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    found = coded.dictionary
    if not (pa.types.is_string(found.type) or pa.types.is_large_string(found.type)):
        return _from_arrow(coded.cast(found.type), where)
    words, places = np.unique(found.to_numpy(zero_copy_only=False), return_inverse=True)
    codes = _filled(coded.indices)
    return Column(places.astype(CODE)[codes] if len(words) else codes.astype(CODE), valid, words)


def _to_arrow(column: Column) -> pa.Array:
    mask = None if column.valid is None else ~column.valid
    if column.words is None:
        return pa.array(column.values, mask=mask)
    codes = pa.array(column.values, mask=mask)
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.words, pa.string())).cast(
        pa.string()
    )


def _filled(array: pa.Array) -> NDArray[Any]:
    filled = array.fill_null(0) if array.null_count else array
    values: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def _refuse_nan(column: Column, place_of: Callable[[int], int], where: str) -> None:
    if column.kind == "float" and np.isnan(column.values).any():
        row = place_of(int(np.isnan(column.values).argmax()))
        raise QueryError(f"{where} is NaN in row {row + 1}; leave the field empty where it is NULL")


# -- files --------------------------------------------------------------------------------------


def _read_parquet(
    path: Path, columns: Sequence[str] | None, block: int, pid: int, nprocs: int
) -> pa.Table:
    parts, first = [], 0
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        names = list(file.schema_arrow.names)
        check_columns(names, columns, path.name)
        names = list(columns or names)
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if _has_rows(first, rows, block, pid, nprocs):
                table = file.read_row_group(group, names, use_threads=False)
                parts.append(blocks_of(table, block, pid, nprocs, first))
            first += rows
        schema = pa.schema([file.schema_arrow.field(name) for name in names])
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _has_rows(first: int, rows: int, block: int, pid: int, nprocs: int) -> bool:
    """Tell whether some of the rows fall to a process."""
    start, stop = first // block, (first + rows - 1) // block
    return rows > 0 and (stop - start >= nprocs or (pid - start) % nprocs <= stop - start)


def _read_csv(path: Path) -> pa.Table:
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False),
        convert_options=csv.ConvertOptions(
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            auto_dict_encode=False,
        ),
    )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what the library raises into one sentence."""
    _check_format(path)
    if not path.is_file():
        raise QueryError(f"there is no file {path}")
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise QueryError(f"{path} cannot be read: {_head(error)}") from None


def _check_format(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise QueryError(f"{path} is neither a .csv nor a .parquet file")


def _head(error: Exception) -> str:
    """Return the first line of an error, without what would be a second sentence's end."""
    return str(error).strip().partition("\n")[0][:_HEAD].rstrip(". ")
