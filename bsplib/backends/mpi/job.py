"""A job: the ranks that one mpiexec has started, as their driver sees them."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from bsplib.backends.blas import one_thread_where_loaded
from bsplib.backends.launching import Death, Ended, JobRunner, Report, Work
from bsplib.backends.mpi import control
from bsplib.backends.mpi.hub import Hub, News
from bsplib.backends.mpi.installations import Starter
from bsplib.backends.mpi.launcher_output import LauncherOutput
from bsplib.backends.mpi.rank import Beginning
from bsplib.backends.outcomes import Limit, await_outcomes
from bsplib.backends.signals import let_through
from bsplib.backends.whereabouts import Whereabouts, from_stack
from bsplib.errors import StartError

START_S = 60.0
"""Seconds within which all ranks have to have joined."""
_LOOK_S = 0.2
_WORDS_S = 0.3
"""Seconds for the last words of mpiexec."""
_LEAVE_S = 5.0
"""Seconds for ranks to leave MPI, and for mpiexec to end after its ranks."""
_PLACE_S = 2.0
"""Seconds to wait until all watchers have said where their ranks are."""


class Job:
    """Ranks that run one piece of work after the other; see :class:`KeptProcesses`.

    Args:
        size: number of ranks.
        starter: how they are started.
    """

    def __init__(self, size: int, starter: Starter) -> None:
        self.size = self.nprocs = size
        self.starter = starter
        self.busy = self.started = False
        self._runner: JobRunner | None = None  # the one that the ranks have
        self._run = 0
        self._read: Callable[[bytes, int], Ended]
        self._ended = False
        self._places: dict[int, Whereabouts] = {}
        self._states: dict[int, str] = {}
        self._hub = Hub()
        self._launcher: subprocess.Popen[bytes] | None = None
        self._output: LauncherOutput | None = None
        self._ready: set[int] = set()

    @property
    def usable(self) -> bool:
        """Whether it can do work."""
        return not self.busy and not self._ended

    # -- the start --------------------------------------------------------------------------

    def start(self) -> None:
        """See :meth:`KeptProcesses.start`."""
        self.busy = True
        try:
            self._launch()
        except OSError as error:
            raise StartError(
                f"run: {self.starter.command[0]} cannot be started: {error.strerror}"
            ) from error
        with let_through():
            deadline = time.monotonic() + START_S
            while len(self._ready) < self.size:
                for news in self._wait(_LOOK_S):
                    self._note_start(news)
                self._check_start(deadline)
        assert self._output is not None
        self._output.show()
        self.busy, self.started = False, True

    def _launch(self) -> None:
        rank = (sys.executable, "-m", "bsplib.backends.mpi.rank", str(self.size))
        with one_thread_where_loaded():
            self._launcher = launcher = subprocess.Popen(
                [*self.starter.command, "-n", str(self.size), *rank],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **_python_path(), **dict(self.starter.variables)},
                start_new_session=True,  # Ctrl-C is handled by the driver
            )
        self._output = LauncherOutput(launcher)
        for descriptor in self._output.descriptors():
            self._hub.also(descriptor, watch=True)
        beginning = Beginning(self._hub.address(), sys.path, sys.argv, os.getcwd())
        assert launcher.stdin is not None
        with contextlib.suppress(OSError), launcher.stdin:  # it has ended: see _check_start
            launcher.stdin.write(pickle.dumps(beginning).hex().encode() + b"\n")

    def _note_start(self, news: News) -> None:
        if news.message is None:
            raise self._start_error(f"process {news.rank} {news.why}")
        if news.message.kind == control.DIED:
            status, _ = control.ENDED.unpack(news.message.content)
            raise self._start_error(f"process {news.rank} ended with status {status}")
        if news.message.kind == control.READY:
            self._ready.add(news.rank)

    def _check_start(self, deadline: float) -> None:
        assert self._launcher is not None
        if self._launcher.poll() is not None:
            raise self._start_error(f"it ended with status {self._launcher.returncode}")
        if time.monotonic() > deadline:
            missing = self.size - len(self._ready)
            raise self._start_error(f"{missing} of them have not joined within {START_S:g} s")

    def _start_error(self, why: str) -> StartError:
        assert self._output is not None
        self._wait(_WORDS_S)
        words = self._output.last_words()
        return StartError(
            f"run: {self.starter.text()} has not started {self.size} processes: {why}"
            + (f"; its last words: {words}" if words else "")
        )

    # -- a run ------------------------------------------------------------------------------

    def run(self, work: Work, timeout: float | None) -> Report:
        """See :meth:`KeptProcesses.run`."""
        return self.run_on(self.size, work, timeout)

    def run_on(self, nprocs: int, work: Work, timeout: float | None) -> Report:
        """Let the first ranks do some work; see :meth:`KeptProcesses.run`."""
        self.busy = True
        self.nprocs = nprocs
        limit = Limit(timeout)
        with let_through():
            runner = work.job_runner
            if runner != self._runner:
                self._hub.send_all(control.RUNNER, pickle.dumps(runner, 5))
                self._runner = runner
            self._run += 1
            self._read = work.read
            head, job = control.RUN.pack(self._run, nprocs), work.job()
            for rank in range(nprocs):
                self._hub.send(rank, control.JOB, head, job)
            outcomes = await_outcomes(self, limit)
            if any(outcome.failed for outcome in outcomes.values()):
                self.stop()
            else:
                self.busy = False
        return Report(outcomes)

    def _wait(self, seconds: float) -> list[News]:
        """Wait for news; pass on what mpiexec has written."""
        news = self._hub.wait(seconds)
        if self._output is not None:
            for descriptor in self._output.read():
                self._hub.also(descriptor, watch=False)
        return news

    def news(self, timeout: float) -> Mapping[int, Ended | Death]:
        """See :meth:`Observed.news`."""
        deadline = time.monotonic() + timeout
        while True:
            outcomes: dict[int, Ended | Death] = {}
            for rank, message, why in self._wait(deadline - time.monotonic()):
                if rank < self.nprocs:
                    outcome = self._outcome(rank, message, why)
                    if outcome is not None:
                        outcomes.setdefault(rank, outcome)
            if outcomes or time.monotonic() >= deadline:
                return outcomes

    def _outcome(
        self, rank: int, message: control.Message | None, why: str
    ) -> Ended | Death | None:
        if message is None:
            return Death(rank, 0, None, why)
        size = control.NUMBER.size
        if message.kind == control.DIED:
            status, superstep = control.ENDED.unpack(message.content)
            return Death(rank, superstep, status)
        if message.kind == control.REPORT:
            if control.NUMBER.unpack_from(message.content)[0] == self._run:
                return self._read(message.content[size:], rank)
        elif message.kind == control.PLACE:
            superstep, stopped, stack = pickle.loads(message.content)  # proved to be our watcher
            how = "stopped by a signal" if stopped else "does not answer"
            self._places[rank] = (
                from_stack(rank, superstep, stack)
                if stack
                else Whereabouts(rank, superstep, "", how)
            )
        return None

    def tell_to_stop(self) -> None:
        """See :meth:`Observed.tell_to_stop`."""
        self._hub.send_all(control.STOP_NOW)

    def report_stopped(self, ended: Collection[int]) -> None:
        """See :meth:`Observed.report_stopped`."""

    def whereabouts(self, ended: Collection[int]) -> list[Whereabouts]:
        """See :meth:`Observed.whereabouts`."""
        self._places = {}
        missing = [rank for rank in range(self.nprocs) if rank not in ended]
        for rank in missing:
            self._hub.send(rank, control.WHERE)
        deadline = time.monotonic() + _PLACE_S
        while not self._places.keys() >= {*missing} and time.monotonic() < deadline:
            self.news(deadline - time.monotonic())
        return [
            self._places.get(rank, Whereabouts(rank, 0, "", "does not answer"))
            if rank in missing
            else Whereabouts(rank, 0, "", "has ended")
            for rank in range(self.nprocs)
        ]

    # -- the end ----------------------------------------------------------------------------

    def stop(self) -> None:
        """See :meth:`KeptProcesses.stop`."""
        self._ended = True
        if self._output is not None:
            self._output.hide()  # mpiexec says that ranks were killed
        self._hub.send_all(control.KILL)
        self._await_end()
        self.busy = False

    def _await_end(self) -> None:
        """Wait until all watchers have gone, and mpiexec; then kill what is left of it."""
        deadline = time.monotonic() + _LEAVE_S
        launcher = self._launcher
        while self._hub.connected() and time.monotonic() < deadline:
            self._wait(_LOOK_S)
        self._hub.close()
        if launcher is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            launcher.wait(max(deadline - time.monotonic(), _LOOK_S))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()
        if self._output is not None:
            self._output.close()
        self._launcher = self._output = None

    def close(self) -> None:
        """See :meth:`KeptProcesses.close`."""
        if self._launcher is not None and not self._ended:
            self._hub.send_all(control.END if not self.busy else control.KILL)
            self._ended = True
            self._await_end()
        self._hub.close()

    def forget(self) -> None:
        """In a forked process: close what belongs to the parent, and end nothing."""
        self._hub.close()
        if self._output is not None:
            self._output.close()
        self._launcher, self._ended = None, True


def _python_path() -> dict[str, str]:
    """Return the environment in which ranks find bsplib where it is not installed."""
    folder = Path(__file__).parents[3]
    if folder.name in ("site-packages", "dist-packages"):
        return {}
    return {"PYTHONPATH": os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split()])}
