"""The command that starts the ranks of a job: ``mpiexec``, or what the site has in its place."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import time
from codecs import getincrementaldecoder
from collections import deque
from pathlib import Path
from typing import IO

from bsplib.backends import hash_seed
from bsplib.backends.blas import one_thread_where_loaded
from bsplib.backends.mpi.hub import Hub
from bsplib.backends.mpi.installations import Starter
from bsplib.backends.mpi.rank import Beginning
from bsplib.backends.mpi.watcher import SENTENCE
from bsplib.errors import StartError

_READ = 1 << 16
_KEPT_LINES = 40
_LAST_LINES = 10
_RULE = re.compile(r"\W*")
"""A line without a word."""
_AS_ROOT = (
    "Open MPI does not start as root, as in a container: set OMPI_ALLOW_RUN_AS_ROOT=1 and "
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment"
)
_TERM_S = 0.5
"""Seconds for mpiexec to end after SIGTERM."""
_KILLED_S = 10.0
"""The same after SIGKILL, which a busy system may deliver late."""


class Launcher:
    """A running mpiexec.

    What it writes is held back until :meth:`show`: before all ranks have started it may belong
    to the error that says why they did not.

    Args:
        starter: the command.
        size: number of ranks.

    Raises:
        StartError: there is no such command.
    """

    def __init__(self, starter: Starter, size: int) -> None:
        program = (sys.executable, "-m", "bsplib.backends.mpi.rank", str(size), hash_seed.seed())
        try:
            with one_thread_where_loaded(), hash_seed.one_seed():
                self._process = subprocess.Popen(
                    [*starter.command, "-n", str(size), *program],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={**os.environ, **_python_path(), **dict(starter.variables)},
                    start_new_session=True,  # Ctrl-C is handled by the driver
                )
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StartError(f"run: {starter.text()} cannot be started: {reason}") from None
        self._hub: Hub | None = None
        self._pipes: dict[int, IO[bytes]] = {}
        self._decoders = {}
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._held: list[tuple[int, str]] | None = []
        for number, pipe in ((1, self._process.stdout), (2, self._process.stderr)):
            assert pipe is not None  # asked for above
            os.set_blocking(pipe.fileno(), False)
            self._pipes[number] = pipe
            self._decoders[number] = getincrementaldecoder("utf-8")("backslashreplace")

    def begin(self, hub: Hub) -> None:
        """Tell rank 0 through standard input how all ranks begin; nobody else can read it."""
        beginning = Beginning(hub.address(), sys.path, sys.argv, _folder())
        self._hub = hub
        for pipe in self._pipes.values():
            hub.also(pipe.fileno(), watch=True)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as pipe:  # see why_ended
            pipe.write(pickle.dumps(beginning).hex().encode() + b"\n")

    def why_ended(self) -> str:
        """Return how it ended; empty while it runs."""
        status = self._process.poll()
        return "" if status is None else f"it ended with status {status}"

    # -- what it writes ---------------------------------------------------------------------

    def read(self) -> None:
        """Read what it has written, and write it to this process's own streams."""
        for number, pipe in [*self._pipes.items()]:
            with contextlib.suppress(BlockingIOError):
                while data := os.read(pipe.fileno(), _READ):
                    self._take(number, self._decoders[number].decode(data))
                if self._hub is not None:
                    self._hub.also(pipe.fileno(), watch=False)
                pipe.close()
                del self._pipes[number]

    def _take(self, number: int, text: str) -> None:
        self._lines += text.splitlines()
        if self._held is not None:
            self._held.append((number, text))
            return
        stream = sys.stderr if number == 2 else sys.stdout
        if stream is not None:
            stream.write(text)
            stream.flush()

    def show(self) -> None:
        """Write what was held back, and hold nothing back from now on."""
        held, self._held = self._held or [], None
        for number, text in held:
            self._take(number, text)

    def hide(self) -> None:
        """Show nothing from now on."""
        self._held = []

    def last_words(self) -> tuple[str, str]:
        """Return the first sentence of a rank or about root, if any, and the last words."""
        lines = [line.strip() for line in self._lines if not _RULE.fullmatch(line)]
        sentences = [line.partition(SENTENCE)[2] for line in lines if SENTENCE in line]
        sentences += [_AS_ROOT for line in lines if "attempt to run as root" in line]
        return sentences[0] if sentences else "", " ".join(lines[-_LAST_LINES:])

    # -- the end ----------------------------------------------------------------------------

    def end(self, seconds: float) -> None:
        """Wait for the end of the launcher; if it does not come, end it and its process group.

        Args:
            seconds: how long to wait before the launcher is ended by force.
        """
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
            if self._has_ended(time.monotonic() + (_TERM_S if number else seconds)):
                break
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILLED_S)
        self._close()

    def _has_ended(self, deadline: float) -> bool:
        """Read what it writes until it has ended; return whether it has before a time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            while self._pipes and (left := deadline - time.monotonic()) > 0:
                if not select.select(self._pipes.values(), [], [], left)[0]:
                    break
                self.read()
            self._process.wait(max(deadline - time.monotonic(), 0))
        return self._process.returncode is not None

    def forget(self) -> None:
        """In a forked process: close what belongs to the parent."""
        self._close()
        self._process.returncode = 0  # otherwise Python warns that it runs

    def _close(self) -> None:
        for pipe in self._pipes.values():
            pipe.close()
        self._pipes.clear()


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.sep


def _python_path() -> dict[str, str]:
    """Return the environment in which ranks find bsplib where it is not installed."""
    folder = Path(__file__).parents[3]
    if folder.name in ("site-packages", "dist-packages"):
        return {}
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *([before] if before else [])])}
