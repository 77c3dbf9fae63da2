"""The records of one process: supersteps, their traffic and the call stacks of syncs."""

from __future__ import annotations

import errno
import os
from types import CodeType, FrameType

from bsplib import call_site
from bsplib.backends.base import Port
from bsplib.core.engine import Engine
from bsplib.core.log import Log, Usage
from bsplib.core.observed import RecordingObserver, StackKeys, Traffic
from bsplib.recording.import_clock import ImportClock
from bsplib.recording.records import Frame, GroupInfo, Stack, shortened
from bsplib.recording.spool import Spool

_VIRTUAL = "virtual processors share one thread, and their time is virtual"


class Recorder:
    """The records of one process, of all its groups.

    Args:
        spool: files to which the records are written.
        outermost: code of the function that calls ``main``; stacks begin above it.
        main: the function; where it is none, the first sync finds what stands in its place.
        began_ns: time 0 of the records.
        is_virtual: the process has virtual time, so that nothing is measured of the system.
    """

    def __init__(
        self,
        spool: Spool,
        outermost: CodeType,
        main: object,
        began_ns: int,
        *,
        is_virtual: bool,
    ) -> None:
        self._spool = spool
        self._outermost = outermost
        self.stack_keys = StackKeys(outermost, self._define)
        """Numbers the call stacks of syncs."""
        self._stacks = 0
        self._main: CodeType | None = getattr(main, "__code__", None)
        self._name = getattr(main, "__qualname__", "main")
        self._began_ns = began_ns
        self._usage = None if is_virtual else Usage(began_ns)
        self._imports = None if is_virtual else ImportClock(began_ns)
        spool.define(
            "measured",
            dict.fromkeys(("cpu", "ready", "faults"), _VIRTUAL)
            if self._usage is None
            else self._usage.reasons(),
        )
        self._groups = 0

    def close(self) -> None:
        """End the measurements."""
        if self._usage is not None:
            self._usage.close()
            self._spool.define("noted", {"own_threads_ns": self._usage.own_threads_ns})
        if self._imports is not None:
            self._imports.close()
            self._spool.define("imports", self._imports.found)

    def open_group(self, info: GroupInfo, pid: int, opened_ns: int) -> tuple[int, Log]:
        """Return the number of a group in this process's records, and what writes its records.

        Args:
            info: what the trace stores of it.
            pid: this process in the group.
            opened_ns: when it was made.
        """
        spool, number = self._spool, self._groups
        spool.define("group", info.to_json())
        self._groups += 1
        rows = spool.records.rows, spool.traffic.rows
        return number, Log(*rows, number, pid, info.members, self._began_ns, opened_ns, self._usage)

    def stop(self) -> None:
        """Stop recording where a virtual time has more than 63 bits; what there is, is kept."""
        self._spool.stop(OSError(errno.ERANGE, os.strerror(errno.ERANGE)))

    def stack_of_end(self) -> int:
        """Return the number of a stack for the end of ``main``, with the last line of ``main``."""
        code = self._main
        if code is None:  # main is no function of Python, or has returned without a sync
            return self._number((Frame("", self._name, 0, 0),))
        last = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
        return self._number((_frame_of(code, last),))

    def _define(self, frame: FrameType | None) -> int:
        calls, mapped = [], None
        while frame is not None and frame.f_code is not self._outermost:
            calls.append((frame.f_code, frame.f_lineno))
            mapped = call_site.code_of_map(frame)
            frame = frame.f_back
        codes = [code for code, _ in calls]
        above = calls[call_site.frames_of_sync(codes) :]
        if not above:
            return self.stack_of_end()  # main itself is a primitive
        self._main = mapped or codes[-1]
        stack = [_frame_of(*call) for call in above if not call_site.is_hidden(call[0])]
        if mapped:
            stack[-1] = _frame_of(mapped, mapped.co_firstlineno)
        return self._number(tuple(reversed(stack)))

    def _number(self, stack: Stack) -> int:
        self._spool.define("stack", shortened(stack))
        self._stacks += 1
        return self._stacks - 1


def _frame_of(code: CodeType, line: int) -> Frame:
    """Describe a call for the records."""
    library = call_site.is_own(code)
    return Frame(code.co_filename, code.co_qualname, code.co_firstlineno, line, library)


# -- the records of the groups of one process: what writes them observes the engine of its group --


class GroupRecords:
    """The records of a group.

    Args:
        recorder: writes the records of this process.
        port: of the group.
        info: what the trace stores of the group.
        opened_ns: when the group was made.
        above: log of the group of which it is a part; None for the whole run.
    """

    def __init__(
        self,
        recorder: Recorder,
        port: Port,
        info: GroupInfo,
        opened_ns: int,
        above: Log | None = None,
    ) -> None:
        self._recorder = recorder
        self._number, log = recorder.open_group(info, port.pid, opened_ns)
        self.observer = RecordingObserver(
            log,
            above,
            port.clock,
            Traffic(port.nprocs),
            recorder.stack_keys,
            recorder.stack_of_end,
            recorder.stop,
        )
        """Writes a record of each superstep."""

    def of_subgroup(self, engine: Engine, port: Port, partition: int, index: int) -> GroupRecords:
        """Return the records of a sub-group.

        Args:
            engine: of this group.
            port: of the sub-group.
            partition: how often this group was partitioned before.
            index: of the sub-group among those that are made together.
        """
        opened_ns = port.now()
        log = self.observer.log
        log.suspend(opened_ns, engine.comm_ns)
        info = GroupInfo(self._number, engine.superstep, partition, index, port.members)
        return GroupRecords(self._recorder, port, info, opened_ns, log)
