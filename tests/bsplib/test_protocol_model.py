"""All orders of two processes over three supersteps keep what PROTOCOL.md of shm promises.

Each function below returns a part of the protocol as one process performs it, as it is or
with something left out. The search has to find what goes wrong without it: otherwise the
model would show nothing, or the protocol would do more than it has to.
"""

from __future__ import annotations

import pytest

from .protocol_model import ARM, X86, ModelError, Step, explore

SUPERSTEPS = (1, 2, 3)


def without(program, left_out):
    """Leave out the fences of one name."""
    return [step for step, name in program if name is None or name != left_out]


def plain(*steps):
    return [(step, None) for step in steps]


def order(name):
    return [(Step("order"), name)]


def meetings(me, left_out=None, cells=2, staging_buffers=2):
    """Exchange something in a cell, and in a staging or a send buffer, at each sync."""
    it, steps = 1 - me, []
    for superstep in SUPERSTEPS:
        cell, staging_buffer = superstep % cells, superstep % staging_buffers
        steps += plain(
            Step("store", f"staging buffer {staging_buffer} of {me}", superstep),
            Step("store", f"inline entry in cell {cell} of {me}", superstep),
        )
        steps += order("release")
        steps += plain(
            Step("store", f"word of cell {cell} of {me}", superstep),
            Step("await", f"word of cell {cell} of {it}", superstep),
        )
        steps += order("acquire")
        steps += plain(
            Step("read", f"inline entry in cell {cell} of {it}", superstep),
            Step("read", f"staging buffer {staging_buffer} of {it}", superstep),
        )
    return without(steps, left_out)


def replies(me, left_out=None, copies=True, buffer="replies"):
    """Post an inline entry, copy that of the other one, and reply to its get in a second meeting.

    The word of a cell is the number of the meeting. After the second one replies are read, and
    inline entries that were not copied.
    """
    it, steps = 1 - me, []
    for superstep in SUPERSTEPS:
        cells = [(number % 2, number) for number in (2 * superstep - 1, 2 * superstep)]
        if buffer == "entries":
            steps += plain(Step("store", f"entries of {me}", superstep))
        for cell, number in cells:
            is_first = number % 2
            if is_first:
                steps += plain(Step("store", f"inline entry in cell {cell} of {me}", superstep))
            else:
                steps += plain(Step("store", f"{buffer} of {me}", -superstep))
            name = "inline entries" if is_first else "replies"
            steps += order(f"release of {name}")
            steps += plain(
                Step("store", f"word of cell {cell} of {me}", number),
                Step("await", f"word of cell {cell} of {it}", number),
            )
            steps += order(f"acquire of {name}")
            if is_first == copies:
                steps += plain(Step("read", f"inline entry in cell 1 of {it}", superstep))
        steps += plain(Step("read", f"{buffer} of {it}", -superstep))
    return without(steps, left_out)


def sub_groups(me, left_out=None):
    """Reply to a get in one sub-group after the other, each time from the same memory.

    What is left out as "CLOSED" is a mistake that was once in the code: a process that left a
    sub-group gave its replies back although the other one could still be reading them.
    """
    it, steps = 1 - me, []
    for group in SUPERSTEPS:
        if left_out != "CLOSED":
            steps += plain(Step("await", f"CLOSED of {it}", group - 1))
        steps += order("acquire of CLOSED")
        steps += plain(Step("store", f"replies of {me}", group))
        steps += order("release")
        steps += plain(
            Step("store", f"word of {me} in group {group}", 1),
            Step("await", f"word of {it} in group {group}", 1),
        )
        steps += order("acquire")
        steps += plain(Step("read", f"replies of {it}", group))
        steps += order("release of CLOSED")
        steps += plain(Step("store", f"CLOSED of {me}", group))
    return without(steps, left_out)


def early_puts(me, left_out=None):
    """Read and write the other's memory in each superstep; deliver into it at each sync."""
    it, steps, delivered = 1 - me, [], 0
    for superstep in SUPERSTEPS:
        before, early, delivered = delivered, 2 * superstep, 2 * superstep + 1
        if left_out != "DELIVERED":
            steps += plain(Step("await", f"DELIVERED of {it}", superstep - 1))
        steps += order("acquire of DELIVERED")
        steps += plain(
            Step("read", f"memory of {it}", before), Step("store", f"memory of {it}", early)
        )
        steps += order("release")
        steps += plain(
            Step("store", f"word of {me}", superstep), Step("await", f"word of {it}", superstep)
        )
        steps += order("acquire")
        steps += plain(
            Step("read", f"memory of {me}", early), Step("store", f"memory of {me}", delivered)
        )
        steps += order("release of DELIVERED")
        steps += plain(Step("store", f"DELIVERED of {me}", superstep))
    return without(steps, left_out)


def runs_ahead(me, left_out=None, entries=2, ahead=0):
    """Process 0 posts and waits for nobody; process 1 reads what it posts."""
    steps = []
    for superstep in SUPERSTEPS:
        entry = superstep % entries
        if me == 0:
            steps += plain(Step("await", "CONSUMED of 1", superstep - entries - ahead))
            steps += order("acquire of consumed")
            steps += plain(Step("store", f"entry {entry} of 0", superstep))
            steps += order("release of posted")
            steps += plain(Step("store", "POSTED of 0", superstep))
        else:
            steps += plain(Step("await", "POSTED of 0", superstep))
            steps += order("acquire of posted")
            steps += plain(Step("read", f"entry {entry} of 0", superstep))
            steps += order("release of consumed")
            steps += plain(Step("store", "CONSUMED of 1", superstep))
    return without(steps, left_out)


def waking(me, left_out=None, poster_fences=False):
    """Come to each sync, wake the other one, and sleep until it has come as well."""
    it, steps = 1 - me, []
    for superstep in SUPERSTEPS:
        waited, asleep, there, found = (
            f"{name} {superstep}" for name in ("waited", "asleep", "there", "found")
        )
        steps += plain(Step("store", f"word of {me}", superstep))
        if poster_fences:
            steps += [(Step("full"), "fence of the poster")]
        steps += plain(
            Step("look", f"WAITED of {me}", 1, waited),
            Step("store", f"WAITED of {me}", 0, if_so=waited),
        )
        steps += [(Step("full", if_so=waited), "fence that wakes")]
        steps += plain(
            Step("look", f"ASLEEP of {it}", 1, asleep, if_so=waited),
            Step("wake", f"futex of {it}", if_so=asleep),
            Step("look", f"word of {it}", superstep, there),
            Step("store", f"ASLEEP of {me}", 1, if_not=there),
        )
        steps += order("asleep before waited")
        steps += plain(Step("store", f"WAITED of {it}", 1, if_not=there))
        fence = "full" if poster_fences else "all"
        steps += [(Step(fence, if_not=there), "fence of the sleeper")]
        steps += plain(
            Step("look", f"word of {it}", superstep, found, if_not=there),
            Step("sleep", f"futex of {me}", 2 + (left_out != "fence of the sleeper"), if_not=found),
            Step("store", f"ASLEEP of {me}", 0),
        )
    return without(steps, left_out)


LEASE_ENDS = ("next sync", "CLOSED", "REPORTED")
"""Moments in the life of a payload: its lease ends at the first one; then both have left the group;
then another run of the pool begins."""
KEPT, LENT, DROPPED = 1, 2, 3
"""States of a payload. The code asks whether its word *is* KEPT; a look asks for a least value."""


def kept_payload(me, left_out=None, lives=0, skips=()):
    """Process 0 sends a payload, and uses its memory again when process 1 has finished with it.

    Process 1 keeps the payload, and writes into it. Its array dies after ``lives`` moments, before
    it comes to the next one; with ``lives=None`` it keeps nothing. ``skips`` names moments at which
    process 0 does not ask for the state. What is left out as "lease" lets it ask too early.
    """
    steps = []
    if me == 0:
        steps += plain(Step("store", "payload", 10), Step("store", "state", LENT))
        steps += order("release of payload")
        steps += plain(Step("store", "word of 0", 1))
        for number, moment in enumerate(LEASE_ENDS):
            if left_out != "lease":
                steps += plain(Step("await", f"{moment} of 1", 1))
            steps += order("acquire of moments")
            free = "" if moment in skips else f"free at {moment}"
            if free:
                steps += plain(Step("look", "state", LENT, free))
            steps += plain(
                Step("store", "payload", 20 + number, if_so=free),
                Step("read", "payload", 20 + number, if_so=free),
            )
        return without(steps, left_out)
    steps += plain(Step("await", "word of 0", 1))
    steps += order("acquire of payload")
    steps += plain(Step("read", "payload", 10))
    if lives is not None:
        steps += plain(Step("store", "state", KEPT))
        steps += plain(Step("store", "payload", 11))
    for number, moment in enumerate((*LEASE_ENDS, None)):
        if lives is not None and number <= lives:
            steps += plain(Step("read", "payload", 11))
        if number == lives:
            steps += order("release of DROPPED")
            steps += plain(Step("store", "state", DROPPED))
        if moment:
            steps += order("release of moments")
            steps += plain(Step("store", f"{moment} of 1", 1))
    return without(steps, left_out)


RIGHT = [
    (meetings, {}),
    (replies, {}),
    (sub_groups, {}),
    (sub_groups, {"left_out": "acquire of CLOSED"}),  # what follows it is a store
    (early_puts, {}),
    (runs_ahead, {"entries": 1}),
    (runs_ahead, {"entries": 2}),
    (waking, {}),
    (waking, {"poster_fences": True}),
    *[(kept_payload, {"lives": moments}) for moments in (None, *range(4))],
]

WRONG_EVERYWHERE = [
    (meetings, {"cells": 1}),
    (meetings, {"staging_buffers": 1}),  # it is written again before the other one has come
    (replies, {"copies": False}),
    (replies, {"buffer": "entries"}),  # those of the next superstep are written there at once
    (sub_groups, {"left_out": "CLOSED"}),
    (early_puts, {"left_out": "DELIVERED"}),
    (runs_ahead, {"entries": 1, "ahead": 1}),
    (runs_ahead, {"entries": 2, "ahead": 1}),
    (waking, {"left_out": "fence of the sleeper"}),
    (waking, {"left_out": "fence that wakes"}),
    (waking, {"left_out": "fence of the poster", "poster_fences": True}),
    (waking, {"left_out": "fence of the sleeper", "poster_fences": True}),
    (kept_payload, {"left_out": "lease", "lives": None}),
    (kept_payload, {"left_out": "lease"}),
    *[
        (kept_payload, {"lives": 1 + number, "skips": (end,)})
        for number, end in enumerate(LEASE_ENDS)
    ],
]

WRONG_ON_ARM = [
    (meetings, {"left_out": "release"}),
    (meetings, {"left_out": "acquire"}),
    (replies, {"left_out": "release of inline entries"}),
    (replies, {"left_out": "acquire of inline entries"}),
    (replies, {"left_out": "release of replies"}),
    (replies, {"left_out": "acquire of replies"}),
    (sub_groups, {"left_out": "release"}),
    (sub_groups, {"left_out": "acquire"}),
    (sub_groups, {"left_out": "release of CLOSED"}),
    (early_puts, {"left_out": "release"}),
    (early_puts, {"left_out": "acquire"}),
    (early_puts, {"left_out": "release of DELIVERED"}),
    (early_puts, {"left_out": "acquire of DELIVERED"}),
    (runs_ahead, {"left_out": "release of posted"}),
    (runs_ahead, {"left_out": "acquire of posted"}),
    (runs_ahead, {"left_out": "release of consumed"}),
    (waking, {"left_out": "asleep before waited"}),
    (kept_payload, {"left_out": "release of payload"}),
    (kept_payload, {"left_out": "acquire of payload"}),
    (kept_payload, {"left_out": "release of moments", "lives": 1}),
    (kept_payload, {"left_out": "acquire of moments", "lives": 1}),
    (kept_payload, {"left_out": "release of DROPPED", "lives": 2}),
]


def explore_both(protocol, options, machine):
    return explore([protocol(pid, **options) for pid in range(2)], machine)


def named(value):
    if callable(value):
        return value.__name__
    return " ".join(f"{key}={each}" for key, each in value.items()) or "as it is"


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize(("protocol", "options"), RIGHT, ids=named)
def test_no_order_of_steps_breaks_the_protocol(protocol, options, machine):
    explore_both(protocol, options, machine)  # to the end of both: nobody waits for ever


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize(("protocol", "options"), WRONG_EVERYWHERE, ids=named)
def test_what_is_left_out_is_missed_on_every_machine(protocol, options, machine):
    with pytest.raises(ModelError, match=r"reads|waits for ever"):
        explore_both(protocol, options, machine)


@pytest.mark.parametrize(("protocol", "options"), WRONG_ON_ARM, ids=named)
def test_what_is_left_out_is_missed_on_arm(protocol, options):
    with pytest.raises(ModelError, match=r"reads|waits for ever"):
        explore_both(protocol, options, ARM)


@pytest.mark.parametrize(("protocol", "options"), WRONG_ON_ARM, ids=named)
def test_x86_needs_no_fence_that_only_orders(protocol, options):
    explore_both(protocol, options, X86)
