"""How the caller finds out where the processes of a run are: the control words say how to ask."""

from __future__ import annotations

from collections.abc import Mapping

from bsplib.backends import stacks as by_signal
from bsplib.backends.shm.control import OS_PID, STACK_FILE, THREAD
from bsplib.backends.stacks import Answering, Stack


def answer(control: memoryview, start: int) -> None:
    """In a process of a run: be ready to write the stack, and let the caller know.

    Args:
        control: the control words of the run.
        start: index of the first control word of this process.
    """
    itself = by_signal.answer()
    if itself is not None:
        control[start + THREAD] = itself.thread
        control[start + STACK_FILE] = itself.file + 1  # 0 means that there is no file


def stacks(control: memoryview, starts: Mapping[int, int]) -> dict[int, Stack]:
    """Ask processes for their stacks.

    Args:
        control: the control words of the run.
        starts: index of the first control word of each process to ask, by pid.

    Returns:
        As :func:`bsplib.backends.stacks.stacks_of`, by pid.
    """
    return by_signal.stacks_of(
        {
            pid: Answering(
                control[start + OS_PID], control[start + STACK_FILE] - 1, control[start + THREAD]
            )
            for pid, start in starts.items()
        }
    )
