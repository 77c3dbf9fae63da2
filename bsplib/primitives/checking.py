"""What ``check=True`` finds at the end of a superstep, as an observer of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from bsplib.backends.base import Port
from bsplib.core.engine import Engine
from bsplib.core.entries import Entry
from bsplib.errors import BspError
from bsplib.transfers.checker import check_overlaps
from bsplib.transfers.registry import Registry
from bsplib.transfers.watch import Watch


class Checking:
    """Compares the transfers of each superstep, and what they have to do with its arrays.

    Args:
        watch: what is known of the superstep.
        registry: the registered arrays.
        port: the process's connection to the others of the group.
        data_of: returns the data of an entry.
        fail_for_good: raises an error after which the group cannot be used.
    """

    def __init__(
        self,
        watch: Watch,
        registry: Registry,
        port: Port,
        data_of: Callable[[int, Entry], Any],
        fail_for_good: Callable[[BaseException], NoReturn],
    ) -> None:
        self._watch = watch
        self._registry = registry
        self._port = port
        self._data_of = data_of
        self._fail_for_good = fail_for_good

    def meet(self, engine: Engine) -> None:
        """Do as :meth:`finish`, at the end of a superstep."""
        try:
            self.finish(engine)
        except BspError as error:
            self._fail_for_good(error)

    def finish(self, engine: Engine) -> None:
        """Report arrays of transfers that were changed, and warn of messages that were not read."""
        self._watch.verify()
        members = self._port.members
        queue = engine.queue
        lost = queue.messages[queue.next : len(queue.messages) - queue.lasting]
        unread = [members[source] for source, *_ in lost]
        if unread:
            self._watch.warn_of_unread(unread, members[engine.pid])

    def arrived(self, engine: Engine) -> None:
        """Report transfers that overlap."""
        self.compare(
            engine,
            [(source, engine.arrivals.entries_of(source)) for source in range(engine.nprocs)],
        )

    def compare(self, engine: Engine, incoming: Iterable[tuple[int, list[Entry]]]) -> None:
        """Compare what all transfers of a superstep do to the memory of this process."""
        check_overlaps(
            [*incoming], self._watch, self._registry, self._data_of, self._port.members, engine.pid
        )

    def delivered(self) -> None:
        """Begin to watch the next superstep."""
        self._watch.begin(self._registry)
