"""How processes share a terminal: whole lines of output, with their pids, and ``breakpoint()``.

Processes that share a terminal, a pipe or a file would mix their lines: a full buffer is
written in the middle of a line, and ``print(..., end="")`` writes a part of one. The
streams of this module write a line at once, when it is complete.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from bsplib.errors import UsageError

with suppress(ImportError):  # not on Windows
    import fcntl

CurrentPid = Callable[[], int | None]


class WholeLines:
    """A text stream that writes whole lines.

    The beginning of a line is kept until its end is written. Without labels ``flush`` writes
    it at once, so that a program can show a progress bar.

    Args:
        stream: to which the lines are written.
        current_pid: returns the pid of the process that prints; None outside every process, where
            lines get no label.
        label: whether the pid stands in front of a line.
    """

    def __init__(self, stream: TextIO, current_pid: CurrentPid, *, label: bool) -> None:
        self._stream = stream
        self._current_pid = current_pid
        self._label = label
        self._begun: dict[int | None, list[str]] = {}  # lines without an end yet, by pid
        self._is_used = False
        self._lock: _Lock | None = None

    def __getattr__(self, name: str) -> Any:
        """Return what else the stream has, such as its encoding, or its buffer for bytes."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the lines that are complete, and keep the rest."""
        pid = self._current_pid()
        begun = self._begun.setdefault(pid, [])
        lines, end, rest = text.rpartition("\n")
        if end:
            self._write("".join([*begun, lines, end]), pid)
            begun.clear()
        begun.append(rest)
        return len(text)

    def _write(self, text: str, pid: int | None) -> None:
        if self._label and pid is not None:
            text = "".join(f"[{pid}] {line}\n" for line in text.split("\n")[:-1])
        if not self._is_used:
            self._is_used, self._lock = True, _lock_of(self._stream)
        with _held(self._lock):
            self._stream.write(text)
            self._stream.flush()

    def flush(self) -> None:
        """Write the line that is not complete yet, if lines have no labels."""
        if not self._label and (rest := "".join(self._begun.pop(self._current_pid(), []))):
            self._write(rest, None)
        self._stream.flush()

    def close(self) -> None:
        """Write the lines that are not complete yet."""
        rests, self._begun = self._begun, {}
        try:
            for pid, begun in rests.items():
                if rest := "".join(begun):
                    self._write(f"{rest}\n" if self._label else rest, pid)
        finally:
            self._lock = None

    def writelines(self, texts: Iterable[str]) -> None:
        """Write texts, which have their own ends of lines."""
        for text in texts:
            self.write(text)


class _Lock:
    """A descriptor that is closed when nobody uses it any more.

    Where runs of several threads overlap, one thread writes to the stream that another one closes.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def _lock_of(stream: TextIO) -> _Lock | None:
    """Return a descriptor of a stream's file that only this process has, for locking it.

    The system writes a line in one piece only up to a certain length (4096 bytes on a
    pipe); a lock keeps longer ones in one piece. None where the stream is no file, or its
    file cannot be opened again: then only short lines are sure to stay in one piece.
    """
    if sys.platform != "linux":
        return None
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return _Lock(os.open(f"/proc/self/fd/{stream.fileno()}", flags))
    except (OSError, ValueError):
        return None


@contextmanager
def _held(lock: _Lock | None) -> Iterator[None]:
    if lock is None:
        yield
        return
    fcntl.flock(lock.descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(lock.descriptor, fcntl.LOCK_UN)


@contextmanager
def whole_lines(current_pid: CurrentPid, *, label: bool) -> Iterator[None]:
    """Write what is printed inside the block to standard output and error in whole lines.

    Args:
        current_pid: returns the pid of the process that prints; None outside every process.
        label: whether the pid stands in front of a line.
    """
    before: Any = sys.stdout, sys.stderr
    # A program without a terminal may have no streams.
    ours = [stream and WholeLines(stream, current_pid, label=label) for stream in before]
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in ours:
            if stream:
                stream.close()


# -- ``breakpoint()`` in the real processes of a run, of which none has the keyboard --------------
# On virtual processors it works as anywhere: they live in the process that has the terminal.


TERMINAL = "/dev/tty"
"""The terminal of a process, whatever its standard input and output are."""


@contextmanager
def breakpoints(debugged: int | None, pid: int) -> Iterator[None]:
    """Let ``breakpoint()`` do what this process can do, inside the block.

    A hook that the program has set, and the variable PYTHONBREAKPOINT, stay in force.

    Args:
        debugged: the process that is debugged in the terminal, where one is.
        pid: this process.
    """
    before = sys.breakpointhook
    if before is sys.__breakpointhook__ and "PYTHONBREAKPOINT" not in os.environ:
        sys.breakpointhook = _hook(debugged, pid)
    try:
        yield
    finally:
        sys.breakpointhook = before


def _hook(debugged: int | None, pid: int) -> Callable[..., Any]:
    def debug(*_: Any, **__: Any) -> None:
        import pdb  # noqa: PLC0415  # few runs need it

        try:
            keyboard, screen = open(TERMINAL), open(TERMINAL, "w")  # noqa: SIM115  # they stay open
        except OSError as error:
            raise UsageError(
                f"breakpoint: process {pid} has no terminal ({error.strerror}); use backend='sim'"
            ) from None
        pdb.Pdb(stdin=keyboard, stdout=screen, nosigint=True).set_trace(sys._getframe(1))

    def refuse(*_: Any, **__: Any) -> None:
        raise UsageError(
            f"breakpoint: process {pid} cannot read what you type; start the script by "
            f"bsp run --debug {pid}, or run it with backend='sim'"
        )

    def pass_by(*_: Any, **__: Any) -> None:
        """Do nothing: another process is debugged."""

    if debugged is None:
        return refuse
    return debug if debugged == pid else pass_by
