"""Lines that carry the pid of the process that printed them."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

WhoPrints = Callable[[], int | None]


class _Labelled(io.TextIOBase):
    """A text stream that writes whole lines, each with the pid in front."""

    def __init__(self, stream: TextIO, who: WhoPrints) -> None:
        self._stream = stream
        self._who = who
        self._begun: dict[int | None, str] = {}  # lines without an end yet, by pid

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        pid = self._who()
        *lines, rest = (self._begun.get(pid, "") + text).split("\n")
        self._begun[pid] = rest
        for line in lines:
            self._stream.write(line + "\n" if pid is None else f"[{pid}] {line}\n")
        if lines:
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def close(self) -> None:
        for pid, line in self._begun.items():
            if line:
                self._stream.write(f"[{pid}] {line}\n")
        self._begun.clear()


def label_streams(who: WhoPrints) -> tuple[TextIO, TextIO]:
    """Return standard output and error so that every line begins with a pid.

    Args:
        who: tells which process prints; None for none, whose lines stay as they are.
    """
    # A text stream in all but the type: only what print needs is there.
    return _Labelled(sys.stdout, who), _Labelled(sys.stderr, who)  # type: ignore[return-value]


@contextmanager
def labelled_lines(who: WhoPrints) -> Iterator[None]:
    """Label all lines that are printed inside."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = label_streams(who)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.close()
        sys.stdout, sys.stderr = before
