"""The records of the groups of one process: what writes them observes the engine of its group."""

from __future__ import annotations

import errno
import os

from bsplib.backends.base import Port
from bsplib.core.log import Log
from bsplib.core.observed import ObservedEngine
from bsplib.core.recorded import RecordingObserver
from bsplib.core.traffic import Traffic
from bsplib.recording.recorder import Recorder
from bsplib.recording.records import GroupInfo


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
        self._number = recorder.define_group(info)
        """Number of this group in the records of this process."""
        self.observer = RecordingObserver(
            recorder.log(self._number, port.pid, port.members, opened_ns),
            above,
            Traffic(port.nprocs),
            recorder.stack_keys,
            recorder.stack_of_end,
            self._stop,
        )
        """Writes a record of each superstep."""

    def of_subgroup(
        self, engine: ObservedEngine, port: Port, partition: int, index: int
    ) -> GroupRecords:
        """See :meth:`bsplib.primitives.state.GroupRecording.of_subgroup`."""
        opened_ns = port.now()
        log = self.observer.log
        log.suspend(opened_ns, engine.comm_ns)
        info = GroupInfo(self._number, engine.superstep, partition, index, port.members)
        return GroupRecords(self._recorder, port, info, opened_ns, log)

    def _stop(self) -> None:
        """Stop recording where a virtual time has more than 63 bits."""
        self._recorder.stop(OSError(errno.ERANGE, os.strerror(errno.ERANGE)))
