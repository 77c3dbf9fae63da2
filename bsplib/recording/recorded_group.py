"""A group that records every superstep that it ends.

It is a subclass, chosen when the run starts: a run without records spends no time for them.
Times are taken before and after the runtime does its work; a record is written after the
sync, before the next superstep begins.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, Self, TypeVar

from bsplib.backends.base import Port
from bsplib.group import Group
from bsplib.primitives.state import Terms
from bsplib.recording.recorder import Recorder
from bsplib.recording.records import GroupInfo
from bsplib.sync_kinds import Kind

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _timed(
    primitive: Callable[Concatenate[RecordedGroup, _Arguments], _Result],
) -> Callable[Concatenate[RecordedGroup, _Arguments], _Result]:
    """Count the time inside a primitive as communication."""

    @functools.wraps(primitive)
    def timed(
        self: RecordedGroup, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result:
        began = self._now()
        try:
            return primitive(self, *args, **kwargs)
        finally:
            self._comm_ns += self._now() - began

    return timed


class RecordedGroup(Group):
    """A :class:`Group` whose supersteps are recorded."""

    def __init__(
        self,
        port: Port,
        terms: Terms,
        parent: RecordedGroup | None,
        recorder: Recorder,
        info: GroupInfo,
    ) -> None:
        super().__init__(port, terms, parent)
        self._recorder = recorder
        """Writes the records of this process."""
        self._number = recorder.define_group(info)
        """Number of this group in the records of this process."""
        self._recorded = True
        self._timed = True
        self._comm_ns = 0
        """Time spent in communication calls of this superstep. Every primitive adds to it."""
        opened_ns = max(terms.began_ns, port.now())
        if parent is not None:
            parent._log.suspend(opened_ns, parent._comm_ns)
        self._log = recorder.log(self._number, self._pid, port.members, opened_ns)
        self._stack_keys = recorder.stack_keys
        self._begin_counts()

    # -- the ends of supersteps ---------------------------------------------------------------

    def _now(self) -> int:
        return self._port.now()

    def _end_superstep(self, kind: Kind, stamp: int) -> None:  # noqa: ARG002  # stamped here
        """Record the end of ``main``."""
        arrive = self._stamp_arrival()
        superstep = self._superstep
        super()._end_superstep(kind, arrive)
        self._write(superstep, kind, self._recorder.stack_of_end(), arrive, arrive, arrive)

    def _end_oblivious(self, n: int, stamp: int) -> None:  # noqa: ARG002  # stamped here
        arrive = self._stamp_arrival()
        superstep = self._superstep
        super()._end_oblivious(n, arrive)
        end = self._now()
        stack = self._stack_keys.number(1)
        released = min(self._meeting.released, end)
        self._write(superstep, Kind.OBLSYNC, stack, arrive, released, end)

    def _stamp_arrival(self) -> int:
        arrive = self._now()
        self._log.arrive(arrive, self._comm_ns)
        return arrive

    def _write(
        self, superstep: int, kind: Kind, stack: int, arrive: int, released: int, end: int
    ) -> None:
        log = self._log
        try:
            self._write_counts()
            log.add_superstep(superstep, kind, stack, arrive, released, end, self._comm_ns)
        except OverflowError:  # a virtual time beyond 2**63 ns
            self._recorder.stop(OSError(errno.ERANGE, os.strerror(errno.ERANGE)))
        self._comm_ns = 0
        log.rest(self._now())
        log.begin(self._now())

    def _open(self, index: int, pids: Sequence[int]) -> Self:
        port = self._open_port(index, pids)
        info = GroupInfo(self._number, self._superstep, self._partitions, index, port.members)
        return type(self)(port, self._terms, self, self._recorder, info)

    def _leave(self) -> None:
        arrive = self._stamp_arrival()
        stack = self._stack_keys.number(1)
        super()._leave()
        self._write(self._superstep, Kind.END, stack, arrive, arrive, arrive)
        parent = self._parent
        assert isinstance(parent, RecordedGroup)
        self._log.leave(parent._log, self._now())

    # -- communication calls ------------------------------------------------------------------

    put_at = _timed(Group.put_at)
    hpget = _timed(Group.hpget)
    get_at = _timed(Group.get_at)
    move = _timed(Group.move)
    hpmove = _timed(Group.hpmove)
    _unwrap = _timed(Group._unwrap)
