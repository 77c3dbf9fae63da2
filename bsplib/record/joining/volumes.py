"""The bytes of collectives, by what each process must send and receive.

How a library moves them is its own: a broadcast of n bytes can go from the root to each
process, or along a tree. What does not depend on that is that the root has to send n
bytes, and that each other process has to receive n. So h of a broadcast is n, of a reduction of a
vector of n bytes n, of a gather of n bytes from each of p processes (p - 1) n.

Where bytes are copied or combined on the way, they are counted as if they went from one
process to the next: then each sends and receives what it must, and no more. There the
partners are no more than a convention. Rows without bytes say who needs whom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bsplib.record.joining.calls import BASE
from bsplib.record.joining.collectives import Collectives
from bsplib.record.joining.ranks import Calls, Ints


class Flows(NamedTuple):
    """Bytes from one part of a collective to another, as positions of parts."""

    source: Ints
    target: Ints
    size: Ints
    messages: Ints


class _Members(NamedTuple):
    """The parts of one collective."""

    parts: Ints
    """In the order of pids."""
    root: int
    """Position in ``parts``; -1 where it is not known."""
    out: Ints
    into: Ints


def flows(calls: Calls, collectives: Collectives) -> Flows:
    """Return the bytes of all collectives whose partners the records do not name.

    Those of the v and w variants of Alltoall and of neighbourhoods have rows by partner.
    """
    found = [_EMPTY]
    begin = collectives.begin
    bounds = np.append(
        np.flatnonzero(np.diff(collectives.number, prepend=-1)), len(collectives.number)
    )
    base = [BASE[call] for call in calls.call[begin[bounds[:-1]]].tolist()]
    is_root = calls.partner[begin] == calls.pid[begin]
    for name, start, stop in zip(base, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rule = _RULES.get(name)
        if rule is None or stop - start < 2:
            continue
        parts = np.arange(start, stop)
        roots = np.flatnonzero(is_root[parts])
        rows = begin[parts]
        root = int(roots[0]) if len(roots) else -1
        found += rule(_Members(parts, root, calls.out[rows], calls.into[rows]))
    return Flows(*(np.concatenate(column) for column in zip(*found, strict=True)))


_NONE = np.zeros(0, np.int64)
_EMPTY = Flows(_NONE, _NONE, _NONE, _NONE)


def _flow(source: Ints, target: Ints, size: Ints, messages: int) -> Flows:
    return Flows(source, target, size, np.full(len(source), messages, np.int64))


def _around(members: _Members) -> Iterator[Flows]:
    """Allreduce: each process sends its vector, and receives one."""
    yield _flow(members.parts, np.roll(members.parts, -1), members.out, 1)


def _onwards(members: _Members) -> Iterator[Flows]:
    """Scan: each process receives what those before it have, combined."""
    yield _flow(members.parts[:-1], members.parts[1:], members.out[:-1], 1)


def _from_root(members: _Members) -> Iterator[Flows]:
    """Bcast: the root sends the vector, and each other process receives it."""
    if members.root >= 0:
        parts, into = (np.roll(values, -members.root) for values in (members.parts, members.into))
        yield _flow(parts[:-1], parts[1:], into[1:], 0)
        yield _flow(np.full(len(parts) - 1, parts[0]), parts[1:], np.zeros_like(parts[1:]), 1)


def _to_root(members: _Members) -> Iterator[Flows]:
    """Reduce: each process sends its vector, and the root receives one."""
    if members.root >= 0:
        shift = len(members.parts) - 1 - members.root
        parts, out = (np.roll(values, shift) for values in (members.parts, members.out))
        yield _flow(parts[:-1], parts[1:], out[:-1], 0)
        yield _flow(parts[:-1], np.full(len(parts) - 1, parts[-1]), np.zeros_like(parts[1:]), 1)


def _gather(members: _Members) -> Iterator[Flows]:
    if members.root >= 0:
        root = np.full(len(members.parts), members.parts[members.root])
        yield _flow(members.parts, root, members.out, 1)


def _scatter(members: _Members) -> Iterator[Flows]:
    if members.root >= 0:
        root = np.full(len(members.parts), members.parts[members.root])
        yield _flow(root, members.parts, members.into, 1)


def _all_pairs(members: _Members, size: Ints) -> Iterator[Flows]:
    count = len(members.parts)
    yield _flow(np.repeat(members.parts, count), np.tile(members.parts, count), size, 1)


def _allgather(members: _Members) -> Iterator[Flows]:
    return _all_pairs(members, np.repeat(members.out, len(members.parts)))


def _alltoall(members: _Members) -> Iterator[Flows]:
    count = len(members.parts)
    return _all_pairs(members, np.repeat(members.out // count, count))


def _reduce_scatter(members: _Members) -> Iterator[Flows]:
    return _all_pairs(members, np.tile(members.into, len(members.parts)))


_RULES: dict[str, Callable[[_Members], Iterator[Flows]]] = {
    "Allreduce": _around,
    "Scan": _onwards,
    "Exscan": _onwards,
    "Bcast": _from_root,
    "Reduce": _to_root,
    "Gather": _gather,
    "Gatherv": _gather,
    "Scatter": _scatter,
    "Scatterv": _scatter,
    "Allgather": _allgather,
    "Allgatherv": _allgather,
    "Alltoall": _alltoall,
    "Reduce_scatter": _reduce_scatter,
    "Reduce_scatter_block": _reduce_scatter,
}
