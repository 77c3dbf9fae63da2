"""Oblivious supersteps, which end as soon as a number of messages is there."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from bsplib.backends.base import Arrived, Sent
from bsplib.core.atomics import address_of
from bsplib.core.entries import amounts_of, by_receiver, entries_between
from bsplib.errors import ArgumentError, PendingTransferError, SyncMismatchError
from bsplib.primitives.state import GroupState
from bsplib.transfers.delivery import check_arrivals


def check_oblsync(bsp: GroupState, n: Any) -> int:
    """Return the number of messages that an oblsync waits for; raise if it cannot be called."""
    engine = bsp._engine
    number = _checked_number(bsp, n)
    gets = len(engine.gets)
    if gets:
        raise bsp._error(
            PendingTransferError,
            f"oblsync: {gets} {'get is' if gets == 1 else 'gets are'} pending, and only a global "
            f"sync serves {'it' if gets == 1 else 'them'}; call sync",
        )
    return number


def oblsync(bsp: GroupState, n: int, stamp: int) -> None:
    """End the superstep when ``n`` messages are there for this process."""
    engine, port = bsp._engine, bsp._port
    try:
        entries = _counted_records(bsp)
        own, mine = entries.pop(engine.pid, (0, b""))
        if own > n:
            raise SyncMismatchError(  # noqa: TRY301  # as what the port raises
                f"oblsync({n}): process {engine.pid} alone sent itself {own} messages"
            )
        arrived = port.exchange_oblivious(entries, n - own, stamp)
        lasts = engine.queue.clear()
        _deliver_sent(bsp, sorted([*arrived, (engine.pid, mine)], key=operator.itemgetter(0)))
        if lasts:
            engine.queue.merge()
    except BaseException as error:  # noqa: BLE001  # as in the engine
        bsp._fail_for_good(error)
    engine.unresolved.clear()
    port.end_superstep()
    engine.next_superstep()


def _counted_records(bsp: GroupState) -> dict[int, tuple[int, Sent]]:
    """Take the entries, by receiver, and for how many messages they count.

    An hpput that has been written already counts too, though it has no entry.
    """
    engine = bsp._engine
    send_buffer, early = engine.send_buffer, {}
    if engine.has_early:
        early = {pid: count for pid, count in enumerate(engine.early_puts) if count}
    send_buffer.unfold()
    sent = by_receiver(engine.meeting, send_buffer.complete(0), engine.nprocs)
    send_buffer.clear()
    return {
        pid: (amounts_of(sent.get(pid, b""))[1] + early.get(pid, 0), sent.get(pid, b""))
        for pid in {**sent, **early}
    }


def _deliver_sent(bsp: GroupState, arrived: Iterable[Arrived]) -> None:
    """Deliver what an oblivious superstep has brought, in order of the sources."""
    memory = [(source, np.frombuffer(sent, np.uint8)) for source, sent in arrived if len(sent)]
    spans = [(source, address_of(sent), address_of(sent) + len(sent)) for source, sent in memory]
    incoming = [(source, entries_between(at, stop)) for source, at, stop in spans]
    if bsp._checking is not None:
        bsp._checking.compare(incoming)
    for source, entries in incoming:
        check_arrivals(bsp._registry, source, entries, bsp._supersteps.data_of)
    for span in spans:
        bsp._engine.arrivals.apply(*span)


def _checked_number(bsp: GroupState, n: Any) -> int:
    try:
        number = operator.index(n)
    except TypeError:
        number = -1
    if number < 0:
        raise bsp._error(
            ArgumentError,
            f"oblsync: n is {n!r}; it is the number of messages to wait for, an integer of "
            f"0 or more",
        )
    return number
