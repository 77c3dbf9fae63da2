"""Relations come from files and go to files, and what is wrong with them is one sentence."""

from __future__ import annotations

import datetime
import decimal
import errno
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import bsplib
from bsplib.apps.sql.files import from_arrow, scan, to_arrow, write_tables
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.program import main
from bsplib.apps.sql.queries import INPUTS
from bsplib.apps.sql.relation import QueryError

TABLE = pa.table(
    {
        "i": pa.array([1, None, 3, -4, 5], pa.int64()),
        "x": pa.array([0.5, 1e-300, None, -2.0, 3.25]),
        "d": pa.array([datetime.date(2001, 2, 28), None, datetime.date(1970, 1, 1)] * 2)[:5],
        "s": pa.array(["", None, 'a, "b"', "ä\nc", " x "]),
    }
)


def scanned(bsp, source, columns=None, block=2):
    return to_arrow(scan(bsp, source, columns, block=block))


def rows(parts):
    return sorted(map(str, pa.concat_tables(parts).to_pylist()))


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("nprocs", [1, 2, 3, 7])
class TestRoundTrip:
    def test_what_was_written_is_read(self, tmp_path, form, nprocs):
        path = tmp_path / f"table.{form}"
        write_tables([TABLE.slice(0, 2), TABLE.slice(2)], path)
        parts = bsplib.run(scanned, path, nprocs=nprocs, backend="sim")
        assert rows(parts) == rows([TABLE])
        assert [path.name for path in tmp_path.iterdir()] == [f"table.{form}"]

    def test_blocks_fall_to_the_processes_in_turn(self, tmp_path, form, nprocs):
        path = tmp_path / f"table.{form}"
        write_tables([pa.table({"k": np.arange(23)})], path)
        parts = bsplib.run(scanned, path, block=3, nprocs=nprocs, backend="sim")
        for pid, part in enumerate(parts):
            assert part["k"].to_pylist() == [k for k in range(23) if k // 3 % nprocs == pid]

    def test_columns_are_read_in_the_order_they_are_named(self, tmp_path, form, nprocs):
        path = tmp_path / f"table.{form}"
        write_tables([TABLE], path)
        for part in bsplib.run(scanned, path, ["s", "i"], nprocs=nprocs, backend="sim"):
            assert part.column_names == ["s", "i"]


def test_a_parquet_file_of_many_row_groups_is_read_by_blocks(tmp_path):
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table({"k": np.arange(100)}), path, row_group_size=7)
    parts = bsplib.run(scanned, path, block=5, nprocs=3, backend="sim")
    for pid, part in enumerate(parts):
        assert part["k"].to_pylist() == [k for k in range(100) if k // 5 % 3 == pid]


def test_an_empty_field_is_null_and_an_empty_string_is_not(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('s,i\n"",1\n,2\nnull,\n', encoding="utf-8")
    (part,) = bsplib.run(scanned, path, nprocs=1, backend="sim")
    assert part.to_pydict() == {"s": ["", None, "null"], "i": [1, 2, None]}


def test_strings_are_positions_among_the_words_of_all_processes():
    table = pa.table({"s": ["b", "a", "c", "d", None]})

    def program(bsp):
        column = scan(bsp, table, block=1)["s"]
        return list(column.words), column.values[column.known()].tolist()

    words = ["a", "b", "c", "d"]
    found = bsplib.run(program, nprocs=2, backend="sim")
    assert found == [(words, [1, 2]), (words, [0, 3])]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.uint64(), pa.float32()]
)
def test_narrow_numbers_keep_their_values(kind):
    table = pa.table({"n": pa.array([0, 1, None, 100], kind)})
    assert to_arrow(from_arrow(table)).to_pydict() == table.to_pydict()


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_strings_may_be_laid_out_otherwise(kind):
    table = pa.table({"s": pa.array(["b", None, "a", "b"]).cast(kind)})
    assert to_arrow(from_arrow(table)).to_pydict() == {"s": ["b", None, "a", "b"]}


def test_a_column_of_nothing_but_null_is_read():
    table = pa.table({"n": pa.nulls(3)})
    assert to_arrow(from_arrow(table)).to_pydict() == {"n": [None] * 3}


# -- what is wrong -------------------------------------------------------------------------------


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


WRONG = {
    "missing": (None, "t.csv", "there is no file"),
    "other kind": ("a\n1\n", "t.txt", r"t\.txt is neither a \.csv nor a \.parquet file"),
    "no Parquet": (b"PAR1 of a kind", "t.parquet", r"t\.parquet cannot be read: .*Parquet"),
    "ragged": ("a,b\n1,2\n3\n", "t.csv", r"t\.csv cannot be read: .*Expected 2 columns"),
    "no text": (b"a,b\n1,\xff\xfe\n", "t.csv", r"of type binary; it may be integers, floats"),
    "empty": ("", "t.csv", r"t\.csv cannot be read: .*[Ee]mpty"),
    "NaN": ("a,b\n1,2.5\n2,nan\n", "t.csv", r"t\.csv: column 'b' is NaN in row 2; leave the"),
    "truth values": ("a\ntrue\n", "t.csv", r"column 'a' is of type bool; it may be integers"),
    "twice": ("a,a\n1,2\n", "t.csv", "two columns are named 'a'; rename one of them"),
}


@pytest.mark.parametrize("backend", ["sim", "shm"])
@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_wrong_gives_one_sentence_and_stays(tmp_path, name, backend):
    text, file, message = WRONG[name]
    path = tmp_path / file
    if text is not None:
        written(path, text)
    before = path.read_bytes() if text is not None else None
    with pytest.raises(QueryError, match=message) as caught:
        bsplib.run(scanned, path, nprocs=2, backend=backend)
    assert "\n" not in str(caught.value)
    assert not str(caught.value).endswith(".")
    assert (path.read_bytes() if text is not None else None) == before
    assert len(list(tmp_path.iterdir())) == (text is not None)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_column_that_is_missing_is_named_beside_those_that_are_there(tmp_path, form):
    path = tmp_path / f"table.{form}"
    write_tables([TABLE], path)
    with pytest.raises(QueryError, match=r"no column 'price'; it has i, x, d, s"):
        bsplib.run(scanned, path, ["i", "price"], nprocs=2, backend="sim")


def test_the_row_of_a_nan_is_that_of_the_file(tmp_path):
    values = np.zeros(40)
    values[17] = np.nan
    with pytest.raises(QueryError, match="column 'x' is NaN in row 18;"):
        bsplib.run(scanned, pa.table({"x": values}), nprocs=4, backend="sim")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([decimal.Decimal("1.5")]), "is of type decimal"),
        (pa.array([datetime.datetime(2001, 1, 1)]), "is of type timestamp"),
        (pa.array([2**63], pa.uint64()), "does not fit 63 bits and a sign"),
        (pa.array([[1]]), "is of type list"),
    ],
)
def test_columns_of_other_types_are_an_error(column, message):
    with pytest.raises(QueryError, match=message):
        from_arrow(pa.table({"c": column}))


def test_a_block_has_rows():
    with pytest.raises(QueryError, match="a block cannot have 0 rows"):
        bsplib.run(scanned, TABLE, block=0, nprocs=1, backend="sim")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_cannot_be_written_leaves_the_file_that_was_there(tmp_path, form):
    path = tmp_path / f"table.{form}"
    write_tables([TABLE], path)
    before = path.read_bytes()

    def tables():
        yield TABLE
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(QueryError, match="cannot be written: No space left on device"):
        write_tables(tables(), path, force=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(QueryError("no column")))
    assert (type(error), str(error)) == (QueryError, "no column")


# -- few rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["owner", "original", "bitonic"])
def test_more_processes_than_rows_are_no_obstacle(stage):
    source = Generator(3, items=2)
    answers = bsplib.run(main, source, stage=stage, nprocs=16, backend="sim")
    assert sum(answer.rows["TRAN"] for answer in answers) == 3
    assert sum(answer.rows["TEMP1"] for answer in answers) in (1, 2)


def test_relations_without_rows_give_relations_without_rows():
    tables = {name: to_arrow(Generator(9).relation(name)).slice(0, 0) for name in INPUTS}
    for stage in ("owner", "bitonic"):
        for answer in bsplib.run(main, tables, stage=stage, nprocs=3, backend="sim"):
            assert set(answer.rows.values()) == {0}
