"""Defects that the orders have to find, put back on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bsplib.backends.shm import heap, membership, staging
from bsplib.core import entries, meeting
from bsplib.primitives import superstep


def free_replies_at_close() -> None:
    """Let no one know of a staging buffer that has only replies to gets; free it when its group
    ends."""
    answer = superstep.Supersteps.answer

    def answer_untold(self: Any, engine: Any) -> int:
        told = engine.meeting.has_staged
        head = answer(self, engine)
        engine.meeting.has_staged = told
        return head

    def close(self: Any) -> None:
        self._give_back(self._blocks)
        self._blocks = []

    superstep.Supersteps.answer = answer_untold  # type: ignore[method-assign]
    staging.Leases.close = close  # type: ignore[method-assign]


def free_send_buffers_at_close() -> None:
    """Free the buffers of a group, that of replies too, as soon as this process has left it."""
    close = staging.Leases.close

    def close_and_free(self: Any) -> None:
        close(self)
        self._give_back(self._send_buffers)
        self._send_buffers.clear()

    staging.Leases.close = close_and_free  # type: ignore[method-assign]


def answer_in_the_next_buffer() -> None:
    """Put replies into the buffer of the next superstep, written before others have read."""
    answer = superstep.Supersteps.answer

    def answer_there(self: Any, engine: Any) -> int:
        engine.replies = engine.send_buffer
        return answer(self, engine)

    superstep.Supersteps.answer = answer_there  # type: ignore[method-assign]


def read_inline_late() -> None:
    """Leave inline entries in their cells until they are delivered, behind a further meeting."""
    entries.Arrivals.keep_inline = lambda _: None  # type: ignore[method-assign]


def free_at_the_end_of_a_superstep() -> None:
    """Free what was written for others without waiting for the next meeting."""
    end_superstep = staging.Leases.end_superstep

    def end(self: Any) -> None:
        end_superstep(self)
        self._end(lambda _: True)

    staging.Leases.end_superstep = end  # type: ignore[method-assign]


def free_before_others_have_left() -> None:
    """Take a group for one that all have left as soon as this process has left it."""
    membership.Membership.all_have_left = lambda _: True  # type: ignore[method-assign]


def use_one_buffer() -> None:
    """Write the entries of each superstep into the send buffer of the one before."""
    entries.SendBuffer.change_side = entries.SendBuffer.clear  # type: ignore[method-assign]


def take_others_for_delivered() -> None:
    """Free large memory of the last superstep without asking who has delivered it."""
    meeting.SharedMeeting.waits_for_delivery = lambda *_: True  # type: ignore[method-assign]


def end_payloads_a_meeting_early() -> None:
    """Look at once whether the receiver has kept a payload, and not when its lease ends."""
    end_superstep = staging.Leases.end_superstep

    def end(self: Any) -> None:
        lent = [start for start in self._blocks if start in self._heap._lent]
        self._blocks = [start for start in self._blocks if start not in lent]
        self._give_back(lent)
        end_superstep(self)

    staging.Leases.end_superstep = end  # type: ignore[method-assign]


def free_payloads_with_their_lease() -> None:
    """Free a payload after the next sync of its reader, although an array uses it still."""

    def release(self: Any, start: int) -> None:
        self._lent.pop(start, None)
        self._free_block(start)

    heap.Heap.release = release  # type: ignore[method-assign]


def free_payloads_after_a_run() -> None:
    """Release all memory of a process after a run of a pool, what is kept of it, too."""
    clear = heap.Heap.clear

    def clear_all(self: Any) -> None:
        self._lent.clear()
        self._kept.clear()
        clear(self)

    heap.Heap.clear = clear_all  # type: ignore[method-assign]


ALL: dict[str, Callable[[], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        free_replies_at_close,
        free_send_buffers_at_close,
        answer_in_the_next_buffer,
        read_inline_late,
        free_at_the_end_of_a_superstep,
        free_before_others_have_left,
        use_one_buffer,
        take_others_for_delivered,
        end_payloads_a_meeting_early,
        free_payloads_with_their_lease,
        free_payloads_after_a_run,
    )
}


_PAYLOADS = (
    (staging.Leases, "end_superstep"),
    (heap.Heap, "release"),
    (heap.Heap, "clear"),
)
"""What the defects of payloads that are kept replace."""


def put_back_of_payloads(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back a defect of payloads that are kept for one test."""
    for owner, name in _PAYLOADS:
        monkeypatch.setattr(owner, name, getattr(owner, name))  # is restored at its end
    ALL[defect]()
