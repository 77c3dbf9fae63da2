"""A run laid out for replay: its supersteps in order, and what comes before what.

A superstep of a group and all that its sub-groups did inside it are ordered by the
partitions, not by the clock: sub-groups come before the superstep of their parent
that contains them. In this order every superstep follows all that it depends on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.recording.records import Direction, Run
from bsplib.sync_kinds import Kind
from profiler.costs import (
    METRICS,
    h_relation,
    partner_records,
    record_costs,
    spent_ns,
    superstep_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_COMP = METRICS.index("comp")


class Step(NamedTuple):
    """A superstep of one group. Its records, and links, stand in a row."""

    group: int
    """Position in ``run.groups``."""
    superstep: int
    kind: Kind
    start: int
    """Its first record."""
    stop: int
    link_start: int
    """Its first link."""
    link_stop: int
    opened: tuple[int, ...]
    """Sub-groups that were opened in it."""


@dataclass(frozen=True)
class Timeline:
    """The records of a run in the order of the steps.

    All arrays have one element for each record, in the order of the steps, unless
    they say otherwise.
    """

    run: Run
    steps: tuple[Step, ...]
    position: NDArray[np.intp]
    """Position in ``run.records``."""
    pid: NDArray[np.int64]
    step: NDArray[np.int64]
    """Position in ``steps``."""
    before: NDArray[np.int64]
    """The record that the same process ended before this one; -1 where there is none."""
    w_s: NDArray[np.float64]
    """Computation of the whole superstep here, without that in sub-groups."""
    ahead_s: NDArray[np.float64]
    """Computation of the process since it ended the record before, whosever it is."""
    h_in: NDArray[np.float64]
    h_out: NDArray[np.float64]
    link_from: NDArray[np.int64]
    """For each link, something that came with the superstep: the record that sent it."""
    link_to: NDArray[np.int64]
    """For each link: the record that got it."""
    pieces: Pieces


@dataclass(frozen=True)
class Pieces:
    """Stretches of computation: one for most records, more where sub-groups cut them.

    What a process computes between opening a sub-group and the sync before is its
    parent's, and comes before the first sync of the sub-group. Times inside put, get
    and send are known for a superstep as a whole: they count as spent at its end.
    """

    before: NDArray[np.int64]
    """The record before whose arrival the process does this."""
    owner: NDArray[np.int64]
    """The record whose computation it is."""
    comp_s: NDArray[np.float64]
    """Computation; adds up to ``w_s`` for each owner."""
    waiting_s: NDArray[np.float64]
    """Time that it waited for a core meanwhile; 0 where CPU time was not measured."""
    calls_s: NDArray[np.float64]
    """The rest of the stretch: time inside primitives, and of the recorder."""


def lay_out(run: Run) -> Timeline:
    """Lay a run out.

    Args:
        run: as ``bsplib.recording.trace.read_trace`` returns it. Where it broke off, supersteps
            may lack some of their processes; what was recorded is laid out.
    """
    records, numbers = run.records, superstep_numbers(run)
    steps, position = _steps(run)
    inverse = np.empty_like(position)
    inverse[position] = np.arange(len(position))
    link_from, link_to = _links(run, numbers, inverse)
    steps = _with_links(steps, link_to)
    before = _before(run)[position]
    before = np.where(before < 0, -1, inverse[before])
    w_s = record_costs(run, numbers)[_COMP][position] / 1e9
    spent_s = spent_ns(run)[position] / 1e9
    pieces = _pieces(run, steps, records[position], before, spent_s)
    pieces = _on_a_core(pieces, w_s, spent_s)
    h_out, h_in = h_relation(run, numbers)
    return Timeline(
        run=run,
        steps=tuple(steps),
        position=position,
        pid=records["pid"][position].astype(np.int64),
        step=np.repeat(np.arange(len(steps)), [step.stop - step.start for step in steps]),
        before=before,
        w_s=w_s,
        ahead_s=np.bincount(pieces.before, pieces.comp_s, len(records)).astype(np.float64),
        h_in=h_in[position],
        h_out=h_out[position],
        link_from=link_from,
        link_to=link_to,
        pieces=pieces,
    )


# -- supersteps in order ------------------------------------------------------------------


def _steps(run: Run) -> tuple[list[Step], NDArray[np.intp]]:
    """Order the supersteps; return them and the positions of their records in a row."""
    records = run.records
    by_step = np.lexsort((records["pid"], records["superstep"], records["group"]))
    keys = np.stack([records["group"], records["superstep"]])[:, by_step]
    starts = np.flatnonzero(np.any(np.diff(keys, prepend=-1), axis=0))
    stops = np.append(starts, len(by_step))[1:]
    rows = {
        (group, superstep): by_step[start:stop]
        for group, superstep, start, stop in zip(
            *keys[:, starts].tolist(), starts.tolist(), stops.tolist(), strict=True
        )
    }
    opened = _opened(run)
    supersteps: dict[int, list[int]] = defaultdict(list)
    for group, superstep in sorted(rows.keys() | opened.keys()):
        supersteps[group].append(superstep)

    steps, position, stop = [], [np.empty(0, np.intp)], 0
    for group, superstep in _in_order(supersteps, opened):
        row = rows.get((group, superstep), position[0])
        start, stop = stop, stop + len(row)
        kind = Kind(min(records["kind"][row], default=Kind.END))
        inside = tuple(opened.get((group, superstep), ()))
        steps.append(Step(group, superstep, kind, start, stop, 0, 0, inside))
        position.append(row)
    return steps, np.concatenate(position)


def _opened(run: Run) -> dict[tuple[int, int], list[int]]:
    """Sub-groups by group and superstep that opened them, in the order of the partitions."""
    opened: dict[tuple[int, int], list[int]] = defaultdict(list)
    numbered = list(enumerate(run.groups))[1:]
    for number, info in sorted(numbered, key=lambda item: (item[1].ordinal, item[1].index)):
        opened[info.parent, info.superstep].append(number)
    return opened


def _in_order(
    supersteps: dict[int, list[int]], opened: dict[tuple[int, int], list[int]]
) -> Iterator[tuple[int, int]]:
    """Yield (group, superstep), each after those of the sub-groups that it contains."""
    # A stack of one's own: a trace may nest groups deeper than Python nests calls.
    waiting: list[tuple[int, int, bool]] = [(0, step, False) for step in supersteps[0][::-1]]
    while waiting:
        group, superstep, entered = waiting.pop()
        if entered:
            yield group, superstep
            continue
        waiting.append((group, superstep, True))
        for child in reversed(opened.get((group, superstep), ())):
            waiting += [(child, step, False) for step in supersteps[child][::-1]]


# -- what depends on what -----------------------------------------------------------------


def _before(run: Run) -> NDArray[np.int64]:
    """For each record of a run the one that its process ended before."""
    order = np.argsort(run.records["pid"], kind="stable")
    pid = run.records["pid"][order]
    before = np.full(len(order), -1, np.int64)
    before[order[1:]] = np.where(pid[1:] == pid[:-1], order[:-1], -1)
    return before


def _links(
    run: Run, numbers: NDArray[np.int64], inverse: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Who sent something to whom, also if it was empty; sorted by who got it."""
    traffic = run.traffic
    partner = partner_records(run, numbers)
    known = (partner >= 0) & (traffic["messages"] > 0)
    caller, partner = inverse[traffic["record"][known]], inverse[partner[known]]
    out = traffic["direction"][known] == Direction.OUT
    sender, receiver = np.where(out, caller, partner), np.where(out, partner, caller)
    order = np.argsort(receiver, kind="stable")
    return sender[order], receiver[order]


def _with_links(steps: list[Step], link_to: NDArray[np.int64]) -> list[Step]:
    """The steps with the places of their links."""
    bounds = np.searchsorted(link_to, [[step.start, step.stop] for step in steps] or [[0, 0]])
    return [
        step._replace(link_start=start, link_stop=stop)
        for step, (start, stop) in zip(steps, bounds.tolist(), strict=False)
    ]


# -- stretches of computation ---------------------------------------------------------------


class _Stretch(NamedTuple):
    """A piece before the calls are taken out of it, in nanoseconds."""

    before: int
    owner: int
    length: int


def _pieces(
    run: Run,
    steps: list[Step],
    records: NDArray[np.void],
    before: NDArray[np.int64],
    spent_s: NDArray[np.float64],
) -> Pieces:
    """Cut the time between syncs into pieces by whose computation it is.

    Args:
        run: the run.
        steps: in order.
        records: in the order of the steps; so is all that follows.
        before: as in :class:`Timeline`.
        spent_s: computation with all waiting for a core.
    """
    since = np.where(before < 0, _began(records)[records["pid"]], records["end"][before])
    lengths = np.maximum(records["arrive"] - since, 0)
    whole = _whole(records, before)
    owners = np.flatnonzero(whole)
    own = np.array([owners, owners, lengths[whole]]).T
    cut = _cut_at_partitions(run, steps, records, since, np.flatnonzero(~whole))
    stretches = np.concatenate([own, np.array(cut, np.int64).reshape(-1, 3)])
    owner, length_s = stretches[:, 1], stretches[:, 2] / 1e9
    comp_s = _without_calls(owner, length_s, spent_s)
    return Pieces(stretches[:, 0], owner, comp_s, np.zeros_like(comp_s), length_s - comp_s)


def _on_a_core(pieces: Pieces, w_s: NDArray[np.float64], spent_s: NDArray[np.float64]) -> Pieces:
    """Tell waiting for a core from computation, in each piece by the share of its owner."""
    share = np.divide(w_s, spent_s, out=np.ones_like(w_s), where=spent_s > 0)
    comp_s = pieces.comp_s * share[pieces.owner]
    return replace(pieces, comp_s=comp_s, waiting_s=pieces.comp_s - comp_s)


def _began(records: NDArray[np.void]) -> NDArray[np.int64]:
    """When each process began."""
    began = np.full(int(records["pid"].max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(began, records["pid"], records["start"])
    return began


def _whole(records: NDArray[np.void], before: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Records before which the process was in no other group since its last sync."""
    group: NDArray[np.int32] = records["group"]
    alike: NDArray[np.bool_] = group == np.where(before < 0, 0, group[before])
    return alike


def _cut_at_partitions(
    run: Run,
    steps: list[Step],
    records: NDArray[np.void],
    since: NDArray[np.int64],
    entered: NDArray[np.intp],
) -> list[_Stretch]:
    """Cut the time before records that enter or leave sub-groups."""
    places = {(step.group, step.superstep): (step.start, step.stop) for step in steps}

    def around(record: np.void) -> int | None:
        """The record of the parent that contains this one's group."""
        info = run.groups[record["group"]]
        start, stop = places.get((info.parent, info.superstep), (0, 0))
        found = start + int(np.searchsorted(records["pid"][start:stop], record["pid"]))
        return found if found < stop and records["pid"][found] == record["pid"] else None

    stretches = []
    for number in entered.tolist():
        owner: int | None = number
        until, earliest = int(records["arrive"][number]), int(since[number])
        while owner is not None:
            start = max(int(records["start"][owner]), earliest)
            stretches.append(_Stretch(number, owner, max(until - start, 0)))
            if start == earliest or records["group"][owner] == 0:
                break
            until, owner = start, around(records[owner])
    return stretches


def _without_calls(
    owner: NDArray[np.int64], length_s: NDArray[np.float64], spent_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Take from the stretches of each owner the time in calls, from the last ones first."""
    comp_s = length_s.copy()
    count = np.bincount(owner, minlength=len(spent_s))
    single = count[owner] == 1
    comp_s[single] = spent_s[owner[single]]
    parts: dict[int, list[int]] = defaultdict(list)
    for place in np.flatnonzero(~single).tolist():
        parts[int(owner[place])].append(place)
    for number, places in parts.items():
        excess = float(length_s[places].sum() - spent_s[number])
        for place in reversed(places):
            taken = min(excess, float(comp_s[place]))
            comp_s[place] -= taken
            excess -= taken
    return comp_s
