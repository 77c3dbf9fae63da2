"""Programs that went wrong once, made as short as they could be, and the seeds of others."""

from __future__ import annotations

from .steps import Allocate, Blob, Literal, Oblsync, Program, Put, Read, Ref, Send, Sync, Thing

LARGE = Literal((1500,), "f8", 5)


def _to_oneself(*payloads: object, then: tuple[str, ...]) -> Program:
    """One process sends itself a message in each superstep, and reads the last but one late."""
    block: list[object] = []
    for number, payload in enumerate(payloads):
        block.append(Send(0, 0, payload))  # type: ignore[arg-type]  # any payload
        if number == len(payloads) - 1:
            block.append(Read(0, then))
        block.append(Oblsync((1,)))
    return Program(1, block)


FOUND = {
    "a view of a message to itself": _to_oneself(
        Literal((200,), "f8", 4), LARGE, Literal((1500,), "f8", 8), Blob(0, 12000), then=("hold",)
    ),
    "a pickle to itself": _to_oneself(
        Blob(4, 12000), Literal((200,), "f8", 0), Thing(4, 1500), LARGE, then=("move",)
    ),
    "two puts into read-only views": Program(
        1,
        [
            Allocate("a1", "empty", "f4", ((2,),), 1),
            Sync(),
            Put(0, 0, Literal((), "f4", 5), Ref("a1", (Ellipsis,), read_only=True)),
            Put(0, 0, Ref("a1"), Ref("a1", (slice(0, 2),), read_only=True)),
            Oblsync((2,)),
        ],
    ),
}

SEEDS = (56, 81, 81, 81, 86, 102, 113, 194, 198, 215, 284, 429, 454, 528)
"""Of 600: what overwrote messages to oneself, what refused read-only views, and (81, often)
what used a block again while a process still looked at it came up in them."""

POOL_SEEDS = (16, 58, 61, 91, 106, 301, 456, 476, 789, 1090, 1129, 1299, 1306)
"""Programs in which each transfer comes before each event that may let memory be used again: the
next superstep, the end of a group, a split, and the next run of a pool."""
