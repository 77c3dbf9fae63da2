"""The head of a post: what one process sends to another one at each meeting of their group.

Heads are small and all of one form. They say what follows, and carry the rest of the post, its
**body**, where that fits. PROTOCOL.md says in which order all is sent and received.
"""

from __future__ import annotations

import hashlib
from struct import Struct
from typing import NamedTuple

HEAD_BYTES = 2048
"""Bytes of the largest head, its body among them: what every MPI sends at once."""

MEET, OBLIVIOUS, CREDIT, QUESTION, ANSWER, ROUND, HERE, STOP = range(8)
"""Kinds of heads. The first two are posts that end a superstep: at a meeting of the whole group, or
by an oblivious sync. CREDIT: this number of oblivious posts of the receiver have been read, and it
may send more. QUESTION: has the receiver left this group? ANSWER: the sender has. ROUND: what a
process passes on in a round of a meeting of many; ``messages`` is its number. HERE: the sender
waits at the end of this superstep of the group, for a meeting of many. STOP: the sender has failed
in this superstep, and the run ends."""
POSTS = (MEET, OBLIVIOUS, ROUND, HERE)
"""Kinds that belong to a superstep, and are kept until this process opens the group."""

_FORM = Struct("<IBBHQQQQIq")
BODY = _FORM.size
"""Where the body begins."""
MOST_BODY = HEAD_BYTES - BODY
"""Most bytes of a body that is part of its head."""

pack = _FORM.pack

_new = tuple.__new__
"""Makes a named tuple in half the time of a call of its class."""


class Head(NamedTuple):
    """The numbers of a head, in their order."""

    run: int
    """Number of the run of the job."""
    kind: int
    flags: int
    payloads: int
    """1 where payloads follow; their sizes stand in the body."""
    label: int
    """Label of the group."""
    number: int
    """Number of the meeting, or of the oblivious superstep, of the group; of CREDIT: how many
    posts."""
    superstep: int
    body_bytes: int
    messages: int
    """Messages of an oblivious post."""
    stamp: int
    """Time at which the sender came to the meeting in ns, or 0."""


def unpack(data: bytes | bytearray) -> Head:
    """Return the numbers of a head from its bytes."""
    return _new(Head, _FORM.unpack_from(data))


ROOT = 0
"""The label of the root group."""


def label_of(parent: int, ordinal: int, index: int) -> int:
    """Return the label of a sub-group: the same in all its processes, without communication.

    It is a hash of 64 bits of the way to the group. Two groups with the same label would be
    mistaken for each other; among a million groups of a run that has a chance of 1 to 10^7.

    Args:
        parent: label of the group that was divided.
        ordinal: number of the partition among those of that group.
        index: number of the sub-group in the partition.
    """
    way = b"%d %d %d" % (parent, ordinal, index)
    return int.from_bytes(hashlib.blake2b(way, digest_size=8).digest(), "little") or 1
