"""Parcels whose states are words of the scheduler, and what their readers keep of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit

from bsplib.backends.shm import parcels
from bsplib.backends.shm.control import WORD
from bsplib.backends.shm.heap import ALIGNMENT

from .history import owner_of

if TYPE_CHECKING:
    from .machine import SharedMemory

parcels.free_shared_memory = lambda: 1 << 30  # the same in all runs, whatever else there is


class _State:
    """The state of a parcel.

    Its owner looks at it whenever it can end a lease, so that this is a point. A receiver reads it
    once, behind the word that announces the parcel, and what it stores then is a point.
    """

    def __init__(self, here: SharedMemory, start: int) -> None:
        self._here = here
        self._scheduler = here.scheduler
        self._start = start
        self._byte = start - ALIGNMENT
        self._word = here.plain_view(self._byte, WORD).cast("Q")
        self._is_own = owner_of(start) == here.scheduler.pid

    def __getitem__(self, _: int) -> int:
        if self._is_own:
            self._scheduler.look(self._byte // WORD)
        else:
            self._scheduler.read(self._byte, WORD, self._word[0])
        found: int = self._word[0]
        return found

    def __setitem__(self, _: int, value: int) -> None:
        if self._here.scheduler is not self._scheduler:
            return  # the array of a process that was ended: its memory has another use now
        if not self._is_own:
            self._come_to_store(may_end=value != parcels.RETURNED)
        self._word[0] = value
        if value == parcels.RETURNED:
            self._scheduler.return_kept(self._start)

    def _come_to_store(self, *, may_end: bool) -> None:
        try:
            self._scheduler.change(self._byte // WORD)
        except GreenletExit:
            if may_end:
                raise  # not from __del__: the process ends at its next wait


class ScheduledParcels(parcels.Parcels):
    """The parcels of a process whose order is chosen.

    Args:
        here: the memory of all processes.
        context: of this process.
        least_bytes: payloads from this size on are parcels.
    """

    def __init__(self, here: SharedMemory, context: Any, least_bytes: int) -> None:
        super().__init__(context, least_bytes)
        self._here = here

    def keep(self, start: int, nbytes: int) -> Any:
        """See :meth:`Parcels.keep`."""
        kept = super().keep(start, nbytes)
        if kept is not None:
            self._here.scheduler.keep(start, nbytes, kept.tobytes())
        return kept

    def _state(self, start: int) -> Any:
        return _State(self._here, start)
