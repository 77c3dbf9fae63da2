"""The end of a group: of ``main``, or of a sub-group."""

from __future__ import annotations

import dis
import os
from collections.abc import Iterable, Iterator
from types import CodeType

from bsplib.backends.members import LISTED
from bsplib.core.kinds import MESSAGE, PLACED, STAGED_MESSAGE, STAGED_PLACED
from bsplib.core.life import OVER
from bsplib.errors import PendingTransferError
from bsplib.primitives.state import GroupState
from bsplib.sync_kinds import Kind
from bsplib.transfers.descriptions import CallSite, is_put, unpacked

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


def finish_main(bsp: GroupState, main: CodeType | None) -> None:
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
    bsp._checked(bsp._port.close)


def check_nothing_pending(bsp: GroupState, what: str, code: CodeType | None) -> None:
    """Raise if transfers wait for a sync.

    Args:
        bsp: the group.
        what: ends.
        code: that made the transfers, to name their lines.
    """
    engine, members = bsp._engine, bsp._port.members
    send_buffer = engine.send_buffer
    collected = send_buffer.holds_inline or send_buffer.holds_more
    if not (collected or engine.gets or engine.has_early):
        return
    parts: list[str] = []
    used: set[str] = set()
    sites = [None if there else get.site for get, there, *_ in engine.gets]
    count = 0
    for pid in range(engine.nprocs):
        entries = engine.own_entries(pid)
        puts = sum(is_put(kind) for kind, *_ in entries)
        if engine.has_early:
            puts += engine.early_puts[pid]
        gets = sum(asked == pid for _, _, _, asked, _ in engine.gets)
        messages = sum(kind in (MESSAGE, STAGED_MESSAGE) for kind, *_ in entries)
        sites += [unpacked(entry[3])[1] for entry in entries if entry[0] in _PLACED]
        kinds = (puts, "put", "to", _PUTS), (gets, "get", "from", _GETS)
        for number, noun, towards, names in (*kinds, (messages, "message", "to", _SENDS)):
            if number:
                count += number
                used.update(names)
                plural = "s" * (number > 1)
                parts.append(f"{number} {noun}{plural} {towards} process {members[pid]}")
    if not count:
        return
    more = f" and {len(parts) - LISTED} more" if len(parts) > LISTED else ""
    lines = _listed(site for site in sites if site is not None) or _candidates(code, used)
    are = "transfer is" if count == 1 else "transfers are"
    raise bsp._error(
        PendingTransferError,
        f"{what}: {count} {are} pending at the end ({', '.join(parts[:LISTED])}{more}){lines}; "
        f"sync before the end",
    )


# -- the lines of transfers that no sync delivered before their group ended -----------------------
# They are known under ``check=True`` only. Otherwise the calls that may have made them are searched
# in the code of the function that ended, which takes time only where there is an error.


_SYNCS = ("sync", "oblsync")
_PUTS = ("put", "hpput", "put_at", "on")
_GETS = ("get", "hpget", "get_at", "on")
_SENDS = ("send",)


def _listed(sites: Iterable[CallSite]) -> str:
    """Return calls as text; empty if there are none."""
    lines = dict.fromkeys(f"{operation} at {line}" for operation, line in sites)
    return f": {', '.join([*lines][:LISTED])}" if lines else ""


def _candidates(code: CodeType | None, names: set[str]) -> str:
    """Return the calls in a function that may have made the transfers.

    If some of them come after the last sync, only those are returned.
    """
    if code is None:
        return ""
    calls = [*_calls(code)]
    last = max((line for name, line in calls if name in _SYNCS), default=0)
    made = sorted({(line, name) for name, line in calls if name in names})
    late = [(line, name) for line, name in made if line > last] or made
    file = os.path.basename(code.co_filename)
    text = ", ".join(f"{name} at {file}:{line}" for line, name in late[:LISTED])
    return f": {code.co_name} calls {text}" if text else "; check=True names their lines"


def _calls(code: CodeType) -> Iterator[tuple[str, int]]:
    """Yield the attributes that a function and its inner functions use, with their lines."""
    for instruction in dis.get_instructions(code):
        positions = instruction.positions
        if instruction.opname in ("LOAD_METHOD", "LOAD_ATTR") and positions and positions.lineno:
            yield str(instruction.argval), positions.lineno
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _calls(constant)
