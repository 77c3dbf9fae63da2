"""The recording of one run, from the checks before its start to the trace.

The processes write their records to a folder ``.bsp-records-...`` beside the trace, or send
them there at the end (:mod:`bsplib.recording.parts`). When the run ends, the trace is made
from this folder, and the folder is removed. A failure to record never loses the results: a
failure that can be foreseen is an error before anything starts; a later one is a
``TraceWarning``. If the caller is killed, or the trace cannot be written, the folder is kept,
and ``bsp recover FOLDER`` makes the trace.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from shutil import disk_usage
from types import FrameType
from typing import Any

from bsplib import call_site
from bsplib.errors import TraceError, TraceWarning, UsageError
from bsplib.output_file import TRACE, obstacle
from bsplib.recording.collect import collect, write_fitting
from bsplib.recording.lifetimes import Caller
from bsplib.recording.parts import Destination
from bsplib.recording.record_folder import (
    PREFIX,
    About,
    lock_if_possible,
    one_writer,
    remove,
    write_about,
)
from bsplib.recording.records import MAX_TEXT, RECORD, TRAFFIC, Run
from bsplib.recording.recovery import elsewhere
from bsplib.recording.sources import with_digests
from bsplib.recording.spool import HEADER, ROWS_AT_FIRST
from bsplib.recording.trace import read_trace
from bsplib.visible import text_of

_FIRST_BYTES = 2 * HEADER.size + ROWS_AT_FIRST * (RECORD.itemsize + TRAFFIC.itemsize)
"""Size of the files of a process before it has recorded anything."""

_Signature = tuple[int, int, int]

_written: dict[Path, _Signature] = {}
"""Traces that this program has written, with their signatures; its later runs are added."""


class Recording:
    """The recording of a run that is about to start.

    Args:
        path: file for the trace.
        nprocs: number of processes.
        meta: metadata for the run, as in ``Run.meta``.
        spread: processes may be on other hosts.
        caller: has noted when the run was called; None: it is called now, in real time.

    Raises:
        UsageError: the trace, or the records beside it, cannot be written.
        TraceError: an earlier run of this program wrote the trace, and the file has been
            damaged since.
    """

    def __init__(
        self,
        path: Path,
        nprocs: int,
        meta: dict[str, Any],
        *,
        spread: bool = False,
        caller: Caller | None = None,
    ) -> None:
        if reason := obstacle(path, TRACE):
            raise UsageError(f"profile: {reason}")
        self.target = Path(os.path.realpath(path))
        self._nprocs = nprocs
        self._meta = meta
        self._started_s = time.time()
        self._caller = caller or Caller(is_virtual=False)
        self._added = is_begun(self.target)
        if self._added and _signature(self.target) != _written[self.target]:
            _check_earlier(self.target)
        replaces = self.target.exists() and not self._added
        self._replaced = _signature(self.target) if replaces else None
        self._about: About = {
            "nprocs": nprocs,
            "target": str(self.target),
            "added": self._added,
            "run": os.urandom(16).hex(),
            "spread": spread,
            "meta": meta,
        }
        self.folder = self._make_folder()
        """Holds the records of all processes in the end."""
        self.destination = Destination(self.folder, self._about)
        """Where the processes write their records."""
        self._lock = lock_if_possible(self.folder)
        self._signal_notice = SignalNotice(self._kept())

    def _make_folder(self) -> Path:
        folder = None
        try:
            needed, free = self._nprocs * _FIRST_BYTES, disk_usage(self.target.parent).free
            if needed > free:
                raise UsageError(
                    f"profile: the records of {self._nprocs} processes need at least {needed} "
                    f"bytes, and {free} are free in {self.target.parent}"
                )
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self.target.parent))
            write_about(folder, self._about)
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
            text = text_of(error)  # a KeyboardInterrupt has none
            kind = type(error).__name__
            self._meta["error"] = (f"{kind}: {text}" if text else kind)[:MAX_TEXT]
        self._caller.end(is_complete=error is None)
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
                call_site.warn(f"profile: {losses}", TraceWarning)

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
            self._caller.returned = time.perf_counter_ns()
            folders = [self.folder] * self._nprocs
            found = collect(folders, complete=complete, meta=self._meta, caller=self._caller)
            if found.begun and found.missing and self._about["spread"]:
                return f"no trace was written: {elsewhere(self.folder, self._about, found.missing)}"
            losses = found.losses()
            if losses:
                found.run.meta.setdefault("error", losses)
            run = with_digests(found.run, self._started_s)
            is_sound = complete and not losses
            left_out = ""
            if found.begun:
                with self._earlier() as earlier:
                    _, left_out = write_fitting(
                        self.target, earlier, run, self.folder, is_sound=is_sound
                    )
        except Exception as error:  # noqa: BLE001  # the results of the run are returned anyway
            return f"no trace was written: {_reason(error)}; {self._kept()}"
        remove(self.folder, self._nprocs)
        if losses and not found.begun:
            return f"{losses}; no trace was written"
        holds = f"{self.target} holds the supersteps that all processes recorded before"
        return "; ".join(filter(None, [losses, left_out, (losses or left_out) and holds]))

    @contextlib.contextmanager
    def _earlier(self) -> Iterator[tuple[Run, ...]]:
        """Give the runs to which this one is added; other runs may end at the same moment.

        A trace that was there before the program is replaced, but not what was written to it
        since this run has begun, by a process or a program beside this one.
        """
        with one_writer():
            there = _signature(self.target) if self.target.exists() else self._replaced
            replaces = there == self._replaced or obstacle(self.target, TRACE)  # or is refused
            yield () if replaces else read_trace(self.target).runs
            _written[self.target] = _signature(self.target)


def is_begun(path: Path) -> bool:
    """Tell whether this program has recorded a run in this file, and the file still exists."""
    target = Path(os.path.realpath(path))
    return target in _written and target.exists()


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


def _reason(error: BaseException) -> str:
    """Return the text of an error, for the middle of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error).rstrip(".") or type(error).__name__


# -- a notice on standard error when a signal ends this process -----------------------------------


_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Windows has no SIGHUP."""


class SignalNotice:
    """Prints a line if SIGTERM or SIGHUP ends this process.

    It handles only signals for which the program has no handler of its own. Outside the
    main thread it does nothing, since Python allows handlers only there.

    Args:
        text: the line to print.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._pid = os.getpid()
        self._handled: list[int] = []
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) == signal.SIG_DFL:
                    signal.signal(number, self._end)
                    self._handled.append(number)

    def cancel(self) -> None:
        """Restore the default action of the signals."""
        for number in self._handled:
            if signal.getsignal(number) == self._end:  # unless the program set a handler since
                signal.signal(number, signal.SIG_DFL)
        self._handled.clear()

    def _end(self, number: int, _: FrameType | None) -> None:
        if os.getpid() == self._pid:  # not in a forked process that still has the handler
            name = signal.Signals(number).name
            with contextlib.suppress(OSError):
                os.write(2, f"bsp: ended by {name}; {self._text}\n".encode(errors="replace"))
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _cancel_after_fork() -> None:
    """Restore the default action of the signals in a forked process."""
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if isinstance(getattr(handler, "__self__", None), SignalNotice):
            signal.signal(number, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_cancel_after_fork)
