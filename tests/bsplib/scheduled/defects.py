"""Defects that the orders have to find, put back on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bsplib.backends.shm import leases, membership, port
from bsplib.core import box, meeting


def free_replies_at_close() -> None:
    """Let no one know of an outbox that has only replies to gets; free it when its group ends."""
    write_parcels = port.ShmPort._write_parcels

    def write(self: Any, *args: Any) -> int:
        told = self._meeting.has_outbox
        head = write_parcels(self, *args)
        self._meeting.has_outbox = told
        return head

    def close(self: Any) -> None:
        if self._open is not None:
            self._context.give_outbox(self._open)
            self._open = None

    port.ShmPort._write_parcels = write  # type: ignore[method-assign]
    leases.Leases.close = close  # type: ignore[method-assign]


def free_at_the_end_of_a_superstep() -> None:
    """Free what was written for others without waiting for the next meeting."""
    end_superstep = leases.Leases.end_superstep

    def end(self: Any) -> None:
        end_superstep(self)
        self._end(lambda _: True)

    leases.Leases.end_superstep = end  # type: ignore[method-assign]


def free_before_others_have_left() -> None:
    """Take a group for one that all have left as soon as this process has left it."""
    membership.Membership.all_have_left = lambda _: True  # type: ignore[method-assign]


def use_one_box() -> None:
    """Write the records of each superstep into the box of the one before."""
    box.Box.turn = box.Box.clear  # type: ignore[method-assign]


def take_others_for_settled() -> None:
    """Free large memory of the last superstep without asking who has delivered it."""
    meeting.SharedMeeting.settles = lambda *_: True  # type: ignore[method-assign]


ALL: dict[str, Callable[[], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        free_replies_at_close,
        free_at_the_end_of_a_superstep,
        free_before_others_have_left,
        use_one_box,
        take_others_for_settled,
    )
}
