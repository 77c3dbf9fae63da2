"""What a thread has used is shared out among the stretches between two readings."""

from __future__ import annotations

import mmap
import threading
import time

import numpy as np
import pytest

from bsplib.core.log import HEADER_BYTES, Rows
from bsplib.recording.records import RECORD, TRAFFIC
from bsplib.sync_kinds import Kind

MS = 1_000_000


class Recorded:
    """One process whose supersteps are recorded, in real time."""

    def __init__(self, core):
        self.memory = mmap.mmap(-1, 2**16)
        self.rows = Rows(RECORD, lambda: None)
        self.rows.use(self.memory, 0)
        traffic = Rows(TRAFFIC, lambda: None)
        began = time.perf_counter_ns()
        self.usage = core("log").Usage(began)
        self.log = core("log").Log(self.rows, traffic, 0, 0, range(1), 0, began, self.usage)
        self.superstep = 0

    def end(self, kind=Kind.SYNC, calls_ns=0, communicate=lambda: None):
        self.log.arrive(time.perf_counter_ns(), calls_ns)
        arrive = self.log.arrived_ns
        communicate()
        end = time.perf_counter_ns()
        self.log.add_superstep(self.superstep, kind, 0, arrive, end, end, calls_ns, 0, 0)
        self.superstep += 1
        self.log.rest(time.perf_counter_ns())
        self.log.begin(time.perf_counter_ns())

    @property
    def records(self):
        content = self.memory[HEADER_BYTES : HEADER_BYTES + self.rows.count * RECORD.itemsize]
        return np.frombuffer(content, RECORD)


@pytest.fixture
def recorded(core):
    recorded = Recorded(core)
    yield recorded
    recorded.usage.close()


def compute(work_ns=10 * MS):
    """Use CPU time."""
    end = time.thread_time_ns() + work_ns
    while time.thread_time_ns() < end:
        pass


def in_another_thread(work):
    """Wait for a thread that does this."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_computation_that_waits_for_its_own_threads_has_their_cpu_time(recorded):
    """On busy cores, the first thread waits for a core in a part of the time."""
    in_another_thread(compute)
    recorded.end(Kind.END)
    (record,) = recorded.records
    assert record["comp_cpu"] >= 5 * MS
    assert recorded.usage.own_threads_ns >= 5 * MS


def test_a_thread_that_sleeps_computes_nothing_for_its_process(recorded):
    in_another_thread(lambda: time.sleep(0.02))
    recorded.end(Kind.END)
    assert recorded.usage.own_threads_ns < 10 * MS


def test_threads_that_compute_during_a_sync_are_no_computation_of_the_process(recorded):
    recorded.end(Kind.END, communicate=lambda: in_another_thread(compute))
    assert recorded.records["comp_cpu"][0] < 9 * MS
    assert recorded.usage.own_threads_ns < 9 * MS


TURNS = 50
"""Where another program takes the core meanwhile, the time on a core can only be estimated: what is
asserted below has to hold in one turn of so many."""


def test_a_call_that_is_asleep_for_a_part_of_its_time_has_the_cpu_time_of_the_rest(recorded):
    def cpu_time_is_right():
        began = time.perf_counter_ns()
        compute()
        time.sleep(0.02)
        recorded.end(calls_ns=time.perf_counter_ns() - began)
        record = recorded.records[-1]
        return 9 * MS <= record["comm_cpu"] < record["comm_calls"] - 10 * MS

    assert any(cpu_time_is_right() for _ in range(TURNS))


def test_computation_before_a_call_that_sleeps_keeps_its_cpu_time(recorded):
    def cpu_time_is_right():
        compute(3 * MS)
        began = time.perf_counter_ns()
        time.sleep(0.02)
        recorded.end(calls_ns=time.perf_counter_ns() - began)
        return recorded.records["comp_cpu"][-1] >= 2.5 * MS

    assert any(cpu_time_is_right() for _ in range(TURNS))


def test_computation_that_sleeps_before_a_call_keeps_its_time_asleep(recorded):
    def call_has_the_cpu_time():
        time.sleep(0.02)
        began = time.perf_counter_ns()
        compute(3 * MS)
        recorded.end(calls_ns=time.perf_counter_ns() - began)
        record = recorded.records[-1]
        return record["comp_cpu"] < record["comm_cpu"]

    assert any(call_has_the_cpu_time() for _ in range(TURNS))


def test_a_superstep_begins_earlier_by_a_wait_for_a_core_while_the_one_before_was_recorded(
    recorded,
):
    recorded.end()
    compute()
    now = time.perf_counter_ns()
    recorded.usage.carried_ns = 3 * MS
    recorded.log.begin(now)
    recorded.log.add_superstep(1, Kind.END, 0, now, now, now, 0, 0, 0)
    assert recorded.records["start"][1] == now - 3 * MS


def test_reading_what_was_used_is_neither_computation_nor_communication(recorded):
    compute()
    began = time.perf_counter_ns()
    recorded.log.arrive(began, 0)
    took = recorded.log.arrived_ns - began
    end = time.perf_counter_ns()
    recorded.log.add_superstep(0, Kind.SYNC, 0, recorded.log.arrived_ns, end, end, 0, 0, 0)
    (record,) = recorded.records
    assert took > 0
    assert record["recording"] == took
    assert record["arrive"] - record["start"] >= 10 * MS


def test_in_another_thread_measuring_begins_anew(recorded):
    compute()
    other = threading.Thread(target=recorded.end)
    other.start()
    other.join()
    recorded.end(Kind.END)
    assert recorded.records["comp_cpu"][0] < 10 * MS
    assert (recorded.records["comp_cpu"] >= 0).all()


def test_a_wait_for_a_core_after_the_last_record_of_a_sub_group_belongs_to_the_parent(recorded):
    opened = time.perf_counter_ns()
    inside = type(recorded.log)(
        recorded.rows, recorded.rows, 1, 0, range(1), 0, opened, recorded.usage
    )
    compute()
    now = time.perf_counter_ns()
    recorded.usage.carried_ns = 3 * MS
    inside.begin(now)
    inside.leave(recorded.log)
    recorded.end()
    assert recorded.records["sub"][0] == now - 3 * MS - opened
