"""The processes of a run over streams, as each of them and as their caller sees them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from multiprocessing.connection import wait
from typing import Any

from bsplib.backends.launching import Death, Ended, OpenPort, Tell
from bsplib.backends.members import Whereabouts
from bsplib.backends.outcomes import StoppedProcess
from bsplib.backends.stream.port import Mail, Stream, StreamPort


def serve(
    do: Callable[[int, OpenPort, Tell], bytes],
    pid: int,
    others: Mapping[int, Stream],
    caller: Stream,
    caller_ended: Callable[[], object] | None = None,
) -> None:
    """Do some work as one of the processes of a run, and tell the caller how it ended.

    Args:
        do: does the work and returns its report, as :meth:`Work.alone` does.
        pid: this process.
        others: streams to all other processes, by pid.
        caller: stream to the caller.
        caller_ended: called by another thread where the caller has ended; None ends the process.
    """
    mail = Mail(others, caller, caller_ended or partial(os._exit, 1))
    caller.send(do(pid, lambda: StreamPort(mail, pid, range(len(others) + 1)), caller.send))


class Workers:
    """The processes of a run as their caller sees them; see :class:`Observed`.

    Args:
        streams: to all of them, by pid.
        read: decodes what they tell; see :meth:`Work.read`.
        status: returns the exit status of a process whose stream has ended, None if it is unknown.
    """

    def __init__(
        self,
        streams: Mapping[int, Stream],
        read: Callable[[bytes, int], Ended | None],
        status: Callable[[int], int | None],
    ) -> None:
        self.nprocs = len(streams)
        self.missing = dict(streams)
        """The streams to those whose outcomes are not known, by pid."""
        self._read = read
        self._status = status

    def news(self, timeout: float) -> dict[int, Ended | Death]:
        streams: list[Any] = list(self.missing.values())
        ready = wait(streams, timeout)  # so are those of processes that died
        found = {pid: self._outcome(pid) for pid, each in self.missing.items() if each in ready}
        outcomes = {pid: outcome for pid, outcome in found.items() if outcome is not None}
        for pid in outcomes:
            self.missing.pop(pid).close()
        return outcomes

    def _outcome(self, pid: int) -> Ended | Death | None:
        try:
            told = self.missing[pid].recv()
        except (EOFError, OSError):
            return Death(pid, 0, self._status(pid), "has closed its stream")
        return self._read(told, pid)

    def tell_to_stop(self) -> None:
        for stream in self.missing.values():
            with contextlib.suppress(OSError):
                stream.send(None)

    def whereabouts(self, ended: Collection[int]) -> list[Whereabouts]:
        how = {True: "has ended", False: "does not answer"}
        return [Whereabouts(pid, 0, "", how[pid in ended]) for pid in range(self.nprocs)]

    def stopped(self, ended: Collection[int]) -> list[StoppedProcess]:  # noqa: ARG002  # nobody can tell
        return []

    def close(self) -> None:
        """Close all streams: processes that still run end."""
        for stream in self.missing.values():
            stream.close()
