"""The error text for transfers that no sync delivered before their group ended.

The lines of transfers are known under ``check=True`` only. Otherwise the calls that may have
made them are searched in the code of the function that ended, which takes time only where
there is an error.
"""

from __future__ import annotations

import dis
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import NamedTuple

from bsplib.transfers.descriptions import CallSite

_SYNCS = ("sync", "oblsync")
_PUTS = ("put", "hpput", "put_at", "on")
_GETS = ("get", "hpget", "get_at", "on")
_SENDS = ("send",)
_LISTED = 5


class Pending(NamedTuple):
    """Numbers of transfers with another process since the last sync, with those done at once."""

    puts: int
    gets: int
    messages: int


def pending_transfers(
    pending: Mapping[int, Pending],
    sites: Iterable[CallSite],
    members: Sequence[int],
    code: CodeType | None,
) -> str | None:
    """Return text that describes transfers no sync has delivered; None if there are none.

    Args:
        pending: how many there are, by pid.
        sites: their calls, if ``check=True`` has kept them.
        members: pids of the group's processes in the root group, by pid.
        code: code of the function that ended the group, if it is known.
    """
    parts: list[str] = []
    used: set[str] = set()
    count = 0
    for pid in sorted(pending):
        for number, noun, towards, names in _kinds(pending[pid]):
            count += number
            used.update(names)
            parts.append(f"{number} {noun}{'s' * (number > 1)} {towards} process {members[pid]}")
    if not count:
        return None
    more = f" and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
    lines = _listed(sites) or _candidates(code, used)
    are = "transfer is" if count == 1 else "transfers are"
    return f"{count} {are} pending at the end ({', '.join(parts[:_LISTED])}{more}){lines}"


def _kinds(pending: Pending) -> Iterator[tuple[int, str, str, tuple[str, ...]]]:
    """Yield number, noun and direction of each kind of transfer, and its primitives."""
    if pending.puts:
        yield pending.puts, "put", "to", _PUTS
    if pending.gets:
        yield pending.gets, "get", "from", _GETS
    if pending.messages:
        yield pending.messages, "message", "to", _SENDS


def _listed(sites: Iterable[CallSite]) -> str:
    """Return calls as text; empty if there are none."""
    lines = dict.fromkeys(f"{operation} at {line}" for operation, line in sites)
    return f": {', '.join([*lines][:_LISTED])}" if lines else ""


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
    text = ", ".join(f"{name} at {file}:{line}" for line, name in late[:_LISTED])
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
