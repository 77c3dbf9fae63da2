"""Lines that carry the pid of the process that printed them."""

from __future__ import annotations

import io
import sys
from typing import TextIO


class _Labelled(io.TextIOBase):
    """A text stream that writes whole lines, each with a label in front."""

    def __init__(self, stream: TextIO, label: str) -> None:
        self._stream = stream
        self._label = label
        self._rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        for line in lines:
            self._stream.write(f"{self._label}{line}\n")
        if lines:
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def close(self) -> None:
        if self._rest:
            self.write("\n")


def label_lines(pid: int) -> None:
    """Let every line that this process prints begin with its pid."""
    sys.stdout = _Labelled(sys.stdout, f"[{pid}] ")
    sys.stderr = _Labelled(sys.stderr, f"[{pid}] ")
