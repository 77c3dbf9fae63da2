"""The records of one process: supersteps, their traffic and the call stacks of syncs."""

from __future__ import annotations

from types import CodeType, FrameType

from bsplib import call_site
from bsplib.core.stack_keys import StackKeys
from bsplib.recording.records import Direction, Frame, GroupInfo, Stack
from bsplib.recording.spool import Spool


class Recorder:
    """The records of one process, of all its groups.

    Args:
        spool: files to which the records are written.
        pid: pid of the process in the root group.
        outermost: code of the function that calls ``main``; stacks begin above it.
        main: code of ``main`` if it is a function; otherwise the first sync finds it.
    """

    def __init__(self, spool: Spool, pid: int, outermost: CodeType, main: CodeType | None) -> None:
        self._spool = spool
        self._outermost = outermost
        self.stack_keys = StackKeys(outermost, self._define)
        """Numbers the call stacks of syncs."""
        self._stacks = 0
        self._main = main
        self._groups = 0
        self.append = spool.records.append
        """Appends the record of a superstep; its traffic has to be written before."""
        self.rows = spool.records.rows
        """The supersteps; ``append`` is for numbers that may be out of the range of a row."""
        self.traffic_rows = spool.traffic.rows
        """Their traffic."""
        self.pid = pid
        """Pid of the process in the root group."""
        self.began_ns = 0
        """Time 0 of the records. Set once, before ``main`` runs."""

    def define_group(self, info: GroupInfo) -> int:
        """Return the number that stands for a group in this process's records."""
        self._spool.define_group(info)
        self._groups += 1
        return self._groups - 1

    def stack_of_sync(self) -> int:
        """Return the number of the call stack of the sync that calls this.

        The stack is that of the caller of the method of bsplib that calls this. It may contain
        more frames of bsplib: :meth:`_define` leaves them out, once for each stack.
        """
        return self.stack_keys.number(2)

    def stack_of_end(self) -> int:
        """Return the number of a stack for the end of ``main``, with the last line of ``main``."""
        code = self._main
        if code is None:  # main is no function, and has returned without a sync
            return self._number((Frame("", "main", 0, 0),))
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

    def traffic(self, partner: int, direction: Direction, nbytes: int, messages: int) -> None:
        """Append what this process has exchanged with a partner in the superstep recorded next."""
        spool = self._spool
        spool.traffic.append(spool.records.rows.count, partner, direction, nbytes, messages)


def _frame_of(code: CodeType, line: int) -> Frame:
    """Describe a call for the records."""
    library = call_site.is_own(code)
    return Frame(code.co_filename, code.co_qualname, code.co_firstlineno, line, library)
