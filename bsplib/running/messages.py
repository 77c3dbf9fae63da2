"""What the logger ``bsplib`` is told: the start and the end of each run, and fallbacks.

A program sees it with ``logging.basicConfig(level=logging.INFO)``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bsplib import core
from bsplib.running.setting import Setting
from bsplib.running.task import Task

_logger = logging.getLogger("bsplib")


@contextmanager
def logged(task: Task, setting: Setting) -> Iterator[None]:
    """Log the start of a run, and how it ends.

    Args:
        task: the program.
        setting: options of the run.
    """
    if not _logger.isEnabledFor(logging.INFO):
        yield
        return
    name = getattr(task.main, "__qualname__", None) or repr(task.main)
    _logger.info(
        "run of %s starts: %d processes, backend %s, core %s",
        name,
        setting.nprocs,
        setting.backend,
        core.BUILD,
    )
    if core.REASON:
        _logger.info("fallback: %s", core.REASON)
    began = time.perf_counter()
    try:
        yield
    except BaseException as error:
        seconds = time.perf_counter() - began
        _logger.info("run of %s ended by %s after %.3g s", name, type(error).__name__, seconds)
        raise
    _logger.info("run of %s ended after %.3g s", name, time.perf_counter() - began)
