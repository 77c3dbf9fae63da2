"""How processes ended, and the error that ``run`` raises where ``main`` did not return in one.

Of several failures the run raises the one of the lowest (superstep, pid), in its own
type. A note says where it was raised and how many others there are; a mismatch says
where every process was. Frames of bsplib itself are left out of tracebacks, unless the
environment variable ``BSP_TRACEBACK`` is ``full``.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, NoReturn

from bsplib import call_site
from bsplib.backends import signals
from bsplib.backends.base import AFTER_ALL
from bsplib.backends.launching import Death, Ended, Interrupted, TimeIsOver
from bsplib.backends.members import Whereabouts, named
from bsplib.errors import (
    BspError,
    CheckWarning,
    ProcessDiedError,
    RunTimeoutError,
    SyncMismatchError,
)
from bsplib.visible import text_of


class RemoteTraceback(Exception):  # noqa: N818  # shown as a cause, never raised
    """The traceback of the process in which an error was raised."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class Failure(NamedTuple):
    """The error with which a process ended."""

    pid: int
    superstep: int
    error: BaseException
    line: str = ""
    """File and line at which it was raised; empty where that is not known."""
    traceback: str = ""

    @property
    def failed(self) -> bool:
        """True: the process did not return."""
        return True

    def rank(self) -> tuple[int, bool, int]:
        """Return the sort key: the run raises the failure for which it is lowest.

        A mismatch comes after other errors of its superstep: it may be their consequence,
        since a process that has raised does not come to the sync at which others wait for it.
        """
        return self.superstep, isinstance(self.error, SyncMismatchError), self.pid


class Halt(NamedTuple):
    """Where a process waited when the run ended because of another one."""

    line: str

    @property
    def failed(self) -> bool:
        """False: another process has failed."""
        return False


def failure_of(error: BaseException, pid: int, superstep: int) -> Failure:
    """Describe how ``main`` ended where it raised.

    Args:
        error: what it raised, ``SystemExit`` included.
        pid: process of the root group.
        superstep: in which it was, if the error does not have an attribute that says so.
    """
    own = getattr(error, "superstep", None)
    superstep = own if isinstance(own, int) else superstep
    line = call_site.line_of_error(error.__traceback__)
    if isinstance(error, SystemExit):
        status = 0 if error.code is None else error.code
        died = ProcessDiedError(
            f"process {pid} ended by sys.exit({status!r}) in superstep {superstep}; return from "
            f"main"
        )
        died.pid, died.superstep = pid, superstep
        return Failure(pid, superstep, died, line)
    return Failure(pid, superstep, _portable(error), line, _text(error))


def halt_of(stopped: BaseException) -> Halt:
    """Describe where a process was stopped, from the exception that stopped it."""
    return Halt(call_site.line_of_error(stopped.__traceback__))


def _portable(error: BaseException) -> BaseException:
    """Return an error that survives pickling: the given one, or a BspError with its text."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        problem = f"cannot be pickled: {text_of(reason)}"
    else:
        if isinstance(again, BaseException):
            return error
        problem = f"unpickles to {type(again).__name__}, which is no exception"
    portable = BspError(
        f"{type(error).__qualname__}: {text_of(error)} (the error itself {problem})"
    )
    portable.__cause__ = error
    for note in getattr(error, "__notes__", ()):
        portable.add_note(note)
    return portable


# -- the error that run raises --------------------------------------------------------------


def raise_first(ended: Mapping[int, Ended | Death], hosts: Mapping[int, str]) -> NoReturn:
    """Raise the first of the failures, of which there is one at least.

    Args:
        ended: how processes ended, by pid, as far as it is known.
        hosts: names of hosts by pid, where there are several.
    """
    outcomes = {
        pid: Failure(pid, each.superstep, each.error()) if isinstance(each, Death) else each
        for pid, each in ended.items()
    }
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, Failure)]
    first = min(failures, key=Failure.rank)
    error = first.error
    others = sum(f is not first and not isinstance(f.error, SyncMismatchError) for f in failures)
    if isinstance(error, SyncMismatchError):
        _name_lines(error, outcomes)
    note = _note(first, others, hosts.get(first.pid, ""))
    if note:
        with contextlib.suppress(Exception):  # a foreign __setattr__ may forbid it
            error.add_note(note)
    if error.__traceback__ is None and first.traceback:  # it came from another process
        raise error from RemoteTraceback(first.traceback)
    raise error


def words_of(failure: Failure, hosts: Mapping[int, str]) -> str:
    """Return the text that Python prints for the error of one process; hosts as for the above."""
    import traceback  # noqa: PLC0415  # few programs fail

    try:
        raise_first({failure.pid: failure}, hosts)
    except BaseException as error:  # noqa: BLE001  # it is printed
        trim(error)
        return "".join(traceback.format_exception(error))


def _note(failure: Failure, others: int, host: str) -> str:
    """Return where an error was raised, unless its text says so already."""
    more = f"{others} more process{'es' if others > 1 else ''} failed" if others else ""
    if isinstance(failure.error, BspError) and failure.error.pid is not None:
        is_named = not host or f" on host {host}" in str(failure.error)
        where = "" if is_named else f"process {failure.pid} is on host {host}"
        parts = "; ".join(filter(None, (where, more)))
        return f"[{parts}]" if parts else ""
    at = f"process {failure.pid}{f' on host {host}' if host else ''}, "
    at += call_site.END if failure.superstep == AFTER_ALL else f"superstep {failure.superstep}"
    if failure.line and failure.superstep != AFTER_ALL:
        at += f", {failure.line}"
    return f"[{at}; {more}]" if more else f"[{at}]"


def _name_lines(error: SyncMismatchError, outcomes: Mapping[int, Any]) -> None:
    """Add to a mismatch where every process waited, if they waited at several places."""
    at: dict[str, list[int]] = {}
    for pid, outcome in sorted(outcomes.items()):
        if isinstance(outcome, Failure | Halt) and outcome.line:
            at.setdefault(outcome.line, []).append(pid)
    if len(at) < 2:
        return
    text, bracket, line = str(error).partition(" [process ")
    waiting = ", ".join(
        f"{named(pids)} {'wait' if len(pids) > 1 else 'waits'} at "
        f"{'the ' if line == call_site.END else ''}{line}"
        for line, pids in at.items()
    )
    error.args = (f"{text}; {waiting}{bracket}{line}", *error.args[1:])


# -- tracebacks -----------------------------------------------------------------------------


def _is_full() -> bool:
    return os.environ.get("BSP_TRACEBACK") == "full"


def _text(error: BaseException) -> str:
    """Return the traceback of an error without frames of bsplib."""
    import traceback  # noqa: PLC0415  # few programs fail

    trim(error)
    return "".join(traceback.format_exception(error))


def trim(error: BaseException) -> None:
    """Take frames of bsplib out of the tracebacks of an error, its causes and its parts.

    An error of another kind than bsplib's own keeps all frames if all are of bsplib: it
    shows a mistake there. A ``raise`` that follows in the ``except`` clause does not add its
    own frame.
    """
    if not _is_full():
        _trim(error, set())


def _trim(error: BaseException | None, seen: set[int]) -> None:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    kept = [
        frame
        for frame in _frames(error.__traceback__)
        if not call_site.is_own(frame.tb_frame.f_code)
    ]
    own = isinstance(error, BspError | CheckWarning | KeyboardInterrupt | MemoryError)
    if kept or own or isinstance(error.__cause__, RemoteTraceback):
        for outer, inner in zip(kept, [*kept, None][1:], strict=True):
            outer.tb_next = inner
        BaseException.with_traceback(error, kept[0] if kept else None)
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for other in (error.__cause__, error.__context__, *parts):
        _trim(other, seen)


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def show_error(error: BaseException, script: str) -> int:
    """Print the traceback of an error as Python does, beginning with the frame of the script.

    Args:
        error: what the script raised.
        script: path of the script; the frames that called it are left out.

    Returns:
        The exit status that Python has after such an error.
    """
    import traceback  # noqa: PLC0415  # few programs fail

    trim(error)
    whole = error.__traceback__
    if not _is_full():
        inside = (each for each in _frames(whole) if each.tb_frame.f_code.co_filename == script)
        whole = next(inside, whole)
    traceback.print_exception(type(error), error, whole)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


# -- where the processes of a run are: a table, errors that show it, and Ctrl-backslash -----------


_STANDARD_ERROR = 2
_WAITS = "waiting"
_ENDED = "has ended"


def answer_questions() -> None:
    """Print where the processes of a run are when this process gets SIGQUIT; it goes on."""
    signals.install_quit(_print)


def _print(rows: Sequence[Whereabouts]) -> None:
    # Not through sys.stderr: the signal may have come while that writes.
    with contextlib.suppress(OSError):
        os.write(_STANDARD_ERROR, f"{whereabouts_text(rows)}\n".encode())


def whereabouts_text(rows: Sequence[Whereabouts]) -> str:
    """Return a table of where processes are, and a sentence that says which of them do not wait."""
    waiting = [row for row in rows if row.doing.startswith(_WAITS)]
    busy = [row.pid for row in rows if row not in waiting and row.doing != _ENDED]
    lines = [table(rows)]
    if waiting and busy:
        lines.append(f"Only {named(busy)} {'does' if len(busy) == 1 else 'do'} not wait.")
    elif waiting:
        lines.append("Every process that has not ended waits.")
    return "\n".join(lines)


_HEADINGS = ("process", "superstep", "line", "")


def error_of(ended: TimeIsOver | Interrupted, timeout: float | None) -> BaseException:
    """Return what a run raises that took longer than its timeout, or was interrupted."""
    if isinstance(ended, TimeIsOver):
        return RunTimeoutError(
            f"run: the program took longer than timeout={timeout:g} seconds; its processes were "
            f"here:\n{table(ended.rows)}"
        )
    ended.interrupt.add_note(f"The processes of the run were here:\n{table(ended.rows)}")
    return ended.interrupt


def table(rows: Iterable[Whereabouts]) -> str:
    """Return a table of where processes are; those at the same line of the program share a row."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for pid, superstep, line, doing in sorted(rows):
        alike.setdefault((str(superstep), line, doing), []).append(pid)
    lines = [_HEADINGS, *((_ranges(pids), *row) for row, pids in alike.items())]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _ranges(pids: Sequence[int]) -> str:
    """Return numbers in increasing order as text, such as ``0, 2-5``."""
    parts: list[list[int]] = []
    for pid in pids:
        if parts and parts[-1][-1] == pid - 1:
            parts[-1][1:] = [pid]
        else:
            parts.append([pid])
    return ", ".join("-".join(map(str, part)) for part in parts)
