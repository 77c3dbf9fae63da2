"""How the stack of a real process is found, whatever it does at that moment.

When a signal comes, the interpreter's fault handler writes the stack of a process into a file
in memory. That works in an endless loop, too, even of C code: it needs neither the
interpreter's lock nor an allocation. Another process of the same computer and user opens the
file through ``/proc``.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_NAME = "bsp-stack"
ANSWER_S = 3.0
"""Seconds to wait for stacks. A stack takes a millisecond; a stopped process writes none, and is
not asked."""
_LOOK_S = 0.005
"""Sleep between two looks at what was written: an answer counts once two looks find it alike."""
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
SIGNAL = signal.SIGRTMAX - 6
"""A realtime signal that nothing else uses; a process has to let it through, to answer."""

Stack = list[tuple[str, int, str]]


class Answering(NamedTuple):
    """A process that can be asked for its stack."""

    os_pid: int
    file: int
    """The descriptor of the file into which it writes."""
    thread: int
    """The thread that runs ``main``: its identifier in Python."""


def answer() -> Answering | None:
    """Let the fault handler write the stack of this process into a file on a signal.

    Returns:
        How this process is asked; None where the system has no such files.
    """
    if not hasattr(os, "memfd_create"):
        return None
    file = os.memfd_create(_NAME)
    faulthandler.register(SIGNAL, file=file, all_threads=True)
    return Answering(os.getpid(), file, threading.get_ident())


def stacks_of(processes: Mapping[int, Answering]) -> dict[int, Stack]:
    """Ask processes for their stacks.

    Args:
        processes: by any number.

    Returns:
        The frames of the thread that runs ``main``, the innermost first, by the same number;
        without processes that do not answer.
    """
    # What each process has written for those who asked before.
    before = {pid: _read(_file(process)) for pid, process in processes.items()}
    asked = {pid: path for pid, process in processes.items() if (path := _ask(process)) is not None}
    texts: dict[int, str] = {}
    found: dict[int, Stack] = {}
    deadline = time.monotonic() + ANSWER_S
    while asked and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        for pid, path in [*asked.items()]:
            text = _read(path)[len(before[pid]) :]  # what was asked for earlier stands before it
            stack = _stack(text, processes[pid].thread)
            if stack and texts.get(pid) == text:  # equal twice: it has been written completely
                found[pid] = stack
                del asked[pid]
            texts[pid] = text
    return found


def _file(process: Answering) -> Path:
    return Path(f"/proc/{process.os_pid}/fd/{process.file}")


def _ask(process: Answering) -> Path | None:
    """Send the signal; return the file in which the answer will be, or None if none will come."""
    if is_stopped(process.os_pid):
        return None
    path = _file(process)
    with contextlib.suppress(OSError):
        if _NAME in os.readlink(path):  # the program has not closed the file
            os.kill(process.os_pid, SIGNAL)
            return path
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # the process has ended
        return ""


def _stack(text: str, thread: int) -> Stack:
    """Return the frames of one thread from what the fault handler wrote."""
    _, heading, after = text.rpartition(f"hread 0x{thread:016x}")
    section = after.partition("\n\n")[0] if heading else ""
    return [(file, int(line), function) for file, line, function in _FRAME.findall(section)]


def is_stopped(os_pid: int) -> bool:
    """Tell whether a process has been stopped by a signal."""
    try:
        stat = Path(f"/proc/{os_pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("T", "t")
