"""The recording of one run, from the checks before its start to the trace.

The processes write their records to a folder ``.bsp-records-...`` beside the trace. When
the run ends, the trace is made from this folder, and the folder is removed. A failure to
record never loses the results: a failure that can be foreseen is an error before anything
starts; a later one is a ``TraceWarning``. If the caller is killed, or the trace cannot be
written, the folder is kept, and ``bsp recover FOLDER`` makes the trace.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from bsplib.backends.members import named
from bsplib.errors import TraceError, TraceWarning, UsageError
from bsplib.recording.collect import Collected, collect, first_half, has_ended
from bsplib.recording.folder_lock import lock_if_possible
from bsplib.recording.output_file import UNFINISHED, obstacle
from bsplib.recording.records import RECORD, TRAFFIC, Run, Trace
from bsplib.recording.signal_notice import SignalNotice
from bsplib.recording.spool import HEADER, ROWS_AT_FIRST
from bsplib.recording.trace import read_trace, write_trace
from bsplib.recording.trace_document import FORMAT_VERSION, MAX_NPROCS, TooLongError
from bsplib.visible import text_of

_PREFIX = ".bsp-records-"
_ABOUT = "run.json"
_FORMAT = "bsplib records"
_FIRST_BYTES = 2 * HEADER.size + ROWS_AT_FIRST * (RECORD.itemsize + TRAFFIC.itemsize)
"""Size of the files of a process before it has recorded anything."""
_MAX_ERROR_TEXT = 4096
_MAX_ABOUT = 2**24

_Signature = tuple[int, int, int]

_written: dict[Path, _Signature] = {}
"""Traces that this program has written, with their signatures; its later runs are added."""


class Recording:
    """The recording of a run that is about to start.

    Args:
        path: file for the trace.
        nprocs: number of processes.
        meta: metadata for the run, as in ``Run.meta``.

    Raises:
        UsageError: the trace, or the records beside it, cannot be written.
        TraceError: an earlier run of this program wrote the trace, and the file has been
            damaged since.
    """

    def __init__(self, path: Path, nprocs: int, meta: dict[str, Any]) -> None:
        if reason := obstacle(path):
            raise UsageError(f"profile: {reason}")
        self.target = Path(os.path.realpath(path))
        self._nprocs = nprocs
        self._meta = meta
        self._added = is_begun(self.target)
        if self._added and _signature(self.target) != _written[self.target]:
            _check_earlier(self.target)
        self.folder = self._make_folder()
        """Where the processes write their records."""
        self._lock = lock_if_possible(self.folder)
        self._signal_notice = SignalNotice(self._kept())

    def _make_folder(self) -> Path:
        folder = None
        try:
            disk = os.statvfs(self.target.parent)
            needed, free = self._nprocs * _FIRST_BYTES, disk.f_bavail * disk.f_frsize
            if needed > free:
                raise UsageError(
                    f"profile: the records of {self._nprocs} processes need at least {needed} "
                    f"bytes, and {free} are free in {self.target.parent}"
                )
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self.target.parent))
            about = {
                "format": _FORMAT,
                "version": FORMAT_VERSION,
                "nprocs": self._nprocs,
                "target": str(self.target),
                "added": self._added,
                "meta": self._meta,
            }
            (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
        except OSError as error:
            if folder is not None:
                remove(folder, 0)
            raise UsageError(
                f"profile: no records can be written in {self.target.parent}: {error.strerror}"
            ) from None
        return folder

    def end(self, error: BaseException | None = None) -> None:
        """Make the trace, and warn if records were lost.

        Args:
            error: the error that ended the run, if any.
        """
        if error is not None:
            self._meta["error"] = _error_text(error)
        try:
            losses = self._make_trace(complete=error is None)
        except BaseException as interruption:
            interruption.add_note(self._kept())
            raise
        finally:
            self._signal_notice.cancel()
            if self._lock is not None:
                os.close(self._lock)
        if losses:
            # Where warnings are errors, this one must not hide the error of the run.
            with contextlib.suppress(TraceWarning) if error else contextlib.nullcontext():
                warnings.warn(f"profile: {losses}", TraceWarning, stacklevel=4)

    def _kept(self) -> str:
        """Return a sentence that says where the records are and how to make a trace of them."""
        return (
            f"the records are kept in {self.folder}; make a trace of them (with --out FILE in "
            f"another file) by: bsp recover {quote(str(self.folder))}"
        )

    def _make_trace(self, *, complete: bool) -> str:
        """Write the trace and remove the folder; return a text about what was lost."""
        if not self.folder.exists():
            return f"{self.folder} was removed while the program ran; no trace was written"
        try:
            found = collect(self.folder, self._nprocs, complete=complete, meta=self._meta)
            losses = _losses(found)
            if losses:
                found.run.meta.setdefault("error", losses)
            left_out = self._add(found.run) if found.begun else ""
        except Exception as error:  # noqa: BLE001  # the results of the run are returned anyway
            return f"no trace was written: {_reason(error)}; {self._kept()}"
        remove(self.folder, self._nprocs)
        if losses and not found.begun:
            return f"{losses}; no trace was written"
        holds = f"{self.target} holds the supersteps that all processes recorded before"
        return "; ".join(filter(None, [losses, left_out, (losses or left_out) and holds]))

    def _add(self, run: Run) -> str:
        """Write the trace, without the end of a run that is too long; return what was left out."""
        earlier = read_trace(self.target).runs if is_begun(self.target) else ()
        _, left_out = _write_fitting(self.target, earlier, run, self.folder)
        _written[self.target] = _signature(self.target)
        return left_out


def is_begun(path: Path) -> bool:
    """Tell whether this program has recorded a run in this file, and the file still exists."""
    target = Path(os.path.realpath(path))
    return target in _written and target.exists()


def recover(folder: Path, out: Path | None = None) -> tuple[Path, Run]:
    """Make the trace of a run whose caller was killed, and remove the folder of its records.

    Args:
        folder: folder of the records.
        out: file for the trace; default: the file that the run would have written.

    Returns:
        The file, and the run as far as it was recorded.

    Raises:
        TraceError: the folder holds no records, or the run has not ended.
        UsageError: the trace cannot be written there.
    """
    about = _read_about(folder)
    # Only the name is taken from the folder, whose content is not trusted: the trace is
    # written beside the folder, wherever that is now.
    target, nprocs = out or folder.absolute().parent / Path(about["target"]).name, about["nprocs"]
    if reason := obstacle(target):
        raise UsageError(f"recover: {reason}")
    earlier: tuple[Run, ...] = ()
    if out is None and target.exists():
        if not about["added"]:
            raise UsageError(f"recover: {target} exists already; give another file by --out")
        earlier = read_trace(target).runs
    held = lock_if_possible(folder)
    if held is None:
        raise TraceError(f"{folder}: the run that records here is still running")
    try:
        run = _recovered(collect(folder, nprocs, complete=False, meta=about["meta"]))
        run, _ = _write_fitting(target, earlier, run)
        remove(folder, nprocs)
    except OSError as error:
        raise UsageError(f"recover: {target} cannot be written: {error.strerror}") from None
    finally:
        os.close(held)
    return target, run


def _recovered(found: Collected) -> Run:
    """Mark a run as complete if all its processes reached the end of ``main``."""
    if has_ended(found.run) and not found.lost:
        return replace(found.run, complete=True)
    reason = _losses(found) or "the program was killed while it recorded"
    found.run.meta.setdefault("error", reason)
    return found.run


def _write_fitting(
    target: Path, earlier: tuple[Run, ...], run: Run, scratch: Path | None = None
) -> tuple[Run, str]:
    """Write a trace; leave out the end of its last run if the trace is too long to be read.

    Returns:
        The last run as it was written, and a text about what was left out of it.

    Raises:
        TooLongError: the trace is too long even with no record of the last run.
    """
    left_out = ""
    while True:
        try:
            write_trace(target, Trace((*earlier, run)), scratch=scratch)
        except TooLongError as error:
            if len(run.records) == 0:
                raise
            left_out = f"the end of the run was left out, since {_reason(error)}"
            run = first_half(run)
            run.meta.setdefault("error", left_out)
        else:
            return run, left_out


def remove(folder: Path, nprocs: int) -> None:
    """Remove a folder of records; files that no recording wrote are kept, and the folder then, too.

    Args:
        folder: the folder.
        nprocs: number of processes that recorded in it.
    """
    parts = ("records", "traffic", "definitions")
    names = [_ABOUT, *(f"{pid}.{part}" for pid in range(nprocs) for part in parts)]
    with contextlib.suppress(OSError):  # the folder may have been removed already
        for path in (*(folder / name for name in names), *folder.glob(f"{UNFINISHED}*")):
            path.unlink(missing_ok=True)
        folder.rmdir()


def _read_about(folder: Path) -> dict[str, Any]:
    """Return the description of the run that a recording wrote into its folder."""
    try:
        with (folder / _ABOUT).open(encoding="utf-8") as file:
            about = json.loads(file.read(_MAX_ABOUT))
        sound = (about["format"], about["version"]) == (_FORMAT, FORMAT_VERSION)
        sound = sound and type(about["nprocs"]) is int and 1 <= about["nprocs"] <= MAX_NPROCS
        sound = sound and isinstance(about["target"], str) and isinstance(about["meta"], dict)
    except OSError as error:
        reason = f"{_ABOUT} cannot be read: {error.strerror}"
        raise TraceError(f"{folder} is no folder of records: {reason}") from None
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise TraceError(f"{folder} is no folder of records: {_ABOUT}: {error}") from None
    if not sound or not isinstance(about["added"], bool):
        raise TraceError(f"{folder} holds no records that this version of bsplib reads")
    return about  # type: ignore[no-any-return]  # checked above


def _check_earlier(target: Path) -> None:
    try:
        read_trace(target)
    except TraceError as error:
        raise TraceError(
            f"profile: {error} The runs of this program are added to that file: remove it, or "
            "name another one"
        ) from None


def _signature(path: Path) -> _Signature:
    """Return a value that changes when a file is replaced or written to."""
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _losses(found: Collected) -> str:
    """Say which processes stopped recording, and why."""
    by_reason: dict[str, list[int]] = {}
    for pid, reason in found.lost.items():
        by_reason.setdefault(reason, []).append(pid)
    return "; ".join(
        f"{named(pids)} stopped recording: {reason}" for reason, pids in by_reason.items()
    )


def _error_text(error: BaseException) -> str:
    """Return the type and the text of an error, up to a maximal length."""
    return f"{type(error).__name__}: {text_of(error)}"[:_MAX_ERROR_TEXT]


def _reason(error: BaseException) -> str:
    """Return the text of an error, for the middle of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error).rstrip(".") or type(error).__name__
