"""Programs that tests record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bsplib
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace


def record_run(path: Path, main: Callable[..., Any], *args: Any, **how: Any) -> Run:
    """Run a program with a recording at a path; return what was recorded."""
    bsplib.run(main, *args, profile=path, **how)
    (run,) = read_trace(path).runs
    return run
