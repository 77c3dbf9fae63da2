"""Reads what the slots of a meeting have for one process.

All processes have posted, and the caller has put a fence after the loads of their words.
"""

from __future__ import annotations

from typing import Any

from bsplib.backends.base import Arrivals, Arrived
from bsplib.backends.parcels import LonePut, Parcel
from bsplib.backends.shm.control import INDEX, STAMP
from bsplib.backends.shm.layout import (
    RECEIVER_SHIFT,
    inline_to,
    is_inline,
    lone_put_to,
    open_row,
    read_inline,
    read_lone_put,
)
from bsplib.backends.shm.segment import Segment


class Inbox:
    """Reads the slots of a meeting for one process.

    Args:
        segment: shared memory of the run.
        pid: this process, in the group.
        nprocs: number of processes of the group.
    """

    def __init__(self, segment: Segment, pid: int, nprocs: int) -> None:
        self._segment = segment
        self._control = segment.control
        self._pid = pid
        self._nprocs = nprocs
        self._inline_to_me = inline_to(pid) >> RECEIVER_SHIFT
        self._lone_put_to_me = lone_put_to(pid) >> RECEIVER_SHIFT

    def latest(self, stamp: int, slots: list[int]) -> int:
        """Return the latest of this process's own stamp and those in the slots of others."""
        control = self._control
        for slot in slots:
            other = control[slot + STAMP]
            if other > stamp:  # noqa: PLR1730  # faster than a call of max
                stamp = other
        return stamp

    def lone_puts(self, mine: int, slots: list[int]) -> list[LonePut] | Arrivals:
        """Read the lone puts for this process; do as :meth:`collect` if there is anything else.

        Args:
            mine: slot of this process.
            slots: slots of the others, by pid.
        """
        control, lone_put_to_me = self._control, self._lone_put_to_me
        note, lone_puts = control[mine] | 1, []
        for slot in slots:
            if control[slot] | 1 != note:
                return self.collect(mine, slots)
            if control[slot] & 1:
                receiver = control[slot + INDEX] >> RECEIVER_SHIFT
                if receiver == lone_put_to_me:
                    lone_puts.append(read_lone_put(self._segment, slot))
                elif receiver == self._inline_to_me or not is_inline(control[slot + INDEX]):
                    return self.collect(mine, slots)
        return lone_puts

    def collect(self, mine: int, slots: list[int]) -> Arrivals:
        """Read all notes, the parcels for this process, and the announcements to all.

        Args:
            mine: slot of this process.
            slots: slots of the others, by pid.
        """
        control, segment, pid = self._control, self._segment, self._pid
        notes: list[int] = []
        parcels: list[Arrived] = []
        commons: list[Any] | None = None
        for source, slot in enumerate([*slots[:pid], mine, *slots[pid:]]):
            word = control[slot]
            notes.append(word >> 1 & 0x7F)
            if not word & 1:
                continue
            index = control[slot + INDEX]
            if is_inline(index):
                parcel = read_inline(segment, slot, pid)
            else:
                _, plain = open_row(segment, index, pid)
                parcel = None if plain is None else Parcel.of_plain(plain)
                _, common = open_row(segment, index, self._nprocs)
                if common is not None:
                    commons = commons or [None] * self._nprocs
                    commons[source] = common
            if parcel is not None:
                parcels.append((source, parcel))
        return notes, parcels, commons
