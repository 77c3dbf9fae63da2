"""Traces of runs whose caller could not make them: it was killed, or parts were out of reach."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from shlex import quote

import numpy as np

from bsplib.backends.members import named
from bsplib.errors import TraceError, UsageError
from bsplib.output_file import TRACE, obstacle
from bsplib.recording.collect import Collected, collect, write_fitting
from bsplib.recording.parts import PREFIX
from bsplib.recording.record_folder import (
    FILES,
    About,
    lock_if_possible,
    read_about,
    remove,
)
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind


def recover(folder: Path, out: Path | None = None, *others: Path) -> tuple[Path, Run]:
    """Make the trace of a run whose caller was killed, and remove the folders of its records.

    They are kept where records are missing: more of them may be found.

    Args:
        folder: folder of the records.
        out: file for the trace; default: the file that the run would have written. Then the
            records of all processes have to be there.
        *others: further folders, where processes have written elsewhere.

    Returns:
        The file, and the run as far as it was recorded; ``absent`` names the processes of whose
        records none are there.

    Raises:
        TraceError: a folder holds no records, the run has not ended, the folders are of different
            runs, or the records of a process are there twice, or are missing.
        UsageError: the trace cannot be written there.
    """
    folders = (folder, *others)
    about, *abouts = map(read_about, folders)
    for other, of_other in zip(others, abouts, strict=True):
        if of_other["run"] != about["run"]:
            raise TraceError(
                f"{folder} and {other} are parts of different runs, started {_started(about)} and "
                f"{_started(of_other)}; give the parts of one run"
            )
    # Only the name is taken from the folder, whose content is not trusted: the trace is
    # written beside the folder, wherever that is now.
    target = out or folder.absolute().parent / Path(about["target"]).name
    if reason := obstacle(target, TRACE):
        raise UsageError(f"recover: {reason}")
    earlier: tuple[Run, ...] = ()
    if out is None and target.exists():
        if not about["added"]:
            raise UsageError(f"recover: {target} exists already; give another file by --out")
        earlier = read_trace(target).runs
    with ExitStack() as locks:
        for each in dict.fromkeys(folders):
            _lock(each, locks)
        places = _by_pid(folders, about, may_lack=out is not None)
        try:
            run = _recovered(collect(places, complete=False, meta=about["meta"]))
            run, _ = write_fitting(target, earlier, run)
        except OSError as error:
            raise UsageError(f"recover: {target} cannot be written: {error.strerror}") from None
        for each in () if run.absent else folders:
            remove(each, about["nprocs"])
    return target, run


def elsewhere(folder: Path, about: About, missing: Sequence[int]) -> str:
    """Return a text about processes whose records are not in the folder beside the trace."""
    parts = f"{PREFIX}{about['run']}-PID"
    return (
        f"the records of {named(missing)} are not there; look for folders {parts} "
        f"among the temporary files of the hosts, copy them here, and make a trace by: "
        f"bsp recover {quote(str(folder))} {parts} --out FILE"
    )


def _lock(folder: Path, locks: ExitStack) -> None:
    held = lock_if_possible(folder)
    if held is None and folder.exists():
        raise TraceError(
            f"{folder}: the run that records here is still running, or another bsp recover reads it"
        )
    if held is None:
        raise TraceError(f"{folder} was removed meanwhile: its records have become a trace")
    locks.callback(os.close, held)


def _by_pid(parts: Sequence[Path], about: About, *, may_lack: bool) -> list[Path | None]:
    """Return the folder that has the records of each process; None where none has.

    A run on one host has one folder, also for a process that has not begun to record.
    """
    if not about["spread"] and len(parts) == 1:
        return [parts[0]] * about["nprocs"]
    found: dict[int, Path] = {}
    for part in parts:
        for pid in range(about["nprocs"]):
            if not (part / f"{pid}.{FILES[0]}").exists():
                continue
            if pid in found:
                raise TraceError(f"{found[pid]} and {part} both have the records of process {pid}")
            found[pid] = part
    if not found:
        raise TraceError(
            f"the records of all {about['nprocs']} processes are missing; give the folders that "
            f"have them"
        )
    missing = [pid for pid in range(about["nprocs"]) if pid not in found]
    if missing and not may_lack:
        raise TraceError(f"{parts[0]}: {elsewhere(parts[0], about, missing)}")
    return [found.get(pid) for pid in range(about["nprocs"])]


def _started(about: About) -> str:
    return str(about["meta"].get("started", "at an unknown time"))


def _recovered(found: Collected) -> Run:
    """Mark a run as complete if all its processes reached the end of ``main``."""
    records = found.run.records
    ended = (records["group"] == 0) & (records["kind"] == Kind.END)
    if len(np.unique(records["pid"][ended])) == found.run.nprocs and not found.lost:
        return replace(found.run, complete=True)
    reason = found.losses() or "the program was killed while it recorded"
    if absent := found.run.absent:
        reason = (
            f"the records of {named(absent)} are missing, and count as 0 in all figures; {reason}"
        )
    found.run.meta.setdefault("error", reason)
    return found.run
