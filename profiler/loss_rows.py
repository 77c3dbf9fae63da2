"""Which records of a window of a run belong to which of its losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.kinds import ONE_OFF
from bsplib.profiler.loss_sums import BYTES, CORES, SMALL, SYNC, WAITS, lost_by_cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.profiler.account import Account, Ints
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.loss_drafts import Draft


class LossRows(NamedTuple):
    """The records of a window that belong to a loss."""

    rows: Ints
    """Positions in the window."""
    lost: Ints
    """What is lost for each of them, where processes wait for one another; otherwise empty."""


class RowsOfDrafts:
    """Finds the records of each loss in a window."""

    def __init__(self, callgraph: CallGraph, nprocs: int, drafts: list[Draft]) -> None:
        self._callgraph = callgraph
        self._nprocs = nprocs
        self._drafts = drafts
        self._labels = {cause: self._labelled(cause) for cause in WAITS}
        """For each cause the keys of call stack and process, ascending, and numbers of drafts."""

    def _labelled(self, cause: str) -> tuple[Ints, Ints]:
        labels: dict[int, int] = {}
        for number, draft in enumerate(self._drafts):
            if draft.cause == cause and draft.habit != ONE_OFF:
                for cluster in draft.clusters:
                    of_cluster = (cluster.origin * self._nprocs + pid for pid in cluster.members)
                    labels.update(dict.fromkeys(of_cluster, number))
        keys = sorted(labels)
        return np.array(keys, np.int64), np.array([labels[key] for key in keys], np.int64)

    def of(self, account: Account) -> Iterator[tuple[Draft, LossRows]]:
        """Yield each draft that has records in a window."""
        records = account.run.records[account.halo :]
        origin = self._callgraph.origin_of(records)
        for cause, lost in lost_by_cause(account).items():
            rows = np.flatnonzero(lost)
            if len(rows):
                label = self._label(cause, records, rows, origin[rows])
                for number in np.flatnonzero(np.bincount(label + 1)[1:]).tolist():
                    mine = rows[label == number]
                    yield self._drafts[number], LossRows(mine + account.halo, lost[mine])
        for draft in self._drafts:
            if draft.cause in {SYNC, SMALL, BYTES, CORES}:
                mine = np.arange(len(origin))
                if draft.cause != CORES:
                    mine = np.flatnonzero(np.isin(origin, draft.origins))
                if len(mine):
                    yield draft, LossRows(mine + account.halo, np.zeros(0, np.int64))

    def _label(self, cause: str, records: NDArray[np.void], rows: Ints, origin: Ints) -> Ints:
        """Return for each record that loses something the number of its draft, or -1."""
        keys, labels = self._labels[cause]
        label = np.full(len(origin), -1, np.int64)
        if len(keys):
            wanted = origin * self._nprocs + records["pid"][rows]
            at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
            label = np.where(keys[at] == wanted, labels[at], -1)
        for number, draft in enumerate(self._drafts):
            if draft.cause == cause and draft.habit == ONE_OFF:
                for cluster in draft.clusters:
                    at_step = records["superstep"][rows] == cluster.most.superstep
                    at_step &= records["group"][rows] == cluster.most.group
                    label[at_step & (origin == cluster.origin)] = number
        return label
