"""Traces of runs whose caller could not make them: it was killed, or parts were out of reach."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from shlex import quote

from bsplib.backends.members import named
from bsplib.errors import TraceError, UsageError
from bsplib.output_file import TRACE, obstacle
from bsplib.recording.collect import Collected, collect, has_ended, write_fitting
from bsplib.recording.folder_lock import lock_if_possible
from bsplib.recording.parts import PREFIX
from bsplib.recording.record_folder import About, pids_in, read_about, remove
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace


def recover(folder: Path, out: Path | None = None) -> tuple[Path, Run]:
    """Make the trace of a run whose caller was killed, and remove the folder of its records.

    Args:
        folder: folder of the records.
        out: file for the trace; default: the file that the run would have written.

    Returns:
        The file, and the run as far as it was recorded.

    Raises:
        TraceError: the folder holds no records, the run has not ended, or processes have
            written elsewhere.
        UsageError: the trace cannot be written there.
    """
    about = read_about(folder)
    # Only the name is taken from the folder, whose content is not trusted: the trace is
    # written beside the folder, wherever that is now.
    target, nprocs = out or folder.absolute().parent / Path(about["target"]).name, about["nprocs"]
    if reason := obstacle(target, TRACE):
        raise UsageError(f"recover: {reason}")
    earlier: tuple[Run, ...] = ()
    if out is None and target.exists():
        if not about["added"]:
            raise UsageError(f"recover: {target} exists already; give another file by --out")
        earlier = read_trace(target).runs
    with ExitStack() as locks:
        _lock(folder, locks)
        there = pids_in(folder, nprocs)
        if about["spread"] and there and len(there) < nprocs:
            raise TraceError(f"{folder}: {elsewhere(folder, about)}")
        run = _written("recover", target, earlier, [folder] * nprocs, about)
        remove(folder, nprocs)
    return target, run


def merge(parts: Sequence[Path], out: Path) -> Run:
    """Make the trace of a run whose processes wrote into several folders; these are kept.

    Args:
        parts: the folders; together they have the records of the processes of one run.
        out: file for the trace.

    Returns:
        The run as far as all its processes recorded it; ``absent`` names those of whose records
        none are there.

    Raises:
        TraceError: a folder holds no records, the run has not ended, the folders are of
            different runs, or the records of a process are there twice, or those of all missing.
        UsageError: the trace cannot be written there.
    """
    abouts = [read_about(part) for part in parts]
    for part, about in zip(parts, abouts, strict=True):
        if about["run"] != abouts[0]["run"]:
            raise TraceError(
                f"{parts[0]} and {part} are parts of different runs, started "
                f"{_started(abouts[0])} and {_started(about)}; merge the parts of one run"
            )
    if reason := obstacle(out, TRACE):
        raise UsageError(f"merge: {reason}")
    with ExitStack() as locks:
        folders = _by_pid(parts, abouts[0])
        for part in parts:
            _lock(part, locks)
        return _written("merge", out, (), folders, abouts[0])


def elsewhere(folder: Path, about: About) -> str:
    """Return a text about processes whose records are not in the folder beside the trace."""
    missing = set(range(about["nprocs"])).difference(pids_in(folder, about["nprocs"]))
    parts = f"{PREFIX}{about['run']}-PID"
    return (
        f"the records of {named(sorted(missing))} are not there; look for folders {parts} "
        f"among the temporary files of the hosts, copy them here, and make a trace by: "
        f"bsp merge {quote(str(folder))} {parts} --out FILE"
    )


def _lock(folder: Path, locks: ExitStack) -> None:
    held = lock_if_possible(folder)
    if held is None and folder.exists():
        raise TraceError(
            f"{folder}: the run that records here is still running, or another bsp recover or bsp "
            f"merge reads it"
        )
    if held is None:
        raise TraceError(f"{folder} was removed meanwhile: its records have become a trace")
    locks.callback(os.close, held)


def _by_pid(parts: Sequence[Path], about: About) -> list[Path | None]:
    """Return the folder that has the records of each process; None where none has."""
    found: dict[int, Path] = {}
    for part in parts:
        for pid in pids_in(part, about["nprocs"]):
            if pid in found:
                raise TraceError(f"{found[pid]} and {part} both have the records of process {pid}")
            found[pid] = part
    if not found:
        raise TraceError(
            f"the records of all {about['nprocs']} processes are missing; give the folders that "
            f"have them"
        )
    return [found.get(pid) for pid in range(about["nprocs"])]


def _started(about: About) -> str:
    return str(about["meta"].get("started", "at an unknown time"))


def _written(
    command: str,
    target: Path,
    earlier: tuple[Run, ...],
    folders: Sequence[Path | None],
    about: About,
) -> Run:
    """Collect the records and write the trace."""
    try:
        run = _recovered(collect(folders, complete=False, meta=about["meta"]))
        run, _ = write_fitting(target, earlier, run)
    except OSError as error:
        raise UsageError(f"{command}: {target} cannot be written: {error.strerror}") from None
    return run


def _recovered(found: Collected) -> Run:
    """Mark a run as complete if all its processes reached the end of ``main``."""
    if has_ended(found.run) and not found.lost:
        return replace(found.run, complete=True)
    reason = found.losses() or "the program was killed while it recorded"
    if absent := found.run.absent:
        reason = (
            f"the records of {named(absent)} are missing, and count as 0 in all figures; {reason}"
        )
    found.run.meta.setdefault("error", reason)
    return found.run
