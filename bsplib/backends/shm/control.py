"""The control words, by which processes see each other, in the first pages of the segment.

PROTOCOL.md says who writes each word and when, and why each look at it is right.

A process keeps one **control block** for each group that it is in; control block 0 is the root's.
A control block holds, all counted in words of eight bytes::

    0   cell 0: word, stamp, head, inline entry      the two latest meetings of the whole
    32  cell 1: word, stamp, head, inline entry      group, alternating
    64  POSTED                        oblivious supersteps that this process ended
    65  CONSUMED                      those whose posts it will not read again
    66  CLOSED                        first partition of this group with a sub-group that
                                      it has not left
    67  LATEST                        superstep of its latest oblivious sync
    72  DELIVERED                     last superstep that it has delivered
    80  ring: (index, stamp) x RING   its latest oblivious supersteps

A cell's word is ``superstep << 24 | meeting << 16 | flags << 1 | has a head word``. The head
word says where the entries are, see :mod:`bsplib.core.entries`: in a send buffer, or inline,
in the cell itself. The index in the ring is the byte in the segment at which the entries of an
oblivious superstep are listed, see :mod:`bsplib.backends.shm.oblivious`.

The control blocks are found by their **labels**: the group's key, written before the first
post of the process in the group. A control block can be used for another group once every process
has left the first one, which CLOSED in the control blocks of the parent shows.
"""

from __future__ import annotations

import mmap

from bsplib.backends.oblivious import MOST_AHEAD

PAGE = mmap.PAGESIZE

WORD = 8

ABORT = 0
"""In the first page of the segment: set when all processes are to stop."""

BLOCKS = 64
"""Most groups that a process is in, or that not all processes have left, at a time."""

ASLEEP = 64
"""Follows the labels. 1 while this process sleeps at its semaphore."""
OS_PID = 65
"""Its number in the operating system."""
STACK_FILE = 66
"""The descriptor of the file into which it writes its stack when asked, plus 1."""
THREAD = 67
"""The thread that runs ``main``: its identifier in Python."""
BEFORE = 68
"""Number of supersteps of the root group in earlier runs of a pool, which its control block has
counted."""
WAITED = 72
"""On a cache line of its own. 1 where another process sleeps until this one posts."""
FUTEX = 80
"""On a cache line of its own. It changes to wake this process."""
FIRST_BLOCK = 96

CELLS = (0, 32)
STAMP = 1
"""Within a cell; the head word and the inline entry follow it."""
POSTED = 64
CONSUMED = 65
CLOSED = 66
LATEST = 67
DELIVERED = 72
"""On a cache line of its own, like each cell's beginning."""
RING_START = 80
RING = MOST_AHEAD
BLOCK_WORDS = RING_START + 2 * RING

CONTROL_BYTES = -(-(FIRST_BLOCK + BLOCKS * BLOCK_WORDS) * WORD // PAGE) * PAGE
"""Bytes for all control words of a process; the pages of control blocks are reserved when
needed."""

ROOT_KEY = 1
"""Key of the root group of the first run. Where a later run of a pool needs a new root group, the
number of runs before it, times 4, is added."""
