"""The mode for tests finds memory that is used again while others may read it, in every run.

Each defect is made on purpose, in the class that owns the memory; forked processes inherit it.
"""

from __future__ import annotations

import functools
import multiprocessing

import numpy as np
import pytest

import bsplib
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.segment import Segment
from bsplib.backends.shm.staging import Leases

from ..drawn import times
from .poison import (
    PATTERN,
    Generations,
    PoisonedHeap,
    PoisonError,
    WatchedMeeting,
)
from .scheduled import defects

TIMES = times(6)
"""A process has given back what it had in a run, to be ready for the next one."""
HAS_ENDED_THE_SYNC = multiprocessing.Event()
"""A process that has sent a large message has ended the superstep."""
KEPT = list[np.ndarray]()
"""What a process of a pool has kept of the messages of its runs."""
WORDS = 4000
"""Numbers that a process gets one by one, and whose answer does not fit into an entry."""
FEW = 50
"""Numbers whose answer is an entry, but no inline entry."""
IN_STAGING_BUFFER = 20_000
"""Numbers of a message that lies in a staging buffer: too many for a send buffer, and too
few for its receiver to keep them."""
LARGE = 1 << 17
"""Numbers of a payload for which a process waits until it can use the last staging buffer again."""


@pytest.fixture(autouse=True)
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BSP_POISON", "tests.bsplib.poison")


@pytest.fixture
def segment():
    made = Segment(2)
    yield made
    made.close()


def heap_of(segment: Segment) -> PoisonedHeap:
    return PoisonedHeap(segment, segment.area(0), Generations(segment, 2))


def serve_and_leave(bsp):
    """Process 0 only serves the gets of the others, leaves first, and uses memory again."""
    with bsp.partition([bsp.nprocs]) as sub:
        x = sub.array(np.arange(1, 5))
        sub.sync()
        got = sub.get_at([0], [1], x) if sub.pid else None
        sub.sync()
    bsp.zeros(7)
    bsp.sync()
    return None if got is None else got.tolist()


def serve_much_and_leave(bsp):
    """Do as :func:`serve_and_leave` with answers that are staged."""
    with bsp.partition([bsp.nprocs]) as sub:
        x = sub.array(np.arange(WORDS))
        sub.sync()
        got = sub.get_at(0, np.arange(WORDS)[::-1], x) if sub.pid else None
        sub.sync()
    bsp.zeros(7)
    bsp.sync()
    return None if got is None else got[:2].tolist()


def send_and_put(bsp):
    """Process 0 sends a message in its staging buffer and puts a large array; process 1 reads
    it."""
    x = bsp.zeros(LARGE)
    bsp.sync()
    if bsp.pid == 0:
        bsp.send(1, np.full(IN_STAGING_BUFFER, 2.0))
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, np.full(LARGE, 3.0), x)
    total = sum(payload.sum() for _, _, payload in bsp.messages())
    bsp.sync()
    return total, x.sum()


def take_late(bsp):
    """Process 0 sends a large message; process 1 takes it after process 0 has ended."""
    if bsp.pid == 0:
        HAS_ENDED_THE_SYNC.clear()
        bsp.send(1, np.full(LARGE, 2.0))
    bsp.sync()
    if bsp.pid == 0:
        HAS_ENDED_THE_SYNC.set()
        bsp.sync()
        return None
    assert HAS_ENDED_THE_SYNC.wait(30)
    array = bsp.move()
    bsp.sync()
    return array.sum()


def keep_and_leave(bsp):
    """The arrays of large messages outlive the sub-group in which they came."""
    with bsp.partition([bsp.nprocs]) as sub:
        sub.send(1 - sub.pid, np.full(LARGE, 1.0 + sub.pid))
        sub.sync()
        array = sub.move()
    for _ in range(3):
        bsp.sync()
    return array.sum()


def keep_for_the_next_run(bsp):
    """The arrays of large messages outlive a run of a pool."""
    bsp.zeros(1)
    bsp.send(1 - bsp.pid, np.full(LARGE, 1.0 + bsp.pid))
    bsp.sync()
    KEPT.append(bsp.move())
    return [array.sum() for array in KEPT]


def put_and_leave(bsp):
    """Each process puts a number into all, by its send buffer."""
    with bsp.partition([bsp.nprocs]) as sub:
        x = sub.zeros(sub.nprocs)
        sub.sync()
        for pid in range(sub.nprocs):
            sub.put(pid, float(sub.pid), x, offset=sub.pid)
        sub.sync()
    bsp.sync()


def meet_and_leave(bsp):
    with bsp.partition([bsp.nprocs]) as sub:
        sub.sync()
        sub.sync()
    bsp.sync()


def answer_beside_an_unposted_buffer(bsp):
    """Process 1 collects entries in a send buffer that no meeting posts, answers a get, and then
    puts."""
    x = bsp.zeros(FEW)
    bsp.sync()
    if bsp.pid == 1:
        bsp.send(0, 1.0)
        bsp.send(0, 2.0)
    bsp.oblsync(2 if bsp.pid == 0 else 0)
    got = bsp.get_at(1, np.arange(FEW), x) if bsp.pid == 0 else None
    bsp.sync()
    if bsp.pid == 1:
        bsp.put(0, 1.0, x)
        bsp.put(1, 2.0, x)
    bsp.sync()
    return float(x[0]), None if got is None else got.sum()


def free_replies_at_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell the meeting of no staging buffer, and free the last one when its group ends."""
    reserve = Leases.reserve

    def unknown_to_the_meeting(self, nbytes, **_):
        start = reserve(self, nbytes)
        self._meeting.has_staged = False
        return start

    def close(self):
        self._give_back(self._blocks)
        self._blocks = []

    monkeypatch.setattr(Leases, "reserve", unknown_to_the_meeting)
    monkeypatch.setattr(Leases, "close", close)


def free_last_staging_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the last staging buffer again at once, whether it has messages and has been delivered or
    not."""
    reserve = Leases.reserve

    def reserve_without_messages(self, nbytes, **_):
        return reserve(self, nbytes)

    monkeypatch.setattr(WatchedMeeting, "waits_for_delivery", lambda *_: True, raising=False)
    monkeypatch.setattr(Leases, "reserve", reserve_without_messages)


def free_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nobody: buffers, staging buffers and blocks are free as soon as this process
    leaves."""
    close = ShmPort.close

    def close_and_free(self):
        close(self)
        self._context.reclaim_left_groups()

    monkeypatch.setattr(Membership, "all_have_left", lambda _: True)
    monkeypatch.setattr(ShmPort, "close", close_and_free)


end_payloads_a_meeting_early = functools.partial(
    defects.put_back_of_payloads, "end-payloads-a-meeting-early"
)
free_payloads_with_their_lease = functools.partial(
    defects.put_back_of_payloads, "free-payloads-with-their-lease"
)
free_payloads_after_a_run = functools.partial(
    defects.put_back_of_payloads, "free-payloads-after-a-run"
)


@pytest.mark.parametrize(
    ("program", "count", "right"),
    [
        (serve_and_leave, 3, [None, [2], [2]]),
        (serve_much_and_leave, 3, [None, [WORDS - 1, WORDS - 2], [WORDS - 1, WORDS - 2]]),
        (send_and_put, 2, [(0, 0), (2 * IN_STAGING_BUFFER, 3 * LARGE)]),
        (take_late, 2, [None, 2 * LARGE]),
        (keep_and_leave, 2, [2 * LARGE, LARGE]),
        (put_and_leave, 3, [None] * 3),
        (answer_beside_an_unposted_buffer, 2, [(1.0, 0.0), (2.0, None)]),
    ],
)
def test_a_right_program_does_the_same_as_without_the_mode(program, count, right):
    assert bsplib.run(program, nprocs=count) == right


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("defect", "program", "count", "memory"),
    [
        (free_replies_at_close, serve_much_and_leave, 3, "a payload of process 0"),
        (free_last_staging_buffer, send_and_put, 2, "(index of a post|payload) of process 0"),
        (free_all_at_once, serve_and_leave, 3, "(staged value,|cell|block) of process"),
        (
            free_all_at_once,
            put_and_leave,
            3,
            "(staged value,|cell|block) of process",
        ),
        (free_all_at_once, meet_and_leave, 3, "(cell|block) of process"),
        (end_payloads_a_meeting_early, take_late, 2, "a payload of process 0"),
        (free_payloads_with_their_lease, keep_and_leave, 2, "a payload that was kept of process"),
    ],
)
def test_memory_that_is_used_again_too_early_is_found_in_every_run(
    monkeypatch, defect, program, count, memory
):
    defect(monkeypatch)
    for _ in range(TIMES):
        with pytest.raises(PoisonError, match=memory) as caught:
            bsplib.run(program, nprocs=count)
        assert "generation" in str(caught.value)


def test_an_array_that_outlives_a_run_of_a_pool_keeps_its_memory():
    with bsplib.Pool(2) as pool:
        found = [pool.run(keep_for_the_next_run) for _ in range(3)]
    assert found == [[[2 * LARGE] * runs, [LARGE] * runs] for runs in (1, 2, 3)]


def test_memory_that_is_taken_from_such_an_array_is_found(monkeypatch):
    free_payloads_after_a_run(monkeypatch)
    with bsplib.Pool(2) as pool:
        pool.run(keep_for_the_next_run)
        with pytest.raises(PoisonError, match="a payload that was kept of process"):
            pool.run(keep_for_the_next_run)


def test_zeros_are_zero_in_memory_that_holds_the_pattern():
    def main(bsp):
        found = []
        for _ in range(3):
            with bsp.scope():
                x = bsp.zeros(100)
                found.append(float(np.abs(x).sum()))
                x[:] = 5
                bsp.sync()
        return found

    assert bsplib.run(main, nprocs=2) == [[0.0] * 3] * 2


def test_empty_memory_holds_the_pattern():
    def main(bsp):
        return bsp.empty(3, np.uint8).tolist()

    assert bsplib.run(main, nprocs=1) == [[PATTERN] * 3]


def test_a_generation_changes_when_memory_is_given_back(segment):
    heap, generations = heap_of(segment), Generations(segment, 2)
    start, is_zero = heap.allocate(200)
    alive = generations.of(start + 199)
    heap.release(start)
    assert not is_zero
    assert alive % 2 == 1
    assert generations.of(start) == generations.of(start + 199) == alive + 1


def test_memory_that_is_written_after_it_was_given_back_is_found(segment):
    heap = heap_of(segment)
    start, _ = heap.allocate(200)
    heap.release(start)
    segment.view(start + 100, 1)[0] = 7
    large, _ = heap.allocate(1 << 22)
    with pytest.raises(PoisonError, match=r"1 bytes of a block of 256 .* the first is byte 100"):
        heap.release(large)  # the first block is used again


def test_a_byte_outside_of_all_areas_is_no_memory_of_others(segment):
    with pytest.raises(PoisonError, match="no byte of the segment"):
        Generations(segment, 2).of(int.from_bytes(bytes([PATTERN]) * 7, "little"))
