"""What a thread has used is shared out among the stretches between two readings."""

from __future__ import annotations

import mmap
import os
import threading
import time

import numpy as np
import pytest

from bsplib.core.log import HEADER_BYTES, Rows
from bsplib.recording.records import RECORD
from bsplib.sync_kinds import Kind

MS = 1_000_000


class Recorded:
    """One process whose supersteps are recorded, in real time."""

    def __init__(self, core):
        self.memory = mmap.mmap(-1, 2**16)
        self.rows = Rows(RECORD.itemsize, lambda: None)
        self.rows.use(self.memory, 0)
        traffic = Rows(29, lambda: None)
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


def test_cpu_time_belongs_to_the_part_in_which_it_was_used(recorded):
    compute()
    recorded.end()
    recorded.end(communicate=compute)
    recorded.end(Kind.END)
    comp, comm = recorded.records["comp_cpu"], recorded.records["comm_cpu"]
    assert comp[0] >= 10 * MS
    assert comp[1] < 10 * MS
    assert comm[0] < 10 * MS
    assert comm[1] >= 9 * MS


def test_time_asleep_is_neither_cpu_time_nor_a_wait_for_a_core(recorded):
    time.sleep(0.05)
    recorded.end(Kind.END)
    (record,) = recorded.records
    used = record["comp_cpu"] + max(record["comp_ready"], 0)
    # On a busy computer it waits a little for a core, too.
    assert record["arrive"] - record["start"] - used >= 40 * MS


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


def test_a_call_that_is_asleep_for_a_part_of_its_time_has_the_cpu_time_of_the_rest(recorded):
    began = time.perf_counter_ns()
    compute()
    time.sleep(0.02)
    recorded.end(Kind.END, calls_ns=time.perf_counter_ns() - began)
    (record,) = recorded.records
    assert 9 * MS <= record["comm_cpu"] < record["comm_calls"] - 10 * MS


def test_computation_before_a_call_that_sleeps_keeps_its_cpu_time(recorded):
    compute(3 * MS)
    began = time.perf_counter_ns()
    time.sleep(0.02)
    recorded.end(Kind.END, calls_ns=time.perf_counter_ns() - began)
    (record,) = recorded.records
    # Where it was ready without a core, too, that time and the computation share the CPU time.
    waited = max(record["comp_ready"], 0) + max(record["comm_ready"], 0)
    assert record["comp_cpu"] >= 2.5 * MS * 3 * MS / (3 * MS + waited)


def test_computation_that_sleeps_before_a_call_keeps_its_time_asleep(recorded):
    time.sleep(0.02)
    began = time.perf_counter_ns()
    compute(3 * MS)
    recorded.end(Kind.END, calls_ns=time.perf_counter_ns() - began)
    (record,) = recorded.records
    assert record["comp_cpu"] < record["comm_cpu"]


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


def test_short_stretches_count_as_time_on_a_core(recorded):
    for _ in range(30):
        recorded.end()
    compute()
    recorded.end(Kind.END)
    records = recorded.records[1:-1]
    computed = records["arrive"] - records["start"]
    # Another program may have had the core in one of them.
    assert np.median(records["comp_cpu"] / np.maximum(computed, 1)) >= 0.5
    assert (records["comp_cpu"] <= computed).all()
    assert (records["comm_cpu"] <= records["end"] - records["arrive"]).all()
    assert recorded.records["comp_cpu"][-1] >= 9 * MS


def test_all_parts_are_measured_at_the_end_and_none_is_longer_than_it_took(recorded):
    for number in range(200):
        if number % 50 == 0:
            time.sleep(0.001)
        recorded.end(calls_ns=10)
    recorded.end(Kind.END)
    records = recorded.records
    for part, elapsed in (
        ("comp", records["arrive"] - records["start"] - records["comm_calls"]),
        ("comm", records["end"] - records["arrive"] + records["comm_calls"]),
    ):
        used = records[f"{part}_cpu"] + np.maximum(records[f"{part}_ready"], 0)
        assert (records[f"{part}_cpu"] >= 0).all()
        assert (used <= np.maximum(elapsed, 0)).all()


def test_page_faults_belong_to_the_stretch_that_is_read(recorded):
    recorded.end()
    pages = mmap.mmap(-1, 256 * mmap.PAGESIZE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(256):
        pages[page * mmap.PAGESIZE] = 1
    compute()
    recorded.end(Kind.END)
    if recorded.usage.has_faults:
        assert recorded.records["comp_minor"][-1] >= 256
    else:
        assert (recorded.records["comp_minor"] == -1).all()


def test_in_another_thread_measuring_begins_anew(recorded):
    compute()
    other = threading.Thread(target=recorded.end)
    other.start()
    other.join()
    recorded.end(Kind.END)
    assert recorded.records["comp_cpu"][0] < 10 * MS
    assert (recorded.records["comp_cpu"] >= 0).all()


def test_a_piece_of_computation_before_a_sub_group_belongs_to_the_parent(recorded):
    compute()
    opened = time.perf_counter_ns()
    recorded.log.suspend(opened, 0)
    inside = type(recorded.log)(
        recorded.rows, recorded.rows, 1, 0, range(1), 0, opened, recorded.usage
    )
    compute()
    arrive = time.perf_counter_ns()
    inside.arrive(arrive, 0)
    inside.add_superstep(0, Kind.END, 0, arrive, arrive, arrive, 0, 0, 0)
    inside.begin(time.perf_counter_ns())
    inside.leave(recorded.log)
    compute()
    recorded.end()
    within, outside = recorded.records["comp_cpu"]
    # What was used between two readings is divided by time, in which others may have the core.
    assert 8 * MS <= within < 19 * MS
    assert outside >= 19 * MS


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


def test_the_file_of_a_thread_is_closed(recorded):
    before = len(os.listdir("/proc/self/fd"))
    recorded.usage.close()
    recorded.usage.close()
    has_file = os.path.exists("/proc/thread-self/schedstat")
    assert len(os.listdir("/proc/self/fd")) == before - has_file


def test_where_the_system_does_not_tell_the_reason_is_given(recorded):
    reasons = recorded.usage.reasons()
    assert reasons["cpu"] == ""
    assert (reasons["ready"] == "") == recorded.usage.has_waits
    assert (reasons["faults"] == "") == recorded.usage.has_faults
