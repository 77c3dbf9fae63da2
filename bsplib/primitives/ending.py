"""The end of a group: of ``main``, or of a sub-group."""

from __future__ import annotations

import dis
import os
from collections.abc import Iterable, Iterator
from types import CodeType

from bsplib.backends.members import LISTED
from bsplib.core.engine import Engine
from bsplib.core.kinds import MESSAGE, PLACED, STAGED_MESSAGE, STAGED_PLACED
from bsplib.core.life import OVER
from bsplib.errors import PendingTransferError
from bsplib.primitives.state import GroupState
from bsplib.sync_kinds import Kind
from bsplib.transfers.descriptions import CallSite, is_put, unpacked

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
    counted = [*_counted(engine)]
    if not counted:
        return
    parts = [
        f"{number} {noun}{'s' * (number > 1)} {towards} process {members[pid]}"
        for pid, (noun, towards, _), number in counted
    ]
    more = f" and {len(parts) - LISTED} more" if len(parts) > LISTED else ""
    called = {name for _, (*_, names), _ in counted for name in names}
    lines = _listed(_sites(engine)) or _candidates(code, called)
    count = sum(number for *_, number in counted)
    are = "transfer is" if count == 1 else "transfers are"
    raise bsp._error(
        PendingTransferError,
        f"{what}: {count} {are} pending at the end ({', '.join(parts[:LISTED])}{more}){lines}; "
        f"sync before the end",
    )


_Kind = tuple[str, str, tuple[str, ...]]
_KINDS: tuple[_Kind, ...] = (
    ("put", "to", ("put", "hpput", "put_at", "on")),
    ("get", "from", ("get", "hpget", "get_at", "on")),
    ("message", "to", ("send",)),
)
"""The kinds of transfers, in words, each with the primitives that make them."""


def _counted(engine: Engine) -> Iterator[tuple[int, _Kind, int]]:
    """Yield processes to which transfers are pending, the kind of these, and how many there are."""
    buffer = engine.send_buffer
    if not (buffer.holds_inline or buffer.holds_more or engine.gets or engine.has_early):
        return
    for pid in range(engine.nprocs):
        kinds = [kind for kind, *_ in engine.own_entries(pid)]
        puts = sum(map(is_put, kinds)) + (engine.early_puts[pid] if engine.has_early else 0)
        gets = sum(asked == pid for _, _, _, asked, _ in engine.gets)
        messages = kinds.count(MESSAGE) + kinds.count(STAGED_MESSAGE)
        numbers = zip(_KINDS, (puts, gets, messages), strict=True)
        yield from ((pid, kind, number) for kind, number in numbers if number)


def _sites(engine: Engine) -> Iterator[CallSite | None]:
    """Yield where pending transfers were called: gets first; None where that is not known."""
    yield from (None if there else get.site for get, there, *_ in engine.gets)
    for pid in range(engine.nprocs):
        for kind, _, _, description, *_ in engine.own_entries(pid):
            if kind in (PLACED, STAGED_PLACED):
                yield unpacked(description)[1]


# -- the lines of transfers that no sync delivered before their group ended -----------------------
# They are known under ``check=True`` only. Otherwise the calls that may have made them are searched
# in the code of the function that ended, which takes time only where there is an error.


_SYNCS = ("sync", "oblsync")


def _listed(sites: Iterable[CallSite | None]) -> str:
    """Return calls as text; empty if there are none."""
    known = (site for site in sites if site is not None)
    lines = dict.fromkeys(f"{operation} at {line}" for operation, line in known)
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
