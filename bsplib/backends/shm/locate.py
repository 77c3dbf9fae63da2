"""How the caller finds out where real processes are, whatever they do at that moment.

When a signal comes, the interpreter's fault handler writes the stack of a process into a file
in memory. That works in an endless loop, too, even of C code: it needs neither the
interpreter's lock nor an allocation. The caller opens the file through ``/proc``.
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

from bsplib.backends.shm.control import OS_PID, STACK_FILE, THREAD

_NAME = "bsp-stack"
_ANSWER_S = 0.5
"""Seconds to wait for stacks. A stack takes a millisecond; a stopped process writes none."""
_LOOK_S = 0.005
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
_SIGNAL = getattr(signal, "SIGRTMAX", 0) - 6
"""A realtime signal that nothing else uses; less than 1 where there are none."""
SIGNALS = (_SIGNAL,) if _SIGNAL > 0 else ()
"""Signals that a process has to let through, to answer."""

Stack = list[tuple[str, int, str]]


def answer(control: memoryview, start: int) -> None:
    """In a process of a run: let the fault handler write the stack into a file on a signal.

    Args:
        control: the control words of the run.
        start: index of the first control word of this process.
    """
    if not SIGNALS or not hasattr(os, "memfd_create"):
        return
    file = os.memfd_create(_NAME)
    faulthandler.register(_SIGNAL, file=file, all_threads=True)
    control[start + THREAD] = threading.get_ident()
    control[start + STACK_FILE] = file + 1  # 0 means that there is no file


def stacks(control: memoryview, starts: Mapping[int, int]) -> dict[int, Stack]:
    """Ask processes for their stacks.

    Args:
        control: the control words of the run.
        starts: index of the first control word of each process to ask, by pid.

    Returns:
        The frames of the thread that runs ``main``, the innermost first, by pid; without
        processes that do not answer.
    """
    asked = {
        pid: path for pid, start in starts.items() if (path := _ask(control, start)) is not None
    }
    texts: dict[int, str] = {}
    found: dict[int, Stack] = {}
    deadline = time.monotonic() + _ANSWER_S
    while asked and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        for pid, path in [*asked.items()]:
            text = _read(path)
            stack = _stack(text, control[starts[pid] + THREAD])
            if stack and texts.get(pid) == text:  # equal twice: it has been written completely
                found[pid] = stack
                del asked[pid]
            texts[pid] = text
    return found


def _ask(control: memoryview, start: int) -> Path | None:
    """Send the signal; return the file in which the answer will be."""
    os_pid, file = control[start + OS_PID], control[start + STACK_FILE] - 1
    path = Path(f"/proc/{os_pid}/fd/{file}")
    with contextlib.suppress(OSError):
        if _NAME in os.readlink(path):  # the program has not closed the file
            os.kill(os_pid, _SIGNAL)
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
