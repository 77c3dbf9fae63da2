"""Which receive got which message, from the records of both sides.

MPI keeps messages in order: of all messages from one process to another with one tag on one
communicator, the receive that was posted first gets the one that was sent first. So the n-th
send belongs to the n-th receive that got such a message, in the order in which they were posted.
Which message a receive with an open source or tag got, MPI said when it was completed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bsplib.record.joining.calls import Role
from bsplib.record.joining.ranks import NO_PROCESS, Ints, MpiCalls, distinct_numbers, nth_of_key

_RECEIVES = (Role.RECEIVE, Role.BOTH)
_SENDS = (Role.SEND, Role.BOTH, Role.SEND_START, Role.BOTH_START)


@dataclass(frozen=True)
class Messages:
    """Messages between processes; each array has one element for each message."""

    send: Ints
    """Position of the call that sent it."""
    post: Ints
    """Position of the call with which the receive began; -1 where none is known."""
    arrival: Ints
    """Position of the call in which it was received; -1 where none is known."""
    source: Ints
    target: Ints
    size: Ints
    """Bytes, by the sender."""


def matched(calls: MpiCalls) -> Messages:
    """Return the messages of a program, with the receive of each where it is known.

    A message that a process sends to itself is among them.
    """
    send = _sends(calls)
    receive, arrival, source, tag = _receives(calls)
    sent = np.stack([calls.comm[send], calls.pid[send], calls.partner[send], calls.tag[send]])
    got = np.stack([calls.comm[receive], source, calls.pid[receive], tag])
    got_by = _pairs(_without_open_tags(sent, got), receive)
    post, came = np.full(len(send), -1, np.int64), np.full(len(send), -1, np.int64)
    known = got_by >= 0
    post[known], came[known] = receive[got_by[known]], arrival[got_by[known]]
    return Messages(send, post, came, calls.pid[send], calls.partner[send], calls.out[send])


def _sends(calls: MpiCalls) -> Ints:
    sends = np.isin(calls.role, _SENDS)
    received = np.zeros(len(calls.role), bool)
    received[calls.origin[(calls.origin >= 0) & (calls.dones["source"] >= 0)]] = True
    # A persistent request sends if it has bytes, or if nothing came when it was completed.
    sends |= (calls.role == Role.START) & ((calls.out > 0) | ~received)
    return np.flatnonzero(sends & (calls.partner != NO_PROCESS) & (calls.comm >= 0))


def _receives(calls: MpiCalls) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the calls that posted receives and those that got them, with source and tag.

    They are in the order of posts.
    """
    dones = calls.dones
    at = dones["event"].astype(np.int64)
    told = dones["source"] >= 0
    told &= np.isin(calls.role[at], _RECEIVES) | (calls.role[at] == Role.COMPLETE)
    told &= (calls.origin >= 0) | (dones["request"] == 0)
    post = np.where(calls.origin >= 0, calls.origin, at)[told]
    spoken = np.zeros(len(calls.role), bool)
    spoken[at[told]] = True
    alone = np.flatnonzero(
        (calls.role == Role.RECEIVE) & ~spoken & (calls.partner != NO_PROCESS) & (calls.comm >= 0)
    )
    columns = (
        np.concatenate([post, alone]),
        np.concatenate([at[told], alone]),
        np.concatenate([dones["source"][told].astype(np.int64), calls.partner[alone]]),
        np.concatenate([dones["tag"][told].astype(np.int64), calls.tag[alone]]),
    )
    order = np.argsort(columns[0], kind="stable")
    post, arrival, source, tag = (column[order] for column in columns)
    return post, arrival, source, tag


def _without_open_tags(sent: Ints, got: Ints) -> tuple[Ints, Ints]:
    """Number the channels of messages: communicator, source, target and tag.

    Where the tag of some receive is not known, the tags of the channel do not count.

    Returns:
        The channels of the messages sent, and of those received.
    """
    both = np.concatenate([sent, got], axis=1)
    wide = distinct_numbers(both[:3])
    opened = np.zeros(int(wide.max(initial=-1)) + 1, bool)
    opened[wide[sent.shape[1] :][got[3] < 0]] = True
    tag = np.where(opened[wide], -1, both[3])
    channel = distinct_numbers(np.stack([wide, tag]))
    return channel[: sent.shape[1]], channel[sent.shape[1] :]


def _pairs(channels: tuple[Ints, Ints], receive: Ints) -> Ints:
    """Return for each send the position of its receive, -1 where there is none.

    Args:
        channels: the channels of the messages sent, and of those received.
        receive: the receives.
    """
    sent, got = channels
    width = max(len(sent), len(receive)) + 1
    wanted = sent * width + nth_of_key(sent)
    offered = got * width + nth_of_key(got)
    order = np.argsort(offered, kind="stable")
    if len(order) == 0:
        return np.full(len(sent), -1, np.int64)
    near = np.searchsorted(offered[order], wanted).clip(max=len(order) - 1)
    return np.where(offered[order][near] == wanted, order[near], -1)
