"""Reads the parcels that the slots of a meeting have for one process."""

from __future__ import annotations

from typing import Any

from bsplib.backends.base import Arrivals, Arrived
from bsplib.backends.parcels import Parcel
from bsplib.backends.shm.layout import is_index, is_inline, open_row, read_inline
from bsplib.backends.shm.segment import Segment
from bsplib.core.meeting import SharedMeeting


class Inbox:
    """Reads the parcels of a meeting for one process.

    Args:
        segment: shared memory of the run.
        meeting: of the group.
        pid: this process, in the group.
        nprocs: number of processes of the group.
    """

    def __init__(self, segment: Segment, meeting: SharedMeeting, pid: int, nprocs: int) -> None:
        self._segment = segment
        self._meeting = meeting
        self._pid = pid
        self._nprocs = nprocs

    def collect(self) -> Arrivals:
        """Read all notes, the parcels for this process, and the announcements to all.

        All processes have posted, and the meeting has seen their posts.
        """
        meeting, segment, pid = self._meeting, self._segment, self._pid
        notes: list[int] = []
        parcels: list[Arrived] = []
        commons: list[Any] | None = None
        for source in range(self._nprocs):
            notes.append(meeting.note_of(source))
            head = meeting.head_of(source)
            parcel = None
            if is_inline(head):
                parcel = read_inline(segment, meeting.card_of(source) - segment.address, head, pid)
            elif is_index(head):
                _, plain = open_row(segment, head, pid)
                parcel = None if plain is None else Parcel.of_plain(plain)
                _, common = open_row(segment, head, self._nprocs)
                if common is not None:
                    commons = commons or [None] * self._nprocs
                    commons[source] = common
            if parcel is not None:
                parcels.append((source, parcel))
        return notes, parcels, commons
