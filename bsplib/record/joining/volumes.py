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
from bsplib.record.joining.ranks import Ints, MpiCalls


class Flows(NamedTuple):
    """Bytes from one part of a collective to another, as positions of parts."""

    source: Ints
    target: Ints
    size: Ints
    messages: Ints


class _Members(NamedTuple):
    """The parts of collectives with one rule and as many processes, a row for each collective."""

    parts: Ints
    """The elements are in the order of pids."""
    root: Ints
    """Positions in the rows; -1 where it is not known."""
    out: Ints
    into: Ints

    def with_root(self) -> _Members:
        """Return those whose root is known."""
        return _Members(*(column[self.root >= 0] for column in self))

    def of_root(self) -> Ints:
        """Return the part of the root, once for each part."""
        return np.repeat(self.parts[np.arange(len(self.root)), self.root], self.parts.shape[1])

    def from_root(self, after: int) -> Ints:
        """Return the columns in turn from the root on, or from the ``after``-th part behind it."""
        count = self.parts.shape[1]
        rolled: Ints = (np.arange(count) + self.root[:, None] + after) % count
        return rolled


def flows(calls: MpiCalls, collectives: Collectives) -> Flows:
    """Return the bytes of all collectives whose partners the records do not name.

    Those of the v and w variants of Alltoall and of neighbourhoods have rows by partner.
    """
    found = [_EMPTY]
    begin = collectives.begin
    first = np.flatnonzero(np.diff(collectives.number, prepend=-1))
    size = np.diff(np.append(first, len(begin)))
    rule = _RULE_OF_CALL[calls.call[begin[first]]]
    is_root = calls.partner[begin] == calls.pid[begin]
    for number, each in enumerate(_RULES.values()):
        of_rule = np.flatnonzero((rule == number) & (size > 1))
        for count in np.unique(size[of_rule]).tolist():
            parts = first[of_rule[size[of_rule] == count]][:, None] + np.arange(count)
            roots, rows = is_root[parts], begin[parts]
            root = np.where(roots.any(axis=1), roots.argmax(axis=1), -1)
            found += each(_Members(parts, root, calls.out[rows], calls.into[rows]))
    return Flows(*(np.concatenate(column) for column in zip(*found, strict=True)))


_NONE = np.zeros(0, np.int64)
_EMPTY = Flows(_NONE, _NONE, _NONE, _NONE)


def _flow(source: Ints, target: Ints, size: Ints, messages: int) -> Flows:
    columns = source.ravel(), target.ravel(), size.ravel()
    return Flows(*columns, np.full(len(columns[0]), messages, np.int64))


def _around(members: _Members) -> Iterator[Flows]:
    """Allreduce: each process sends its vector, and receives one."""
    yield _flow(members.parts, np.roll(members.parts, -1, axis=1), members.out, 1)


def _onwards(members: _Members) -> Iterator[Flows]:
    """Scan: each process receives what those before it have, combined."""
    yield _flow(members.parts[:, :-1], members.parts[:, 1:], members.out[:, :-1], 1)


def _from_root(members: _Members) -> Iterator[Flows]:
    """Bcast: the root sends the vector, and each other process receives it."""
    known = members.with_root()
    columns = known.from_root(0)
    parts, into = (np.take_along_axis(each, columns, 1) for each in (known.parts, known.into))
    others = parts[:, 1:]
    yield _flow(parts[:, :-1], others, into[:, 1:], 0)
    yield _flow(np.broadcast_to(parts[:, :1], others.shape), others, np.zeros_like(others), 1)


def _to_root(members: _Members) -> Iterator[Flows]:
    """Reduce: each process sends its vector, and the root receives one."""
    known = members.with_root()
    columns = known.from_root(1)
    parts, out = (np.take_along_axis(each, columns, 1) for each in (known.parts, known.out))
    others = parts[:, :-1]
    yield _flow(others, parts[:, 1:], out[:, :-1], 0)
    yield _flow(others, np.broadcast_to(parts[:, -1:], others.shape), np.zeros_like(others), 1)


def _gather(members: _Members) -> Iterator[Flows]:
    known = members.with_root()
    yield _flow(known.parts, known.of_root(), known.out, 1)


def _scatter(members: _Members) -> Iterator[Flows]:
    known = members.with_root()
    yield _flow(known.of_root(), known.parts, known.into, 1)


def _all_pairs(members: _Members, size: Ints) -> Iterator[Flows]:
    count = members.parts.shape[1]
    source, target = np.repeat(members.parts, count, axis=1), np.tile(members.parts, count)
    yield _flow(source, target, size, 1)


def _allgather(members: _Members) -> Iterator[Flows]:
    return _all_pairs(members, np.repeat(members.out, members.parts.shape[1], axis=1))


def _alltoall(members: _Members) -> Iterator[Flows]:
    count = members.parts.shape[1]
    return _all_pairs(members, np.repeat(members.out // count, count, axis=1))


def _reduce_scatter(members: _Members) -> Iterator[Flows]:
    return _all_pairs(members, np.tile(members.into, members.parts.shape[1]))


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
_RULE_OF_CALL = np.array([[*_RULES, name].index(name) for name in BASE])
"""By the number of a call the position of its rule; the number of rules where it has none."""
