"""``bsplib.run``: start a program on a backend, gather its results and its records."""

from __future__ import annotations

import operator
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bsplib.backends.shm.launch import MOST_PROCESSES, launch
from bsplib.body import Task
from bsplib.errors import ProcessRangeError, UsageError
from bsplib.records import Trace
from bsplib.spool import collect
from bsplib.trace import read_trace, write_trace
from bsplib.version import __version__

BACKENDS = ("shm",)


@dataclass
class Overrides:
    """What ``bsp run`` says; it wins over what the script says."""

    nprocs: int | None = None
    backend: str | None = None
    profile: str | None = None
    label: bool = False


overrides = Overrides()

_written: set[Path] = set()
"""Traces that this program has begun; its later runs are added to them."""


def run(
    main: Callable[..., Any],
    *args: Any,
    nprocs: int | None = None,
    backend: str = "shm",
    profile: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> list[Any]:
    """Run ``main(bsp, *args, **kwargs)`` in every process of a BSP machine.

    Args:
        main: the program; ``bsp`` is a :class:`bsplib.Group`.
        *args: given to ``main`` in every process.
        nprocs: number of processes; the cores that this process may use if None.
        backend: ``"shm"``: processes of this machine over shared memory.
        profile: file to record the run in; a further run of the same program into
            the same file is added to it. Nothing is recorded if None.
        **kwargs: given to ``main`` in every process.

    Returns:
        What ``main`` returned, by pid.

    Raises:
        ProcessRangeError: ``nprocs`` is not 1 to 256.
        ProcessDiedError: a process exited or was killed.
        SyncMismatchError: processes did not sync alike.
        Exception: what ``main`` raised, in its own type, with the remote traceback
            as its cause; of several errors that of the lowest (superstep, pid).
    """
    chosen = overrides.backend or backend
    if chosen not in BACKENDS:
        raise UsageError(f"there is no backend {chosen!r}; choose one of {', '.join(BACKENDS)}")
    count = _count(overrides.nprocs if overrides.nprocs is not None else nprocs)
    target = overrides.profile or profile
    if target is None:
        return launch(Task(main, args, kwargs, label=overrides.label), count)
    return _run_recorded(main, args, kwargs, count, Path(target).absolute())


def _count(nprocs: int | None) -> int:
    if nprocs is None:
        return min(len(os.sched_getaffinity(0)), MOST_PROCESSES)
    count = operator.index(nprocs)
    if not 1 <= count <= MOST_PROCESSES:
        raise ProcessRangeError(f"nprocs is {count}; it may be 1 to {MOST_PROCESSES}")
    return count


def _run_recorded(
    main: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    nprocs: int,
    path: Path,
) -> list[Any]:
    """Run with records, and write the trace however the run ends."""
    if not path.parent.is_dir():
        raise UsageError(f"profile: there is no folder {path.parent}")
    folder = Path(tempfile.mkdtemp(prefix=".bsp-records-", dir=path.parent))
    meta = _meta(main)
    try:
        results = launch(Task(main, args, kwargs, folder, overrides.label), nprocs)
    except BaseException as error:
        meta["error"] = f"{type(error).__name__}: {error}"
        raise
    else:
        return results
    finally:
        try:
            record = collect(folder, nprocs, complete="error" not in meta, meta=meta)
            _add(path, Trace((record,)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _add(path: Path, trace: Trace) -> None:
    if path in _written and path.exists():
        trace = Trace(read_trace(path).runs + trace.runs)
    write_trace(path, trace)
    _written.add(path)


def _meta(main: Callable[..., Any]) -> dict[str, Any]:
    return {
        "program": os.path.basename(sys.argv[0]) or "python",
        "main": getattr(main, "__qualname__", repr(main)),
        "arguments": sys.argv[1:],
        "backend": "shm",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "bsplib": __version__,
    }
