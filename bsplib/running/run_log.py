"""What the logger ``bsplib`` is told: the start and the end of each run, and fallbacks.

A program sees it with ``logging.basicConfig(level=logging.INFO)``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

from bsplib import core
from bsplib.running.options import Setting
from bsplib.running.task import Task

if TYPE_CHECKING:
    import logging

_INFO = 20
"""``logging.INFO``, from a module that few programs import."""
_NOT_LOGGED = nullcontext()


def logged(task: Task, setting: Setting) -> AbstractContextManager[None]:
    """Log the start of a run, and how it ends, around a block.

    Args:
        task: the program.
        setting: options of the run.
    """
    logger = _logger() if "logging" in sys.modules else None  # who sees messages has imported it
    if logger is None or not logger.isEnabledFor(_INFO):
        return _NOT_LOGGED
    return _logged(logger, task, setting)


@cache
def _logger() -> logging.Logger:
    import logging  # noqa: PLC0415  # it is imported already

    return logging.getLogger("bsplib")


@contextmanager
def _logged(logger: logging.Logger, task: Task, setting: Setting) -> Iterator[None]:
    name = getattr(task.main, "__qualname__", None) or repr(task.main)
    logger.info(
        "run of %s starts: %d processes, backend %s, core %s",
        name,
        setting.nprocs,
        setting.backend,
        core.BUILD,
    )
    if core.REASON:
        logger.info("fallback: %s", core.REASON)
    began = time.perf_counter()
    try:
        yield
    except BaseException as error:
        seconds = time.perf_counter() - began
        logger.info("run of %s ended by %s after %.3g s", name, type(error).__name__, seconds)
        raise
    logger.info("run of %s ended after %.3g s", name, time.perf_counter() - began)
