"""The processes of a group, as one of them sees them: control blocks and progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bsplib.backends.members import Members, as_members, waits_in_vain
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import (
    BEFORE,
    BLOCK_WORDS,
    BLOCKS,
    CELLS,
    CLOSED,
    FIRST_BLOCK,
    LATEST,
    ROOT_KEY,
    WORD,
)
from bsplib.core.kinds import SUPERSTEP_SHIFT
from bsplib.core.meeting import Meeting
from bsplib.errors import PartitionError

_KEY_MASK = (1 << 62) - 1
_PARTITION_SHIFT = 32
"""Binary logarithm of the partitions of the root group that a run of a pool may have."""


class Membership:
    """A group: where the control block of each process lies, and which superstep it has reached.

    Args:
        context: context of this process.
        above: pids of the group's processes in the parent, by pid; for the root group their
            own pids.
        pid: this process.
        parent: the group of which this one is a sub-group; None for the root group.
        ordinal: number of the partition or split among those of the parent.
        index: number of the sub-group in that partition.
    """

    def __init__(
        self,
        context: ProcessContext,
        above: Sequence[int],
        pid: int,
        parent: Membership | None = None,
        ordinal: int = 0,
        index: int = 0,
    ) -> None:
        self.context = context
        self.pid = pid
        self.nprocs = nprocs = len(above)
        self.members: Members = as_members(
            above if parent is None else [parent.members[each] for each in above]
        )
        self.others = [other for other in range(nprocs) if other != pid]
        self.meeting: Meeting = Meeting()
        """The meetings of the group; the port replaces it."""
        self.closed = False
        """This process will not look at the others' control blocks again."""
        self.open_inside: set[int] = set()
        """Partitions in whose sub-groups this process is, or at whose posts it still looks."""
        self._first_partition = self._come_to = 0
        """Number of the first partition of this run, and of that after the last one to which this
        process has come."""
        self._control = context.control
        self.parent = parent
        self._above = above
        self._ordinal = ordinal = ordinal + (parent._first_partition if parent else 0)
        self._key = ROOT_KEY + 4 * context.runs
        if parent is not None:
            # Equal on all members without communication: all came here by the same partitions.
            self._key = hash((parent._key, ordinal, index)) & _KEY_MASK | 2
            parent._come_to = ordinal + 1
            parent.open_inside.add(ordinal)
        self._blocks = [0] * nprocs
        self.block = 0
        """First word of the control block of this process; 0 before :meth:`enter`."""

    @property
    def superstep(self) -> int:
        """The superstep, counted from 1: a cell's word of 0 has never been posted."""
        return self.meeting.superstep

    def enter(self) -> None:
        """Take a control block, through which the others find this process in the group.

        A process enters at its first post and not before: a control block can be used for another
        group only when all have left this one, and no process has to wait for that where
        nothing is posted. It enters the parent, too, since the parent's control block has the word
        that tells when it has left this group.

        Raises:
            PartitionError: groups nest too deeply.
        """
        if self.block:
            return
        if self.parent is not None:
            self.parent.enter()
            self._wait_for_block()
        self.block = self._blocks[self.pid] = self._take_block()
        self._store_closed()

    def has_numbers_left(self) -> bool:
        """Tell whether the partitions of another run of a pool can be numbered behind these."""
        return self.superstep << _PARTITION_SHIFT <= _KEY_MASK

    def begin_anew(self) -> None:
        """Use the root group for another run, whose supersteps follow those of the last one.

        All processes have ended the same superstep, so that they number partitions alike.
        """
        self.closed = False
        self.open_inside.clear()
        self._first_partition = self._come_to = self.superstep << _PARTITION_SHIFT
        self._control[self.context.start_of(self.pid) + BEFORE] = self.superstep - 1

    def may_be_given_back(self) -> bool:
        """Tell whether this process has a control block to give back when all have left."""
        return self.block != 0 and self.parent is not None

    def root(self, pid: int) -> int:
        """Return the pid of a process in the root group."""
        return self.members[pid]

    # -- control blocks -------------------------------------------------------------------------

    def find(self, pid: int) -> int:
        """Return the first word of a process's control block; 0 if it has not entered."""
        return self._blocks[pid] or self._look_for(pid)

    def _look_for(self, pid: int) -> int:
        start = self.context.start_of(self.root(pid))
        labels = self._control[start : start + BLOCKS].tolist()
        if self._key not in labels:
            return 0
        self.context.fences.order()  # acquire: the label, before the control block
        block = start + FIRST_BLOCK + labels.index(self._key) * BLOCK_WORDS
        self._blocks[pid] = block
        return block

    def _wait_for_block(self) -> None:
        """Wait until this process has a free block: all have left a group that it has left."""
        context = self.context
        context.reclaim_left_groups()
        if context.has_block():
            return
        if not context.left_over:
            raise PartitionError(f"partition: groups nest at most {BLOCKS} deep")
        others = [pid for pid in range(context.nprocs) if pid != context.pid]

        def has_block() -> bool:
            context.reclaim_left_groups()
            return context.has_block()

        context.waiting.wait(has_block, others, lambda: None)

    def _take_block(self) -> int:
        """Clear a free control block of this process, of which there is one, and label it."""
        start = self.context.start_of(self.context.pid)
        labels = self._control[start : start + BLOCKS].tolist()
        number = 0 if self.parent is None else labels.index(0)
        block = start + FIRST_BLOCK + number * BLOCK_WORDS
        if self.parent is not None:  # that of the root group was reserved before the start
            self.context.segment.reserve(block * WORD, BLOCK_WORDS * WORD)
        self._control[block : block + BLOCK_WORDS] = memoryview(bytes(BLOCK_WORDS * WORD)).cast("Q")
        self.context.fences.order()  # release: the cleared control block, before its label
        if self.parent is None:
            self._control[start + BEFORE] = 0
        self._control[start + number] = self._key
        return block

    def give_block(self) -> None:
        """Mark the control block as free for another group: no process looks at it any more."""
        self._control[self._label_of(self.pid)] = 0

    def is_block_of(self, pid: int) -> bool:
        """Tell whether the control block of a process, once found, is still of this group."""
        return self._control[self._label_of(pid)] == self._key

    def _label_of(self, pid: int) -> int:
        """Return the word that labels the control block of a process, which has been found."""
        start = self.context.start_of(self.root(pid))
        return start + (self._blocks[pid] - start - FIRST_BLOCK) // BLOCK_WORDS

    # -- whereabouts ----------------------------------------------------------------------

    def leave(self) -> None:
        """Tell the others that this process will not look at their control blocks again."""
        self.closed = True
        if self.parent is not None:
            self.parent.open_inside.remove(self._ordinal)
            self.parent._store_closed()
            self.context.waiting.waiter.posted()

    def _store_closed(self) -> None:
        """Store in CLOSED up to which partition this process has left all sub-groups.

        A process may leave a later sub-group before an earlier one, at whose posts it still
        has to look; until it has done so the word stays at the earlier one.
        """
        if self.block:
            self.context.fences.order()  # release: what was read there, before CLOSED
            self._control[self.block + CLOSED] = min(self.open_inside, default=self._come_to)

    def has_left(self, pid: int) -> bool:
        """Tell whether a process will never again look at this group's control blocks."""
        parent = self.parent
        if parent is None:
            return False
        above = self._above[pid]
        if parent.closed:  # its control blocks may be used for another group by now
            return parent.has_left(above)
        block = parent.find(above)
        return block != 0 and self._control[block + CLOSED] > self._ordinal

    def all_have_left(self) -> bool:
        """Tell whether the control blocks of this group can be used for another one."""
        left = all(self.has_left(pid) for pid in self.others)
        self.context.fences.order()  # acquire: CLOSED, before memory is used again
        return left

    def suspect(self, operation: str, pid: int, arrived: Callable[[], object]) -> None:
        """Raise if this process waits for another one in vain, which has not ``arrived``."""
        error = waits_in_vain(self, operation, pid)
        self.context.fences.order()  # acquire: its absence, before its post
        if error is not None and not arrived():  # it may have come, and continued, just now
            raise error

    def has_ended(self, process: int, *ways: str) -> bool:
        """See :meth:`Standing.has_ended`."""
        control, block = self._control, self.find(self.members.index(process))
        if not block:
            return False
        ended = {
            "sync": max(control[block + cell] for cell in CELLS) >> SUPERSTEP_SHIFT,
            "oblsync": control[block + LATEST],
        }
        return max(ended[way] for way in ways) >= self.superstep
