"""Where a program of mpi4py spends its time on many small messages.

A message of a few bytes costs what a call costs, on both sides: some microseconds in Python before
and after MPI, the latency, and the time for which the two sides wait for each other, since
calls never take equally long. None of this is work, and a longer message would pay it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import account as parts
from bsplib.profiler.mpi_words import ends_with_message
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler.account import Ints
    from bsplib.profiler.loss_sums import LossSums
    from bsplib.recording.records import Run

CALL_NS = 5_000
"""What is computed between two messages in a shorter time is taken for the cost of the call."""
_SMALL_BYTES = 4096
"""Messages that have fewer bytes on average are small: most of their time is no transfer."""
_FEWEST = 5
"""A place that is passed fewer times does not have too many messages."""
_COSTS = (parts.TRANSFERS, parts.TRANSFER_IMBALANCE, parts.LATENCY, parts.UNEXPLAINED)


class SmallMessages(NamedTuple):
    """Supersteps that end with small messages."""

    origins: tuple[int, ...]
    """Call stacks; the one that takes most first."""
    shares: Ints
    """What they take of each part of the account, in nanoseconds."""
    in_step: frozenset[int]
    """The call stacks at which what processes wait for each other is a part of this."""


def small_messages(run: Run, sums: LossSums) -> SmallMessages | None:
    """Find the call stacks that take more time for small messages than for work.

    Args:
        run: the run.
        sums: what is booked at its call stacks.

    Returns:
        None where there are none.
    """
    if not run.is_interleaved:
        return None
    passed, booked = sums.passed.sum(axis=1), sums.by_origin
    is_message = np.array(
        [kind == Kind.OBLSYNC and ends_with_message(run, stack) for stack, kind in sums.origins],
        bool,
    )
    waiting = booked[parts.IMBALANCE] + booked[parts.BLOCKED]
    in_step, only_calls = waiting <= CALL_NS * passed, booked[parts.USEFUL] <= CALL_NS * passed
    shares = np.zeros_like(booked)
    shares[list(_COSTS)] = booked[list(_COSTS)]
    for part in (parts.IMBALANCE, parts.BLOCKED):
        shares[part] = np.where(in_step, booked[part], 0)
    shares[parts.USEFUL] = np.where(only_calls, booked[parts.USEFUL], 0)
    ns, work = shares.sum(axis=0), booked[parts.USEFUL] - shares[parts.USEFUL]
    often = sums.passed.max(axis=1, initial=0) >= _FEWEST
    chosen = np.flatnonzero(
        is_message & often & (ns > work) & (sums.sent_bytes <= _SMALL_BYTES * passed)
    )
    if len(chosen) == 0:
        return None
    chosen = chosen[np.argsort(-ns[chosen], kind="stable")]
    return SmallMessages(
        tuple(chosen.tolist()),
        shares[:, chosen].sum(axis=1),
        frozenset(chosen[in_step[chosen]].tolist()),
    )
