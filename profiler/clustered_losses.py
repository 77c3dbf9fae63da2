"""The losses of a run, clustered by where they arise, who is waited for, and why.

What is lost is taken from the account, record by record: what others wait for the record of a
straggler, what a process is blocked, what a transfer takes. It is clustered by the whole call
stack with its call sites, and by the process. At a call stack one superstep may bear most of
it (*one-off*), some processes may (*fixed*), or no process does (*rotating*). Clusters with one
cause, one process and one cost centre in one function are one loss, whoever called that. So are
those that samples book to one line, wherever the supersteps end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.kinds import FIXED, ONE_OFF
from bsplib.profiler.lines import book_samples
from bsplib.profiler.loss_clusters import drafts_of
from bsplib.profiler.loss_drafts import ClusteredLoss, Draft
from bsplib.profiler.loss_lines import LookedAt, LossLines
from bsplib.profiler.loss_rows import RowsOfDrafts
from bsplib.profiler.loss_sums import BYTES, COMM
from bsplib.profiler.whatif import REMEDIES, MendedRows, Replay, saved

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.lines import LinePlace
    from bsplib.profiler.loss_lines import CalledLine
    from bsplib.profiler.run_account import RunAccount

LEAST_SAVED = 0.01
"""Transfers differ by chance if to even them saves a smaller share of the time in supersteps."""
LEAST_SHARE = 0.05
"""A loss that is a smaller share of the time in supersteps on a core has no sentence."""
_HALF, _LITTLE = 0.5, 0.1


class ClusteredLosses(NamedTuple):
    """The losses of a run, and what it would take at best."""

    losses: tuple[ClusteredLoss, ...]
    """The greatest first."""
    alone_ns: int
    """How long the supersteps would take with their useful computation only."""


def find(callgraph: CallGraph, account: RunAccount) -> ClusteredLosses:
    """Find the losses of a run, in a pass over what its windows lose.

    Args:
        callgraph: the call graph of the run.
        account: the account of the run, at any rates.
    """
    least = LEAST_SHARE * account.in_supersteps_ns()
    drafts = [draft for draft in drafts_of(callgraph, account) if draft.ns > 0]
    if callgraph.run.samples is not None:
        drafts = _joined_by_line(callgraph, account, drafts, least)
    drafts.sort(key=lambda draft: -draft.ns)
    worth = [draft for draft in drafts if draft.ns >= least or draft.cause == BYTES]
    rows_of = RowsOfDrafts(callgraph, account.run.nprocs, drafts)
    mends = [(draft, each) for draft in worth for each in REMEDIES.get(draft.cause, (draft.cause,))]
    replay, booked = Replay(account.run, len(mends)), book_samples(callgraph.run)
    for each in account.accounts():
        replay.add_alone(each, each.computing.core)
        before = np.zeros((len(mends), len(each.step)))
        after = np.zeros_like(before)
        looked_at = LookedAt(each, callgraph.run.samples, booked)
        for draft, rows in rows_of.of(each):
            draft.measured.add(each, draft, rows, callgraph)
            if draft.inside is not None:
                draft.inside.add(looked_at, rows.rows)
            for number, (mended, remedy) in enumerate(mends):
                if mended is draft:
                    before[number], after[number] = saved(remedy, MendedRows(each, rows.rows))
        if mends:
            replay.add(each, before, after)
    for (draft, remedy), saved_ns in zip(mends, replay.saved_ns().tolist(), strict=True):
        draft.without_ns[remedy] = account.elapsed_ns - round(saved_ns)
    enough = LEAST_SAVED * account.in_supersteps_ns() / account.run.nprocs
    drafts = _of_transfers(callgraph, account.elapsed_ns, drafts, enough)
    drafts.sort(key=lambda draft: -draft.ns)
    return ClusteredLosses(tuple(draft.clustered(callgraph) for draft in drafts), replay.alone_ns())


# -- drafts of one line ---------------------------------------------------------------------------


def _joined_by_line(
    callgraph: CallGraph, account: RunAccount, drafts: list[Draft], least: float
) -> list[Draft]:
    """Join drafts of one cause and process whose samples are most at one line with one caller.

    What is less than ``least``, too little for a sentence, is joined whoever calls the line.
    """
    joinable = [draft for draft in drafts if draft.inside is not None and draft.habit != ONE_OFF]
    if len({draft.who for draft in joinable}) == len(joinable):
        return drafts
    rows_of = RowsOfDrafts(callgraph, account.run.nprocs, drafts)
    booked = book_samples(callgraph.run)
    for each in account.accounts():
        looked_at = LookedAt(each, callgraph.run.samples, booked)
        for draft, rows in rows_of.of(each):
            if draft.inside is not None:
                draft.inside.add(looked_at, rows.rows)
    lines = LossLines(callgraph.run)
    line_of = {draft: lines.line(draft.inside) for draft in joinable if draft.inside is not None}
    for draft in drafts:
        draft.look_anew()
    joined = _joined(drafts, line_of.get)
    return _joined(joined, lambda draft: _place(line_of.get(draft)) if draft.ns < least else None)


def _place(line: CalledLine | None) -> LinePlace | None:
    return None if line is None else line.place


def _joined(drafts: list[Draft], key_of: Callable[[Draft], object]) -> list[Draft]:
    """Join drafts of one cause and process that have the same key, but None, into the first."""
    first: dict[object, Draft] = {}
    for draft in sorted(drafts, key=lambda draft: -draft.ns):
        key = key_of(draft)
        whole = first.setdefault((draft.who, key) if key is not None else draft, draft)
        if whole is not draft:
            whole.join(draft)
    return list(first.values())


def _of_transfers(
    callgraph: CallGraph, elapsed_ns: int, drafts: list[Draft], least_ns: float
) -> list[Draft]:
    """Decide between the transfers of a cost centre and waiting for those of some process.

    Where to even out the bytes saves less than ``least_ns``, all of it is the cost of the bytes,
    unless these cost next to nothing: then a process is waited for since it left the superstep
    before late. Where it is most of what they cost, to even them out is the better remedy.
    """

    def place(draft: Draft) -> tuple[str, ...]:
        return callgraph.origins[draft.origins[0]].chain[-2:]

    of_bytes = {place(draft): draft for draft in drafts if draft.cause == BYTES}
    left_out = set()
    for draft in drafts:
        whole = of_bytes.get(place(draft)) if draft.cause == COMM else None
        if whole is None:
            continue
        if elapsed_ns - draft.without_ns.get(COMM, elapsed_ns) < least_ns:
            if whole.ns >= _LITTLE * draft.ns:
                whole.take_uneven(draft)
                left_out.add(draft)
        elif draft.habit == FIXED and draft.ns > _HALF * whole.ns:
            left_out.add(whole)
    return [draft for draft in drafts if draft not in left_out]
