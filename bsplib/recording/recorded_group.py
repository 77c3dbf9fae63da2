"""A group that records every superstep that it ends.

It is a subclass, chosen when the run starts: a run without records spends no time for them.
Times are taken before and after the runtime does its work; a record is written after the
sync, before the next superstep begins.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, Self, TypeVar

from bsplib.backends.base import Port
from bsplib.backends.parcels import traffic_of
from bsplib.group import Group
from bsplib.primitives.state import Terms
from bsplib.recording.recorder import Recorder
from bsplib.recording.records import NO_CPU, Direction, GroupInfo
from bsplib.sync_kinds import Kind
from bsplib.transfers.outgoing import Early, Outgoing

_SYNC = Kind.SYNC
_NOTHING = 0, 0
_Traffic = tuple[dict[int, Outgoing], dict[int, Early]]
_end_superstep = Group._end_superstep

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
        now = self._now
        began = now()
        try:
            return primitive(self, *args, **kwargs)
        finally:
            self._comm_ns += now() - began

    return timed


class RecordedGroup(Group):
    """A :class:`Group` whose supersteps are recorded."""

    _cpu_ns = NO_CPU
    """CPU time of the superstep that ends, in ns; a subclass measures it."""
    _now: Callable[[], int]
    """Returns the time in ns."""
    _stamp_arrival: Callable[[], int]
    """Returns the time in ns at the end of a superstep; a subclass measures CPU time, too."""

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
        self._now = self._stamp_arrival = port.now
        self._recorded = True
        self._timed = port.clock is None  # no virtual time passes inside a primitive
        self._comm_ns = 0
        """Time spent in communication calls of this superstep. Every primitive adds to it."""
        self._begin_counts()
        self._sub_ns = 0
        """Time spent in sub-groups during this superstep. Leaving a sub-group adds to it."""
        self._start_ns = self._opened_ns = max(terms.began_ns, port.now())
        """When this superstep began, and when the group was made."""

    # -- the ends of supersteps ---------------------------------------------------------------

    def _sync_recorded(self) -> None:
        """End the superstep, and record it."""
        arrive = self._stamp_arrival()
        superstep = self._superstep
        traffic: _Traffic = ({}, {})
        if self._try_sync(arrive):
            released = self._meeting.released
        else:
            self._spill()
            traffic = ({**self._out}, self._early)
            _end_superstep(self, _SYNC, arrive)
            released = self._port.released
        end = self._now()
        stack = self._recorder.stack_of_sync()
        self._write(superstep, _SYNC, stack, arrive, released, end, traffic)

    def _end_superstep(self, kind: Kind, stamp: int) -> None:  # noqa: ARG002  # stamped here
        """Record the end of ``main``, or a sync that was called as ``Group.sync(bsp)``."""
        arrive = self._stamp_arrival()
        self._spill()
        superstep, traffic = self._superstep, ({**self._out}, self._early)
        _end_superstep(self, kind, arrive)
        stack = self._recorder.stack_of_end()
        self._write(superstep, kind, stack, arrive, arrive, arrive, traffic)

    def _end_oblivious(self, n: int, stamp: int) -> None:  # noqa: ARG002  # stamped here
        arrive = self._stamp_arrival()
        self._spill()
        superstep, traffic = self._superstep, ({**self._out}, self._early)
        super()._end_oblivious(n, arrive)
        end = self._now()
        stack = self._recorder.stack_of_sync()
        self._write(superstep, Kind.OBLSYNC, stack, arrive, self._port.released, end, traffic)

    def _write(
        self,
        superstep: int,
        kind: Kind,
        stack: int,
        arrive: int,
        released: int,
        end: int,
        traffic: _Traffic,
    ) -> None:
        start, recorder = self._start_ns, self._recorder
        began = recorder.began_ns
        out, early = traffic
        if out or early:
            own_bytes, own_messages = self._write_traffic(*_count(out, early))
        else:
            own_bytes, own_messages = self._write_quick_traffic()
        recorder.append(
            recorder.pid,
            self._number,
            superstep,
            kind,
            stack,
            start - began,
            arrive - began,
            released - began,
            end - began,
            self._comm_ns,
            self._sub_ns,
            self._cpu_ns,
            own_bytes,
            own_messages,
        )
        self._comm_ns = self._sub_ns = 0
        self._start_ns = self._now()

    def _write_quick_traffic(self) -> tuple[int, int]:
        """Do as :meth:`_write_traffic` for what the quick way has counted."""
        sent: _Amounts = {}
        got: _Amounts = {}
        for pid in range(self._nprocs):
            if self._sent[pid]:
                sent[pid] = self._sent_bytes[pid], self._sent[pid]
            if self._got[pid]:
                got[pid] = self._got_bytes[pid], self._got[pid]
            if self._has_early and self._early_puts[pid]:
                nbytes, count = sent.get(pid, _NOTHING)
                sent[pid] = nbytes + self._early_bytes[pid], count + self._early_puts[pid]
        self._forget_counts()
        return self._write_traffic(sent, got) if sent or got else _NOTHING

    def _write_traffic(self, sent: _Amounts, got: _Amounts) -> tuple[int, int]:
        """Write a row for each partner; return bytes and messages of this process to itself."""
        own_bytes, own_messages = map(
            operator.add, sent.pop(self._pid, _NOTHING), got.pop(self._pid, _NOTHING)
        )
        members = self._port.members
        for direction, partners in ((Direction.OUT, sent), (Direction.IN, got)):
            for pid, (nbytes, messages) in partners.items():
                if messages:
                    self._recorder.traffic(members[pid], direction, nbytes, messages)
        return own_bytes, own_messages

    def _open(self, index: int, pids: Sequence[int]) -> Self:
        port = self._open_port(index, pids)
        info = GroupInfo(self._number, self._superstep, self._partitions, index, port.members)
        return type(self)(port, self._terms, self, self._recorder, info)

    def _leave(self) -> None:
        arrive = self._stamp_arrival()
        stack = self._recorder.stack_of_sync()
        super()._leave()
        self._write(self._superstep, Kind.END, stack, arrive, arrive, arrive, ({}, {}))
        parent = self._parent
        assert isinstance(parent, RecordedGroup)
        parent._sub_ns += self._now() - self._opened_ns

    # -- communication calls ------------------------------------------------------------------

    put_at = _timed(Group.put_at)
    hpget = _timed(Group.hpget)
    get_at = _timed(Group.get_at)
    move = _timed(Group.move)
    hpmove = _timed(Group.hpmove)
    _unwrap = _timed(Group._unwrap)


_Amounts = dict[int, tuple[int, int]]
"""Bytes and messages, by pid."""


def _count(out: dict[int, Outgoing], early: dict[int, Early]) -> tuple[_Amounts, _Amounts]:
    """Return what was sent to each process, and what was got from each."""
    sent: _Amounts = {}
    got: _Amounts = {}
    for pid, outgoing in out.items():
        traffic = traffic_of(outgoing.parcel())
        sent[pid] = traffic.sent_bytes, outgoing.count()
        got[pid] = traffic.asked_bytes, outgoing.number_of_gets()
    for pid, done in early.items():
        nbytes, count = sent.get(pid, _NOTHING)
        sent[pid] = nbytes + done.bytes_written, count + done.puts
        nbytes, count = got.get(pid, _NOTHING)
        got[pid] = nbytes + done.bytes_read, count + done.gets
    return sent, got
