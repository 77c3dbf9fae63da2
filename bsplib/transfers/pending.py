"""The error text for transfers that no sync delivered before their group ended.

The lines of transfers are known under ``check=True`` only. Otherwise the calls that may have
made them are searched in the code of the function that ended, which takes time only where
there is an error.
"""

from __future__ import annotations

import dis
import os
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType

from bsplib.transfers.outgoing import Early, Outgoing

_SYNCS = ("sync", "oblsync")
_PUTS = ("put", "hpput", "put_at", "on")
_GETS = ("get", "hpget", "get_at", "on")
_SENDS = ("send",)
_LISTED = 5


def pending_transfers(
    out: Mapping[int, Outgoing],
    early: Mapping[int, Early],
    members: Sequence[int],
    code: CodeType | None,
) -> str | None:
    """Return text that describes transfers no sync has delivered; None if there are none.

    Args:
        out: transfers that wait for a sync, by pid.
        early: transfers that were done at once, by pid.
        members: pids of the group's processes in the root group, by pid.
        code: code of the function that ended the group, if it is known.
    """
    parts: list[str] = []
    used: set[str] = set()
    count = 0
    for pid in sorted({*out, *early}):
        for number, noun, towards, names in _kinds(out.get(pid), early.get(pid)):
            count += number
            used.update(names)
            parts.append(f"{number} {noun}{'s' * (number > 1)} {towards} process {members[pid]}")
    if not count:
        return None
    more = f" and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
    lines = _sites(out) or _candidates(code, used)
    are = "transfer is" if count == 1 else "transfers are"
    return f"{count} {are} pending at the end ({', '.join(parts[:_LISTED])}{more}){lines}"


def _kinds(
    sent: Outgoing | None, done: Early | None
) -> Iterator[tuple[int, str, str, tuple[str, ...]]]:
    """Yield number, noun and direction of each kind of transfer, and its primitives."""
    messages = gets = puts = 0
    if sent is not None:
        messages, gets, puts = len(sent.messages), sent.number_of_gets(), sent.number_of_puts()
    if done is not None:
        puts, gets = puts + done.puts, gets + done.gets
    if puts:
        yield puts, "put", "to", _PUTS
    if gets:
        yield gets, "get", "from", _GETS
    if messages:
        yield messages, "message", "to", _SENDS


def _sites(out: Mapping[int, Outgoing]) -> str:
    """Return the calls of the transfers, if ``check=True`` has kept them."""
    sites = [site for sent in out.values() for kind in sent.sites for site in kind]
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
