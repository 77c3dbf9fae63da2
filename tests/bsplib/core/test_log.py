"""What a process writes down of a group, as the reader of its records finds it."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from bsplib.core.log import HEADER_BYTES, Rows
from bsplib.directions import Direction
from bsplib.recording.records import RECORD, TRAFFIC, UNMEASURED
from bsplib.sync_kinds import Kind

SECOND = 10**9
BEGAN = 5 * SECOND
"""Time 0 of the records."""


class Logged:
    """The log of process ``pid`` of a group, and what was written."""

    def __init__(self, module, pid=1, members=range(4), number=0, usage=None):
        self.memory = [mmap.mmap(-1, mmap.PAGESIZE) for _ in range(2)]
        self.tables = []
        for dtype, memory in zip((RECORD, TRAFFIC), self.memory, strict=True):
            rows = Rows(dtype.itemsize, lambda: None)
            rows.use(memory, 0)
            self.tables.append(rows)
        self.started = BEGAN + SECOND
        self.log = module.Log(*self.tables, number, pid, members, BEGAN, self.started, usage)

    def end(self, superstep=0, comm_ns=0):
        """End a superstep that began one second before, and begin the next one."""
        arrive = self.started + SECOND
        self.log.arrive(arrive, comm_ns)
        times = arrive, arrive + 1, arrive + 2
        self.log.add_superstep(superstep, Kind.SYNC, 7, *times, comm_ns, 0, 0)
        self.started = arrive + 3
        self.log.rest(self.started)
        self.log.begin(self.started)

    def read(self, number, dtype):
        rows = self.tables[number].count
        whole = self.memory[number][HEADER_BYTES : HEADER_BYTES + rows * dtype.itemsize]
        return np.frombuffer(whole, dtype)

    @property
    def supersteps(self):
        return self.read(0, RECORD)

    @property
    def traffic(self):
        return [tuple(row) for row in self.read(1, TRAFFIC).tolist()]


@pytest.fixture
def module(core):
    return core("log")


def test_times_are_counted_from_the_beginning_of_the_records(module):
    logged = Logged(module)
    for number in range(2):
        logged.end(superstep=number, comm_ns=11)
    first, second = logged.supersteps.tolist()
    assert first == (
        *(1, 0, 0, Kind.SYNC, 7),
        *(SECOND, 2 * SECOND, 2 * SECOND + 1, 2 * SECOND + 2),
        *(11, 0, 0, 0, *UNMEASURED),
    )
    assert second[5:7] == (2 * SECOND + 3, 3 * SECOND + 3)
    assert second[-3] == 1  # from the end of the first to the start of the second


def test_the_time_in_a_sub_group_belongs_to_one_superstep_of_its_parent(module):
    logged, inside = Logged(module), Logged(module)
    for _ in range(2):
        inside.log.begin(inside.started + 5)
        inside.log.leave(logged.log)
    for _ in range(2):
        logged.end()
    assert logged.supersteps["sub"].tolist() == [10, 0]


def test_traffic_belongs_to_the_superstep_that_is_written_next(module):
    logged = Logged(module)
    logged.end()
    logged.log.add_traffic(2, Direction.OUT, 80, 3)
    logged.log.add_traffic(2, Direction.IN, 8, 1)
    logged.end()
    logged.log.add_traffic(0, Direction.OUT, 0, 1)
    assert logged.traffic == [
        (1, 2, Direction.OUT, 80, 3),
        (1, 2, Direction.IN, 8, 1),
        (2, 0, Direction.OUT, 0, 1),
    ]


def test_what_a_process_sends_to_itself_stands_in_its_own_record(module):
    logged = Logged(module)
    logged.log.add_traffic(1, Direction.OUT, 80, 3)
    logged.log.add_traffic(1, Direction.IN, 8, 1)
    logged.end()
    logged.end()
    assert logged.supersteps["self_bytes"].tolist() == [88, 0]
    assert logged.supersteps["self_messages"].tolist() == [4, 0]
    assert logged.traffic == []


def test_a_partner_without_a_message_has_no_row(module):
    logged = Logged(module)
    logged.log.add_traffic(2, Direction.OUT, 0, 0)
    assert logged.traffic == []


@pytest.mark.parametrize("members", [(9, 3, 5), range(3, 6), range(8, 2, -2)])
def test_processes_of_a_group_are_written_by_their_number_in_the_run(module, members):
    logged = Logged(module, pid=2, members=members, number=6)
    logged.log.add_traffic(0, Direction.OUT, 8, 1)
    logged.log.add_traffic(1, Direction.OUT, 8, 1)
    logged.end()
    assert [partner for _, partner, *_ in logged.traffic] == [members[0], members[1]]
    (row,) = logged.supersteps
    assert (row["pid"], row["group"]) == (members[2], 6)


def test_a_time_that_no_row_can_hold_is_an_error_and_nothing_is_written(module):
    logged = Logged(module)
    with pytest.raises(OverflowError):
        logged.log.add_superstep(0, Kind.SYNC, 7, 2**70, 2**70, 2**70, 0, 0, 0)
    assert len(logged.supersteps) == 0
