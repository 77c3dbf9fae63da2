"""Where a program of mpi4py spends its time on many small messages.

A message of a few bytes costs what a call costs, on both sides: some microseconds in Python before
and after MPI, the latency, and the time for which the two sides wait for each other, since
calls never take equally long. None of this is work, and a longer message would pay it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.directions import is_out
from bsplib.profiler import account as parts
from bsplib.profiler._numbering import changes
from bsplib.profiler.mpi_words import end_with_messages, end_with_sends, ends_with_message
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.account import Account, Ints
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


# -- supersteps that could be one ------------------------------------------------------------------


def move_nothing(account: Account) -> NDArray[np.bool_]:
    """Mark the supersteps that move no bytes, with mpi4py not even empty messages.

    Args:
        account: the account of a window of a run.
    """
    found: NDArray[np.bool_] = account.h_max == 0
    if account.run.is_interleaved:
        found[account.step[_sending(account)]] = False
    return found


def could_be_one(account: Account) -> NDArray[np.bool_]:
    """Mark the supersteps of messages that could be one with the one before.

    In such a superstep no process sends anything that had come there, since nothing had. So it is
    where no process sends anything, and where those that send have only called Send before:
    whether a process has received something is not known of other calls. Of several
    in a row each is compared with all that it would be one with.

    Args:
        account: the account of a window of a run of mpi4py.
    """
    found, rows = move_nothing(account), _sending(account)
    needs = np.full(len(found), -1, np.int64)
    np.maximum.at(needs, account.step[rows], _received_at(account)[rows])
    group_of = np.zeros(len(found), np.int64)
    group_of[account.step] = account.run.records["group"]
    found[_merged(_alone_with_messages(account), needs, group_of)] = True
    return found


def _sending(account: Account) -> Ints:
    """Return the records whose processes sent messages, also empty ones."""
    traffic = account.run.traffic
    rows: Ints = np.unique(traffic["record"][traffic["messages"] > 0])
    return rows


def _alone_with_messages(account: Account) -> NDArray[np.bool_]:
    """Mark the supersteps of messages beside which there is no other sub-group."""
    run, records = account.run, account.run.records
    others = np.zeros(len(records), bool)
    others[account.owner[account.owner >= 0]] = True  # they have sub-groups
    others |= ~(end_with_messages(run, records) & (records["kind"] == Kind.OBLSYNC))
    entered = np.flatnonzero(account.owner >= 0)
    pairs = np.unique(np.stack([account.owner[entered], records["group"][entered]]), axis=1)
    several = np.bincount(pairs[0], minlength=len(records)) > 1
    others[entered] |= several[account.owner[entered]]
    alone = np.ones(len(account.h_max), bool)
    alone[account.step[others]] = False
    return alone


def _received_at(account: Account) -> Ints:
    """Return for each record the last superstep before at which its process may have received.

    Only supersteps of the same group count; -1 where there is none.
    """
    run, records = account.run, account.run.records
    order = np.lexsort((account.step, records["pid"], records["group"]))
    only_sent = end_with_sends(run, records)
    only_sent[run.traffic["record"][~is_out(run.traffic["direction"])]] = False
    first = changes(records["group"][order], records["pid"][order])
    run_of = np.cumsum(first) * (len(account.h_max) + 1)
    last = np.where(only_sent, -1, account.step)[order] + 1 + run_of
    before = np.append(0, np.maximum.accumulate(last)[:-1]) - run_of - 1
    received = np.full(len(order), -1, np.int64)
    received[order] = before.clip(min=-1)
    return received


def _merged(of_messages: NDArray[np.bool_], needs: Ints, group: Ints) -> list[int]:
    """Return the supersteps that could be one with those before them.

    Args:
        of_messages: marks the supersteps that count.
        needs: the last superstep that each one needs to be complete.
        group: the group of each; the supersteps of a group are numbered in their order.
    """
    merged, begun, last = list[int](), -1, -1
    for step in np.flatnonzero(of_messages).tolist():
        if step == last + 1 and last >= 0 and group[step] == group[last] and needs[step] < begun:
            merged.append(step)
        else:
            begun = step
        last = step
    return merged
