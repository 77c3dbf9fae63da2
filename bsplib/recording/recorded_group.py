"""A group that records every superstep that it ends.

It is a subclass, chosen when the run starts: a run without records spends no time for them.
Times are taken before and after the runtime does its work; a record is written after the
sync, before the next superstep begins.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from numpy.typing import ArrayLike

from bsplib.backends.base import Port
from bsplib.backends.parcels import traffic_of
from bsplib.group import Group
from bsplib.primitives.remote import Offset
from bsplib.primitives.state import Terms
from bsplib.recording.recorder import Recorder
from bsplib.recording.records import NO_CPU, Direction, GroupInfo
from bsplib.sync_kinds import Kind
from bsplib.transfers.outgoing import Early, Outgoing
from bsplib.transfers.place import Array

_SYNC = Kind.SYNC
_NOTHING = 0, 0
_Traffic = tuple[dict[int, Outgoing], dict[int, Early]]
_end_superstep = Group._end_superstep
_put, _get, _send, _read = Group.put, Group.get, Group.send, Group._read

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
        self._is_plain = False  # so that Group.sync calls _end_superstep, which records
        self._comm_ns = 0
        """Time spent in communication calls of this superstep. Every primitive adds to it."""
        self._sub_ns = 0
        """Time spent in sub-groups during this superstep. Leaving a sub-group adds to it."""
        self._start_ns = self._opened_ns = max(terms.began_ns, port.now())
        """When this superstep began, and when the group was made."""

    # -- the ends of supersteps ---------------------------------------------------------------

    def sync(self) -> None:
        """See :meth:`Group.sync`."""
        if self._unusable is not None:
            self._check_usable()
        arrive = self._stamp_arrival()
        superstep, traffic = self._superstep, ({**self._out}, self._early)
        long = self._changes or self._queue.messages or self._watch is not None
        if long or not self._try_short_sync(arrive):
            _end_superstep(self, _SYNC, arrive)
        end = self._now()
        stack = self._recorder.stack_of_sync()
        self._write(superstep, _SYNC, stack, arrive, self._port.released, end, traffic)

    def _end_superstep(self, kind: Kind, stamp: int) -> None:  # noqa: ARG002  # stamped here
        """Record the end of ``main``, or a sync that was called as ``Group.sync(bsp)``."""
        if kind is _SYNC:
            RecordedGroup.sync(self)
            return
        arrive = self._stamp_arrival()
        superstep, traffic = self._superstep, ({**self._out}, self._early)
        _end_superstep(self, kind, arrive)
        stack = self._recorder.stack_of_end()
        self._write(superstep, kind, stack, arrive, arrive, arrive, traffic)

    def _end_oblivious(self, n: int, stamp: int) -> None:  # noqa: ARG002  # stamped here
        arrive = self._stamp_arrival()
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
        own_bytes, own_messages = self._write_traffic(out, early) if out or early else _NOTHING
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

    def _write_traffic(self, out: dict[int, Outgoing], early: dict[int, Early]) -> tuple[int, int]:
        """Write a row for each partner; return bytes and messages of this process to itself."""
        sent, got = _count(out, early)
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

    # The most frequent primitives have their arguments written out: to pass *args and **kwargs,
    # as _timed does, takes longer.

    def put(
        self, pid: int, src: ArrayLike, dst: Any, *, offset: Offset = None, at: Any = None
    ) -> None:
        """See :meth:`Group.put`."""
        began = self._now()
        if at is None and pid.__class__ is int:  # as in Group.put, without the call of it
            lane = self._lanes.get((pid, id(dst)))
            if lane is not None and lane.put(self._out, src, offset):
                self._comm_ns += self._now() - began
                return
        try:
            _put(self, pid, src, dst, offset=offset, at=at)
        finally:
            self._comm_ns += self._now() - began

    def send(self, pid: int, payload: Any, tag: Any = None) -> None:
        """See :meth:`Group.send`."""
        began = self._now()
        try:
            _send(self, pid, payload, tag)
        finally:
            self._comm_ns += self._now() - began

    def get(
        self, pid: int, src: Any, dst: Array | None = None, *, offset: Offset = None, at: Any = None
    ) -> Array:
        """See :meth:`Group.get`."""
        began = self._now()
        try:
            return _get(self, pid, src, dst, offset=offset, at=at)
        finally:
            self._comm_ns += self._now() - began

    def _read(self) -> tuple[int, Any, Any]:
        began = self._now()
        try:
            return _read(self)
        finally:
            self._comm_ns += self._now() - began

    hpput = _timed(Group.hpput)
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
