"""The records of one process: supersteps, their traffic and the call stacks of syncs."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType, FrameType

from bsplib import call_site
from bsplib.core.log import Log
from bsplib.core.stack_keys import StackKeys
from bsplib.core.usage import Usage
from bsplib.recording.records import Frame, GroupInfo, Stack
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
        self._usage = None if is_virtual else Usage(spool.records.rows, began_ns)
        spool.define_measured(
            dict.fromkeys(("cpu", "ready", "faults"), _VIRTUAL)
            if self._usage is None
            else self._usage.reasons()
        )
        self._groups = 0

    def close(self) -> None:
        """End the measurements."""
        if self._usage is not None:
            self._usage.close()

    def define_group(self, info: GroupInfo) -> int:
        """Return the number that stands for a group in this process's records."""
        self._spool.define_group(info)
        self._groups += 1
        return self._groups - 1

    def log(self, number: int, pid: int, members: Sequence[int], opened_ns: int) -> Log:
        """Return what writes the records of a group; for the arguments see :class:`Log`."""
        spool = self._spool
        return Log(
            spool.records.rows,
            spool.traffic.rows,
            number,
            pid,
            members,
            self._began_ns,
            opened_ns,
            self._usage,
        )

    def stop(self, error: BaseException) -> None:
        """Stop recording; what has been recorded is kept."""
        self._spool.stop(error)

    def stack_of_end(self) -> int:
        """Return the number of a stack for the end of ``main``, with the last line of ``main``."""
        code = self._main
        if code is None:  # main is no function of Python, or has returned without a sync
            return self._number((Frame("", self._name, 0, 0),))
        last = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
        return self._number((_frame_of(code, last),))

    def _define(self, frame: FrameType | None) -> int:
        calls = []
        while frame is not None and frame.f_code is not self._outermost:
            calls.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        codes = [code for code, _ in calls]
        above = calls[call_site.frames_of_sync(codes) :]
        if not above:
            return self.stack_of_end()  # main itself is a primitive
        self._main = codes[-1]
        stack = [_frame_of(*call) for call in above if not call_site.is_wrapper(call[0])]
        return self._number(tuple(reversed(stack)))

    def _number(self, stack: Stack) -> int:
        self._spool.define_stack(stack)
        self._stacks += 1
        return self._stacks - 1


def _frame_of(code: CodeType, line: int) -> Frame:
    """Describe a call for the records."""
    library = call_site.is_own(code)
    return Frame(code.co_filename, code.co_qualname, code.co_firstlineno, line, library)
