"""What the processes have done so far in one order: who has seen what, and who may read what.

A **history** has two uses. Its state stands for all orders that come to the same point, so that a
search need not go on from there twice. And it finds memory that is given back although a process
may still read it *in some order*, not only where that happens in this one.

For each process it keeps

* a **hash** of all that its program depends on: which version of which word it has found or
  stored, and the bytes of other processes that it has read. Two orders with equal hashes differ
  only in the order of accesses that do not depend on each other ("happens-before").
* a **clock**: by pid, how many stores of each process it knows of, since it has found one of them
  or a later one. An event *happens before* another one of process p if p's clock has it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from bsplib.backends.shm.control import (
    BLOCK_WORDS,
    BLOCKS,
    CELLS,
    CLOSED,
    CONTROL_BYTES,
    DELIVERED,
    FIRST_BLOCK,
    PAGE,
    POSTED,
    WORD,
)
from bsplib.core.kinds import AREA_SHIFT

REPORTED = FIRST_BLOCK - 1
"""A word that the backend does not use: stands for the report of a process to the caller of a
pool."""
_CONTROL_WORDS = CONTROL_BYTES // WORD
_PAGE_WORDS = PAGE // WORD
_POSTS = frozenset((*CELLS, POSTED))
PAYLOAD_WORD = 1 << 20
"""Role of the word behind a payload that its receiver may keep; the receiver stores it."""
FIRST_AREA = 1 << AREA_SHIFT
"""First byte of the first area; the control words lie before it."""
_FIRST_AREA_WORD = FIRST_AREA // WORD


class RaceError(Exception):
    """Memory is given back, and nothing orders that after a read of another process."""


class Word(NamedTuple):
    """What a control word is for."""

    writer: int
    """The process that stores it; -1 for none, or any."""
    role: int
    """Its place in its block; -1 outside of the blocks, PAYLOAD_WORD behind all control words."""


def word_of(number: int) -> Word:
    """Return what a control word is for, by its number in the segment."""
    if number >= _FIRST_AREA_WORD:
        return Word(-1, PAYLOAD_WORD)
    writer, within = divmod(number - _PAGE_WORDS, _CONTROL_WORDS)
    if writer < 0 or within < FIRST_BLOCK:
        return Word(writer, -REPORTED if within == REPORTED else -1)
    return Word(writer, (within - FIRST_BLOCK) % BLOCK_WORDS)


def variable_of(number: int) -> int:
    """Return the number of a word, or one number for all labels of a process."""
    within = (number - _PAGE_WORDS) % _CONTROL_WORDS
    is_label = _PAGE_WORDS <= number < _FIRST_AREA_WORD and within < BLOCKS
    return number - within if is_label else number


class _Read(NamedTuple):
    """A read of a process in the area of another one."""

    pid: int
    start: int
    stop: int
    before: int
    """It happens before this store of the process."""


class History:
    """See the module.

    Args:
        nprocs: number of processes.
    """

    def __init__(self, nprocs: int) -> None:
        self._pids = range(nprocs)
        self.hashes = [0] * nprocs
        self.clocks = [[0] * nprocs for _ in self._pids]
        self.versions: dict[int, int] = {}
        """How often each word was changed, by its variable."""
        self._released: dict[int, list[int]] = {}
        """The clock of the writer at the last change of each word."""
        self._reads: list[list[_Read]] = [[] for _ in self._pids]
        """Reads in the area of each process since it was given back."""
        self._held: list[list[tuple[int, int, bool]]] = [[] for _ in self._pids]
        """By reader: what it may read until it stores DELIVERED, or posts (True)."""
        self._kept: list[dict[int, int]] = [{} for _ in self._pids]
        """By reader: first byte and end of the payloads that it may read until it returns them."""
        self._is_in_program = [False] * nprocs
        self._given: list[dict[tuple[int, int], int]] = [{} for _ in self._pids]
        """By owner: the bytes that it gave back, or used anew, with its clock then."""

    def fold(self, pid: int, what: Hashable) -> None:
        """Note something that the process depends on from now on."""
        self.hashes[pid] = hash((self.hashes[pid], what))

    # -- words ------------------------------------------------------------------------------

    def look(self, pid: int, variable: int) -> None:
        """A process has found a word as it is now."""
        self.fold(pid, (variable, self.versions.get(variable, 0)))
        released = self._released.get(variable)
        if released is not None:
            clock = self.clocks[pid]
            clock[:] = map(max, clock, released)

    def store(self, pid: int, number: int) -> None:
        """A process changes a word."""
        variable, role = variable_of(number), word_of(number).role
        clock = self.clocks[pid]
        clock[pid] += 1
        if role == DELIVERED:
            self._end_rights(pid, all_of_them=True)
            self._is_in_program[pid] = True
        elif role in _POSTS or role in (CLOSED, -REPORTED):
            self._end_rights(pid, all_of_them=False)
            self._is_in_program[pid] = self._is_in_program[pid] and role not in _POSTS
        self.versions[variable] = self.versions.get(variable, 0) + 1
        self._released[variable] = clock.copy()
        self.fold(pid, (variable, -1))

    # -- memory -----------------------------------------------------------------------------

    def read(self, pid: int, start: int, nbytes: int) -> None:
        """A process reads memory of another one at once."""
        self._check_given(pid, start, start + nbytes)
        self._note(_Read(pid, start, start + nbytes, self.clocks[pid][pid] + 1))

    def hold(self, pid: int, start: int, nbytes: int) -> None:
        """A process may read memory of another one from now on, as long as it has a right to."""
        self._check_given(pid, start, start + nbytes)
        self._held[pid].append((start, start + nbytes, self._is_in_program[pid]))

    def keep(self, pid: int, start: int, nbytes: int) -> None:
        """A process may read a payload of another one until it returns it."""
        self._check_given(pid, start, start + nbytes)
        self._kept[pid][start] = start + nbytes

    def return_kept(self, pid: int, start: int) -> None:
        """A process has just stored that it reads a payload no more."""
        self._note(_Read(pid, start, self._kept[pid].pop(start), self.clocks[pid][pid]))

    def give_back(self, pid: int, start: int, nbytes: int) -> None:
        """A process gives back memory of its own, or writes there what is for another purpose.

        Raises:
            RaceError: another process may read it still, in this order or in another one.
        """
        stop, clock = start + nbytes, self.clocks[pid]
        for reader, held in enumerate(self._held):
            rights = [(first, last) for first, last, _ in held] + [*self._kept[reader].items()]
            if any(first < stop and start < last for first, last in rights):
                self._fail(pid, reader, start, "which may still read it")
        left = []
        for read in self._reads[pid]:
            if read.stop <= start or stop <= read.start:
                left.append(read)
            elif clock[read.pid] < read.before:
                self._fail(pid, read.pid, start, "whose read may come later in another order")
        self._reads[pid] = left
        self._given[pid][start, stop] = clock[pid]

    def _note(self, read: _Read) -> None:
        self._reads[owner_of(read.start)].append(read)

    def _check_given(self, pid: int, start: int, stop: int) -> None:
        owner = owner_of(start)
        known = self.clocks[pid][owner]
        for (first, last), when in self._given[owner].items():
            if known <= when and first < stop and start < last:
                self._fail(owner, pid, start, "which has not heard of that")

    def _end_rights(self, pid: int, *, all_of_them: bool) -> None:
        held, self._held[pid] = self._held[pid], []
        for start, stop, in_program in held:
            if all_of_them or in_program:
                self._note(_Read(pid, start, stop, self.clocks[pid][pid]))
            else:
                self._held[pid].append((start, stop, in_program))

    def _fail(self, owner: int, reader: int, start: int, why: str) -> None:
        raise RaceError(
            f"process {owner} uses memory at {start:#x} anew beside process {reader}, {why}"
        )


def owner_of(byte: int) -> int:
    """Return the process in whose area, or control words, a byte of the segment lies."""
    area = byte >> AREA_SHIFT
    return area - 1 if area else word_of(byte // WORD).writer
