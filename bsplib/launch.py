"""``bsplib.run``: start a program on a backend, gather its results and its records."""

from __future__ import annotations

import operator
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bsplib.backends.shm import launch as shm
from bsplib.backends.sim import launch as sim
from bsplib.body import Task
from bsplib.errors import ProcessRangeError, UsageError
from bsplib.machine import Machine, load_machine
from bsplib.records import Trace
from bsplib.spool import collect
from bsplib.trace import read_trace, write_trace
from bsplib.version import __version__

BACKENDS = ("shm", "sim")
_MACHINE = {"shm": "shared-memory", "sim": "ideal"}
_MOST = {"shm": shm.MOST_PROCESSES, "sim": sim.MOST_PROCESSES}


@dataclass
class Overrides:
    """What ``bsp run`` says; it wins over what the script says."""

    nprocs: int | None = None
    backend: str | None = None
    profile: str | None = None
    machine: str | None = None
    label: bool = False
    report_times: Callable[[sim.Times], None] | None = None
    """Is told the virtual times of each run."""


overrides = Overrides()

_written: set[Path] = set()
"""Traces that this program has begun; its later runs are added to them."""


@dataclass(frozen=True)
class _Setting:
    """How a run is to be done."""

    backend: str
    nprocs: int
    seed: int

    def launch(self, task: Task) -> list[Any]:
        if self.backend == "shm":
            return shm.launch(task, self.nprocs)
        results, times = sim.launch(task, self.nprocs, self.seed)
        if overrides.report_times is not None:
            overrides.report_times(times)
        return results


def run(
    main: Callable[..., Any],
    *args: Any,
    nprocs: int | None = None,
    backend: str = "shm",
    profile: str | os.PathLike[str] | None = None,
    machine: Machine | str | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> list[Any]:
    """Run ``main(bsp, *args, **kwargs)`` in every process of a BSP machine.

    Args:
        main: the program; ``bsp`` is a :class:`bsplib.Group`.
        *args: given to ``main`` in every process.
        nprocs: number of processes; the cores that this process may use if None.
        backend: ``"shm"``: processes of this machine over shared memory;
            ``"sim"``: virtual processors, any number of them inside this process.
            Arguments and results are copied as between real processes, globals of
            modules are shared.
        profile: file to record the run in; a further run of the same program into
            the same file is added to it. Nothing is recorded if None.
        machine: prices the communication of virtual processors, and tells ``broadcast``
            when two stages pay: a :class:`bsplib.Machine`, the name of one, or a TOML
            file; ``"shared-memory"`` and ``"ideal"`` if None.
        seed: of the order in which virtual processors run.
        **kwargs: given to ``main`` in every process.

    Returns:
        What ``main`` returned, by pid.

    Raises:
        ProcessRangeError: ``nprocs`` is not 1 to 256, on virtual processors 4096.
        UsageError: there is no such backend, Machine, or folder for the profile.
        ProcessDiedError: a process exited or was killed.
        SyncMismatchError: processes did not sync alike.
        Exception: what ``main`` raised, in its own type, with the remote traceback
            as its cause; of several errors that of the lowest (superstep, pid).
    """
    chosen = overrides.backend or backend
    if chosen not in BACKENDS:
        raise UsageError(f"there is no backend {chosen!r}; choose one of {', '.join(BACKENDS)}")
    chosen_machine = overrides.machine or machine or _MACHINE[chosen]
    if not isinstance(chosen_machine, Machine):
        chosen_machine = load_machine(chosen_machine)
    setting = _Setting(
        chosen,
        _count(overrides.nprocs if overrides.nprocs is not None else nprocs, chosen),
        seed,
    )
    target = overrides.profile or profile
    task = Task(main, chosen_machine, args, kwargs, label=overrides.label)
    if target is None:
        return setting.launch(task)
    return _run_recorded(task, setting, Path(target).absolute())


def _count(nprocs: int | None, backend: str) -> int:
    most = _MOST[backend]
    if nprocs is None:
        return min(len(os.sched_getaffinity(0)), most)
    count = operator.index(nprocs)
    if not 1 <= count <= most:
        raise ProcessRangeError(f"nprocs is {count}; it may be 1 to {most} on {backend}")
    return count


def _run_recorded(task: Task, setting: _Setting, path: Path) -> list[Any]:
    """Run with records, and write the trace however the run ends."""
    if not path.parent.is_dir():
        raise UsageError(f"profile: there is no folder {path.parent}")
    folder = Path(tempfile.mkdtemp(prefix=".bsp-records-", dir=path.parent))
    meta = _meta(task, setting)
    try:
        return setting.launch(replace(task, spool=folder))
    except BaseException as error:
        meta["error"] = f"{type(error).__name__}: {error}"
        raise
    finally:
        try:
            complete = "error" not in meta
            record = collect(folder, setting.nprocs, complete=complete, meta=meta)
            _add(path, Trace((record,)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _add(path: Path, trace: Trace) -> None:
    if path in _written and path.exists():
        trace = Trace(read_trace(path).runs + trace.runs)
    write_trace(path, trace)
    _written.add(path)


def _meta(task: Task, setting: _Setting) -> dict[str, Any]:
    return {
        "program": os.path.basename(sys.argv[0]) or "python",
        "main": getattr(task.main, "__qualname__", repr(task.main)),
        "arguments": sys.argv[1:],
        "backend": setting.backend,
        "machine": asdict(task.machine),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "bsplib": __version__,
    }
