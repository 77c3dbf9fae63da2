"""The end of a group: of ``main``, or of a sub-group."""

from __future__ import annotations

import os
from types import CodeType

from bsplib.core.kinds import MESSAGE, PLACED, STAGED_MESSAGE, STAGED_PLACED
from bsplib.core.life import OVER
from bsplib.errors import BspError, PendingTransferError
from bsplib.primitives.state import GroupState
from bsplib.sync_kinds import Kind
from bsplib.transfers.descriptions import CallSite, is_put, unpacked
from bsplib.transfers.undelivered import Pending, pending_transfers

_PLACED = (PLACED, STAGED_PLACED)
_RUN_ENDED = "its run has ended; a group is used in the run whose main was given it"
_FORKED = (
    "this process was forked from the one that runs main, to which the group belongs; hand values "
    "to that one, let it communicate, and end this one by os._exit"
)

_in_main: set[GroupState] = set()
"""The groups of runs whose ``main`` this process executes."""


def begin(bsp: GroupState) -> None:
    """Begin ``main`` in a group of the run."""
    _in_main.add(bsp)


def finish(bsp: GroupState, main: CodeType | None) -> None:
    """End the last superstep, from the last sync to the end of ``main``.

    Args:
        bsp: the group of the run.
        main: code of ``main``, to name the lines of pending transfers.
    """
    bsp._check_usable()
    check_nothing_pending(bsp, "main", main)
    bsp._engine.end(bsp, Kind.END)
    close(bsp)


def retire(bsp: GroupState, reason: str = _RUN_ENDED) -> None:
    """End the life of a group and of its open sub-groups: the run has ended."""
    _in_main.discard(bsp)
    group: GroupState | None = bsp
    while group is not None:
        group._engine.suspend(OVER, reason)
        group = group._inner


def _retire_inherited() -> None:
    for group in [*_in_main]:
        retire(group, _FORKED)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_retire_inherited)


def close(bsp: GroupState) -> None:
    """Close the connection of a group to the other processes."""
    try:
        bsp._port.close()
    except BspError as error:
        bsp._fail(error)


def check_nothing_pending(bsp: GroupState, what: str, code: CodeType | None) -> None:
    """Raise if transfers wait for a sync.

    Args:
        bsp: the group.
        what: ends.
        code: that made the transfers, to name their lines.
    """
    engine = bsp._engine
    send_buffer = engine.send_buffer
    done_at_once = engine.has_early or engine.early_gets
    if not (send_buffer.holds_inline or send_buffer.holds_more or engine.gets or done_at_once):
        return
    pending, sites = _pending(bsp)
    text = pending_transfers(pending, sites, bsp._port.members, code)
    if text is not None:
        raise bsp._error(PendingTransferError, f"{what}: {text}; sync before the end")


def _pending(bsp: GroupState) -> tuple[dict[int, Pending], list[CallSite]]:
    """Return how many transfers with each process no sync has delivered, and their calls."""
    engine = bsp._engine
    gets: dict[int, int] = {**engine.early_gets}
    sites: list[CallSite | None] = []
    for get, there, _, pid, _ in engine.gets:
        gets[pid] = gets.get(pid, 0) + 1
        sites.append(None if there else get.site)
    pending = {}
    for pid in range(engine.nprocs):
        entries = engine.own_entries(pid)
        puts = sum(is_put(kind) for kind, *_ in entries)
        if engine.has_early:
            puts += engine.early_puts[pid]
        messages = sum(kind in (MESSAGE, STAGED_MESSAGE) for kind, *_ in entries)
        pending[pid] = Pending(puts, gets.get(pid, 0), messages)
        sites += [unpacked(entry[3])[1] for entry in entries if entry[0] in _PLACED]
    return pending, [site for site in sites if site is not None]
