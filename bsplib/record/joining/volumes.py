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


def flows(calls: MpiCalls, collectives: Collectives) -> Flows:
    """Return the bytes of all collectives whose partners the records do not name.

    Those of the v and w variants of Alltoall and of neighbourhoods have rows by partner.
    """
    begin, number = collectives.begin, collectives.number
    here = np.arange(len(begin))
    edges = np.flatnonzero(np.diff(number, prepend=-1, append=-1))
    first, count = edges[:-1][number], np.diff(edges)[number]
    name = _BASE[calls.call[begin[first]]]  # of the first process, where these differ
    out, into = calls.out[begin], calls.into[begin]
    onwards, back = (first + (here - first + step) % count for step in (1, -1))
    root = np.full(collectives.count, -1, np.int64)
    roots = np.flatnonzero(calls.partner[begin] == calls.pid[begin])[::-1]
    root[number[roots]] = roots  # the first one, should there be several
    root = root[number]

    def among(*names: str) -> Ints:
        return np.flatnonzero(np.isin(name, names) & (count > 1))

    found = []

    def flow(source: Ints, target: Ints, size: Ints, messages: int) -> None:
        found.append((source, target, size, np.full(len(source), messages, np.int64)))

    each = among("Allreduce")  # sends its vector, and receives one
    flow(each, onwards[each], out[each], 1)
    each = among("Scan", "Exscan")  # receives what those before it have, combined
    each = each[onwards[each] > each]
    flow(each, onwards[each], out[each], 1)
    each = among("Bcast")  # the root sends the vector, and each other process receives it
    each = each[(root[each] >= 0) & (root[each] != each)]
    flow(back[each], each, into[each], 0)
    flow(root[each], each, np.zeros_like(each), 1)
    each = among("Reduce")  # sends its vector, and the root receives one
    each = each[(root[each] >= 0) & (root[each] != each)]
    flow(each, onwards[each], out[each], 0)
    flow(each, root[each], np.zeros_like(each), 1)
    each = among("Gather", "Gatherv")
    each = each[root[each] >= 0]
    flow(each, root[each], out[each], 1)
    each = among("Scatter", "Scatterv")
    each = each[root[each] >= 0]
    flow(root[each], each, into[each], 1)
    for names, block in (
        (("Allgather", "Allgatherv"), out),
        (("Alltoall",), out // np.maximum(count, 1)),
    ):
        source, target = _pairs(among(*names), first, count)
        flow(source, target, block[source], 1)
    source, target = _pairs(among("Reduce_scatter", "Reduce_scatter_block"), first, count)
    flow(source, target, into[target], 1)
    return Flows(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _pairs(each: Ints, first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of the parts of some collectives."""
    source = np.repeat(each, count[each])
    place = np.arange(len(source)) - np.repeat(np.cumsum(count[each]) - count[each], count[each])
    return source, first[source] + place


_BASE = np.array(BASE)
