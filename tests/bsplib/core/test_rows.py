"""Rows in memory, as the process that reads them finds them."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from bsplib.recording.records import RECORD, TRAFFIC
from tests.scripted import append_row

INT64 = np.iinfo(np.int64)
HEADER = 16
KINDS = {"records": RECORD, "traffic": TRAFFIC}


@pytest.fixture(params=sorted(KINDS))
def table(request, core):
    return Table(core("log"), request.param)


class Table:
    """Rows of one kind, whose memory is taken from a list."""

    def __init__(self, module, kind, capacity=3):
        self.dtype = KINDS[kind]
        self.capacity = capacity
        self.memories = []
        self.rows = module.Rows(self.dtype, self.make_room)

    def append(self, *row):
        append_row(self.rows, *row)

    def make_room(self):
        self.memories.append(self.memory(self.capacity))
        self.rows.use(self.memories[-1], 0)

    def memory(self, capacity):
        return mmap.mmap(-1, HEADER + capacity * self.dtype.itemsize)

    def row(self, number=0):
        """Return a row whose fields have different values."""
        return tuple(100 * number + field for field in range(len(self.dtype)))

    def found(self, memory=None):
        """Return the complete rows of a memory, by default of the last one."""
        memory = self.memories[-1] if memory is None else memory
        count = int.from_bytes(memory[:8], "little")
        whole = memory[HEADER : HEADER + count * self.dtype.itemsize]
        return [tuple(row) for row in np.frombuffer(whole, self.dtype).tolist()]


def limits(dtype):
    """The least and the greatest value of each field."""
    kinds = [np.iinfo(dtype[name]) for name in dtype.names]
    return tuple(kind.min for kind in kinds), tuple(kind.max for kind in kinds)


def test_each_value_goes_to_its_field(table):
    table.append(*table.row())
    assert table.found() == [table.row()]


def test_a_field_holds_every_number_of_its_dtype(table):
    for row in limits(table.dtype):
        table.append(*row)
    assert table.found() == [*limits(table.dtype)]


def test_a_row_can_be_read_as_soon_as_it_was_appended(table):
    for number in range(table.capacity):
        table.append(*table.row(number % 2))
        assert len(table.found()) == table.rows.count == number + 1
    assert table.found() == [table.row(number % 2) for number in range(table.capacity)]


def test_room_is_made_only_for_a_row_that_needs_it(table):
    for number in range(2 * table.capacity):
        table.append(*table.row())
        assert len(table.memories) == 1 + number // table.capacity
    for memory in table.memories:
        assert table.found(memory) == [table.row()] * table.capacity


def test_rows_go_on_where_larger_memory_has_the_earlier_ones(table):
    table.append(*table.row(1))
    larger = table.memory(10)
    larger[: len(table.memories[0])] = table.memories[0][:]
    table.rows.use(larger, 1)
    table.append(*table.row(0))
    assert table.found(larger) == [table.row(1), table.row(0)]
    assert table.found() == [table.row(1)]


def test_a_number_of_more_than_63_bits_is_an_error_and_leaves_the_rows_as_they_are(table):
    table.append(*table.row())
    for field in range(len(table.dtype)):
        for wrong in (INT64.min - 1, INT64.max + 1, 10**30, -(10**30)):
            row = [*table.row()]
            row[field] = wrong
            with pytest.raises(OverflowError):
                table.append(*row)
    assert table.found() == [table.row()]
    table.append(*table.row(1))
    assert table.found() == [table.row(), table.row(1)]


def test_what_make_room_raises_is_raised_and_it_is_called_again_for_the_next_row(core):
    calls = []

    def fail():
        calls.append(1)
        raise MemoryError("none")

    rows = core("log").Rows(TRAFFIC, fail)
    for _ in range(2):
        with pytest.raises(MemoryError, match="none"):
            rows.append()
    assert calls == [1, 1]
    assert rows.count == 0


def test_memory_that_is_no_longer_used_can_be_closed(table):
    table.append(*table.row())
    table.rows.use(None, 0)
    table.memories[-1].close()
    table.append(*table.row())
    assert len(table.memories) == 2


def test_a_row_without_memory_is_an_error(core):
    rows = core("log").Rows(TRAFFIC, lambda: None)
    with pytest.raises(ValueError, match="no memory for another row"):
        rows.append()


@pytest.mark.parametrize("count", [-1, 3, 4])
def test_memory_without_room_for_the_next_row_is_refused(table, count):
    with pytest.raises(ValueError, match=f"no room for row {count} of 3"):
        table.rows.use(table.memory(3), count)
    with pytest.raises(ValueError, match="no room for row 0 of 0"):
        table.rows.use(mmap.mmap(-1, HEADER), 0)
