"""What a verdict has to say of each fault that ``faults.py`` plants."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bsplib.profiler.kinds import BLOCKED, CORE, FAN_IN, FIXED, MESSAGES

PROGRAM = Path(__file__).with_name("faults.py")


class Expected(NamedTuple):
    """What a sentence has to have."""

    kind: str
    pids: tuple[int, ...]
    word: str


FAULTS = {
    "straggler": Expected(FIXED, (1,), "fixed straggler"),
    "late_sender": Expected(FIXED, (1,), "late sender"),
    "late_receiver": Expected(FIXED, (1,), "late receiver"),
    "fan_in": Expected(FAN_IN, (0,), "fan-in"),
    "small_messages": Expected(MESSAGES, (), "too many small messages"),
    "core": Expected(CORE, (), "waiting for one of"),
    "sleep": Expected(BLOCKED, (1,), "blocked"),
}


def is_possible(fault: str, nprocs: int) -> bool:
    """Tell whether processes can have a fault: of two, one sends what the other one receives."""
    return (fault, nprocs) != ("fan_in", 2)


def line_of(fault: str) -> int | None:
    """Return the line of a fault, which has a mark in the function of its name, if it has one."""
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    begin = lines.index(f"def {fault}():")
    for number, text in enumerate(lines[begin + 1 :], begin + 2):
        if text.endswith("# named"):
            return number
        if text.startswith("def "):
            break
    return None
