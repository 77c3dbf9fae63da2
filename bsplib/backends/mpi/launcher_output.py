"""What mpiexec writes: lines of the ranks, which are passed on, and its own last words."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from codecs import getincrementaldecoder
from collections import deque
from typing import IO

_READ = 1 << 16
_KEPT_LINES = 40
_RULE = re.compile(r"\W*")
"""A line without a word."""


class LauncherOutput:
    """The standard output and error of mpiexec.

    What it writes is held back until :meth:`show`: before all ranks have started it may belong
    to the error that says why they did not.

    Args:
        launcher: mpiexec.
    """

    def __init__(self, launcher: subprocess.Popen[bytes]) -> None:
        assert launcher.stdout is not None
        assert launcher.stderr is not None
        self._pipes: dict[int, IO[bytes]] = {}
        self._decoders = {}
        self._errors = launcher.stderr.fileno()
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._held: list[tuple[int, str]] | None = []
        for pipe in (launcher.stdout, launcher.stderr):
            os.set_blocking(pipe.fileno(), False)
            self._pipes[pipe.fileno()] = pipe
            self._decoders[pipe.fileno()] = getincrementaldecoder("utf-8")("replace")

    def descriptors(self) -> list[int]:
        """Return the descriptors that can be read when something has been written."""
        return [*self._pipes]

    def read(self) -> list[int]:
        """Read what has come, and write it to this process's own streams, unless it is held back.

        Returns:
            Descriptors that have ended.
        """
        ended = []
        for descriptor, pipe in [*self._pipes.items()]:
            with contextlib.suppress(BlockingIOError):
                while data := os.read(descriptor, _READ):
                    self._take(descriptor, self._decoders[descriptor].decode(data))
                ended.append(descriptor)
                del self._pipes[descriptor]
                pipe.close()
        return ended

    def _take(self, descriptor: int, text: str) -> None:
        self._lines += text.splitlines()
        if self._held is not None:
            self._held.append((descriptor, text))
            return
        stream = sys.stderr if descriptor == self._errors else sys.stdout
        if stream is not None:
            stream.write(text)
            stream.flush()

    def show(self) -> None:
        """Write what was held back, and hold nothing back from now on."""
        held, self._held = self._held or [], None
        for descriptor, text in held:
            self._take(descriptor, text)

    def hide(self) -> None:
        """Show nothing from now on."""
        self._held = []

    def last_words(self) -> str:
        """Return the last lines that have words, as one line."""
        words = [line.strip() for line in self._lines if not _RULE.fullmatch(line)]
        return " ".join(words[-6:])

    def close(self) -> None:
        """Close the pipes."""
        for pipe in self._pipes.values():
            pipe.close()
        self._pipes.clear()
