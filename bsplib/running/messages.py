"""What the logger ``bsplib`` is told: the start and the end of each run, and fallbacks.

A program sees it with ``logging.basicConfig(level=logging.INFO)``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bsplib import core
from bsplib.running.setting import Setting
from bsplib.running.task import Task


@contextmanager
def logged(task: Task, setting: Setting) -> Iterator[None]:
    """Log the start of a run, and how it ends.

    Args:
        task: the program.
        setting: options of the run.
    """
    logging = sys.modules.get("logging")  # a program that sees messages has imported it
    logger = logging.getLogger("bsplib") if logging else None
    if logging is None or logger is None or not logger.isEnabledFor(logging.INFO):
        yield
        return
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
