"""How the caller asks real processes where they are, whatever they do at that moment.

A process has the interpreter's fault handler write its stack into a file of its own in
memory when a signal comes. That works in an endless loop, too, and in one of C code: it
needs neither the interpreter's lock nor an allocation. The caller opens the file through
``/proc``. Nothing is written before somebody asks.
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
"""An answer takes a millisecond; a process that is stopped gives none."""
_LOOK_S = 0.005
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
_SIGNAL = getattr(signal, "SIGRTMAX", 0) - 6
"""A realtime signal that nothing else uses; less than 1 where there are none."""

Stack = list[tuple[str, int, str]]


def answer(control: memoryview, start: int) -> None:
    """In a process of a run: write the stack into a file when asked.

    Args:
        control: the control words of the run.
        start: the word at which those of this process begin.
    """
    if _SIGNAL < 1 or not hasattr(os, "memfd_create"):
        return
    file = os.memfd_create(_NAME)
    faulthandler.register(_SIGNAL, file=file, all_threads=True)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {_SIGNAL})
    control[start + THREAD] = threading.get_ident()
    control[start + STACK_FILE] = file + 1  # 0: there is none


def stacks(control: memoryview, starts: Mapping[int, int]) -> dict[int, Stack]:
    """Ask processes where they are.

    Args:
        control: the control words of the run.
        starts: by pid, the word at which those of the process begin.

    Returns:
        By pid the frames of the thread that runs ``main``, the innermost first; nothing
        of processes that do not answer.
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
            if stack and texts.get(pid) == text:  # it has been written as a whole
                found[pid] = stack
                del asked[pid]
            texts[pid] = text
    return found


def _ask(control: memoryview, start: int) -> Path | None:
    """Send the signal; return the file in which the answer will be."""
    os_pid, file = control[start + OS_PID], control[start + STACK_FILE] - 1
    path = Path(f"/proc/{os_pid}/fd/{file}")
    with contextlib.suppress(OSError):
        if _NAME in os.readlink(path):  # the program has not closed it
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
