"""The error that names a task, and how one is done."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr as short
from typing import Any


class TaskError(RuntimeError):
    """A task of a farm or an item of a pipeline failed; its cause is the task's own error.

    The constructor takes only the message, so that the error can be sent between processes.
    """


def do(work: Callable[..., Any], *arguments: Any, what: str) -> Any:
    """Call ``work`` with ``arguments``.

    Args:
        work: the function of a task or of a stage.
        arguments: the task or the item is the last of them.
        what: names the task, as in ``"task 3"``.

    Raises:
        TaskError: ``work`` raised an exception; the text has ``what``, the task, and the error.
    """
    try:
        return work(*arguments)
    except Exception as error:
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise TaskError(f"{what}, {short(arguments[-1])}, failed: {told}") from error
