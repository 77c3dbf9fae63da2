"""The timeline of a run for replay: its supersteps in order, with their dependencies.

The order follows from the partitions, not from the clock: the supersteps of a sub-group
come before the superstep of the parent that contains them. In this order every superstep
comes after all supersteps on which it depends.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.directions import is_out
from bsplib.profiler._numbering import preceding, starts
from bsplib.profiler.costs import (
    computation_ns,
    h_inside,
    h_relation,
    leads,
    partner_records,
    record_around,
    spent_ns,
)
from bsplib.profiler.format import host_numbers
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.profiler._arrays import Floats, Ints, Rows
    from bsplib.recording.records import Run


class Step(NamedTuple):
    """A superstep of one group. Its records are consecutive, and so are its links."""

    group: int
    """Position in ``run.groups``."""
    superstep: int
    kind: Kind
    start: int
    """Position of its first record."""
    stop: int
    link_start: int
    """Position of its first link."""
    link_stop: int
    opened: tuple[int, ...]
    """The sub-groups that were opened in it."""


@dataclass(frozen=True)
class Pieces:
    """Pieces of computation: one for most records, several where sub-groups divide it.

    The computation between a sync and the opening of a sub-group belongs to a superstep of
    the parent, but takes place before the first sync of the sub-group. The time inside put,
    get and send is known only for a whole superstep; it is spread evenly over its pieces.
    """

    before: Ints
    """The record before whose arrival the piece was computed."""
    owner: Ints
    """The record to which the computation belongs: for the first pieces each record in turn."""
    share: Floats
    """The part of that record's own time; these add up to 1 for each owner."""
    comp_s: Floats
    """Computation; adds up to ``w_s`` for each owner."""
    waiting_s: Floats
    """Time that the process waited for a core; 0 if CPU time was not measured."""
    calls_s: Floats
    """The rest of the time: inside primitives."""
    recording_s: Floats
    """What the recorder took before the superstep began."""


class Timeline:
    """The records of a run in the order of the steps, with what each of them depends on.

    All arrays have one element for each record, in the order of the steps, unless their
    description says otherwise.

    Args:
        run: a run, as ``bsplib.recording.trace.read_trace`` returns it. If it did not end
            normally, supersteps may lack some of their processes.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        keys, rows = _steps(run)
        self.position: Ints = np.concatenate([np.empty(0, np.int64), *rows])
        """Position in ``run.records``."""
        self.place = np.empty_like(self.position)
        self.place[self.position] = np.arange(len(self.position))
        """Of each record of the run its position in this order."""
        self.link_from, self.link_to, self.link_bytes = _links(run, self.place)
        """For each link (a transfer in a superstep from one process to another): the record of
        the sender, that of the receiver, and the bytes."""
        bounds, opened = np.cumsum([0, *map(len, rows)]), _opened(run)
        ends = pairwise(bounds.tolist()), pairwise(np.searchsorted(self.link_to, bounds).tolist())
        kinds = [Kind(min(run.records["kind"][each], default=Kind.END)) for each in rows]
        self.steps = [
            Step(*key, kind, *records, *links, tuple(opened.get(key, ())))
            for key, kind, records, links in zip(keys, kinds, *ends, strict=True)
        ]
        self.pid: Ints = run.records["pid"][self.position].astype(np.int64)
        self.step = np.repeat(np.arange(len(rows)), np.diff(bounds))
        """Position in ``steps``."""
        before = preceding(run.records["pid"].astype(np.int64))[self.position]
        self.before = np.where(before < 0, -1, self.place[before])
        """The previous record of the same process; -1 if there is none."""

    @cached_property
    def w_s(self) -> Floats:
        """Computation of the process in this superstep, without that in sub-groups."""
        return computation_ns(self.run)[self.position] / 1e9

    @cached_property
    def pieces(self) -> Pieces:
        """The computation of all records in pieces."""
        return _pieces(self)

    @cached_property
    def ahead_s(self) -> Floats:
        """Computation of the process since its previous record, of whatever group that was."""
        pieces = self.pieces
        return np.bincount(pieces.before, pieces.comp_s, len(self.pid)).astype(np.float64)

    @cached_property
    def h_out_and_in(self) -> tuple[Floats, Floats]:
        """Bytes out of the process, and into it."""
        h_out, h_in = h_relation(self.run)
        return h_out[self.position], h_in[self.position]

    @cached_property
    def calls(self) -> Ints:
        """Calls of put, get and send, those to the process itself left out."""
        return calls_of_records(self.run)[self.position]

    @cached_property
    def hosts(self) -> Ints | None:
        """The number of the host of each process, by pid; None where the trace names no hosts."""
        return host_numbers(self.run)

    def inside_hosts(self, hosts: Ints) -> tuple[Floats, Floats]:
        """Return the part of ``h_out_and_in`` from and to processes of the same host."""
        h_out, h_in = h_inside(self.run, hosts)
        return h_out[self.position], h_in[self.position]


def calls_of_records(run: Run) -> Ints:
    """Return the calls of put, get and send of each record, but for those to the process itself."""
    traffic = run.traffic
    found = np.bincount(traffic["record"], traffic["messages"], len(run.records))
    return found.astype(np.int64)


# -- supersteps in order ------------------------------------------------------------------


def _steps(run: Run) -> tuple[list[tuple[int, int]], list[NDArray[np.intp]]]:
    """Order the supersteps; return group and number, and the positions of the records of each."""
    group, superstep = (run.records[name].astype(np.int64) for name in ("group", "superstep"))
    order = np.lexsort((run.records["pid"], superstep, group))
    begins = starts(group[order], superstep[order])
    keys = zip(group[order[begins]].tolist(), superstep[order[begins]].tolist(), strict=True)
    rows = dict(
        zip(keys, np.split(order, begins[1:]), strict=False)
    )  # without records one is empty
    supersteps: dict[int, list[int]] = defaultdict(list)
    opened = _opened(run)
    for key in sorted(rows.keys() | opened.keys()):
        supersteps[key[0]].append(key[1])
    found = list(_in_order(supersteps, opened, run.is_interleaved))
    return found, [rows.get(key, order[:0]) for key in found]


def _opened(run: Run) -> dict[tuple[int, int], list[int]]:
    """Return the sub-groups that were opened in each superstep of each group, in order."""
    opened: dict[tuple[int, int], list[int]] = defaultdict(list)
    numbered = list(enumerate(run.groups))[1:]
    for number, info in sorted(numbered, key=lambda item: (item[1].ordinal, item[1].index)):
        opened[info.parent, info.superstep].append(number)
    return opened


def _in_order(
    supersteps: dict[int, list[int]],
    opened: dict[tuple[int, int], list[int]],
    interleaved: bool,
) -> Iterator[tuple[int, int]]:
    """Yield (group, superstep), each after those of the sub-groups that it contains."""
    # An explicit stack: a trace may nest groups more deeply than Python's recursion limit.
    waiting: list[tuple[int, int, bool]] = [(0, step, False) for step in supersteps[0][::-1]]
    while waiting:
        group, superstep, entered = waiting.pop()
        if entered:
            yield group, superstep
            continue
        waiting.append((group, superstep, True))
        inside = [
            (child, step, False)
            for child in opened.get((group, superstep), ())
            for step in supersteps[child]
        ]
        waiting += reversed(sorted(inside, key=itemgetter(1)) if interleaved else inside)


# -- what depends on what -----------------------------------------------------------------


def _links(run: Run, inverse: NDArray[np.intp]) -> tuple[Ints, Ints, Ints]:
    """Return sender, receiver and bytes of each transfer, also of empty ones, by receiver."""
    traffic = run.traffic
    partner = partner_records(run)
    known = (partner >= 0) & (traffic["messages"] > 0)
    caller, partner = inverse[traffic["record"][known]], inverse[partner[known]]
    out = is_out(traffic["direction"][known])
    sender, receiver = np.where(out, caller, partner), np.where(out, partner, caller)
    order = np.argsort(receiver, kind="stable")
    return sender[order], receiver[order], traffic["bytes"][known][order]


# -- pieces of computation ------------------------------------------------------------------


def _pieces(timeline: Timeline) -> Pieces:
    """Divide the time between syncs into pieces, by the records to which it belongs."""
    records, before = timeline.run.records[timeline.position], timeline.before
    since = np.where(before < 0, _began(records)[records["pid"]], records["end"][before])
    lengths = np.maximum(records["arrive"] - since, 0)
    # These were in no other group since their last sync.
    whole = records["group"] == np.where(before < 0, 0, records["group"][before])
    own = records["arrive"] - np.maximum(records["start"], since)
    lengths = np.where(whole, lengths, np.maximum(own, 0))
    run, every = timeline.run, np.arange(len(lengths))
    found = leads(run, record_around(run), preceding(run.records["pid"].astype(np.int64)))
    piece_before = np.append(every, timeline.place[found.row])
    owner = np.append(every, timeline.place[found.around])
    length_s = np.append(lengths, found.ns) / 1e9
    whole_s = np.bincount(owner, length_s, len(lengths))[owner]
    share = np.divide(length_s, whole_s, out=np.ones_like(length_s), where=whole_s > 0)
    spent_s = share * (spent_ns(records)[owner] / 1e9)
    comp_s, rest_s = share * timeline.w_s[owner], length_s - spent_s
    recorded_s = np.where(piece_before == owner, records["recording"][owner] / 1e9, 0.0)
    recording_s = np.clip(recorded_s, 0.0, rest_s)
    waiting_s, calls_s = spent_s - comp_s, rest_s - recording_s
    return Pieces(piece_before, owner, share, comp_s, waiting_s, calls_s, recording_s)


def _began(records: Rows) -> Ints:
    """Return when each process began."""
    began = np.full(int(records["pid"].max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(began, records["pid"], records["start"])
    return began
