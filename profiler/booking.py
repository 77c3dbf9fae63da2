"""The books of a run: what its supersteps cost and lose, at which origins, before any price.

The computation of a superstep and its l are booked where the process with the greatest w
ended it, and its g h where the process with the greatest h did (of equal processes, the
one of the lowest pid). The losses ``w_max - w_mean`` and ``h_max - h_mean``, over all
processes of the group, are booked at the same places. Everything is booked once, so that
it adds up. Since the rates are not known here, the books hold nanoseconds, supersteps and
bytes; :mod:`bsplib.profiler.losses` and the page price them.

Source: the cost of a superstep, ``w + g h + l`` (Jarvis et al. 2002, section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._numbering import blocks, ranked
from bsplib.profiler.costs import computation_ns, h_relation, superstep_numbers
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Positions = NDArray[np.intp]
    Values = Callable[[slice], Floats]

RULES = ("max", "sum")
"""The rules for h: the greater of the bytes in and out of a process, or their sum."""


class Leaders(NamedTuple):
    """A quantity in each superstep: its greatest value, its mean, and whose it was."""

    greatest: Floats
    mean: Floats
    """Over all processes of the group; one without a record counts as 0."""
    record: Positions
    """Position in ``run.records`` of the greatest value; of equals, of the lowest pid."""

    @property
    def lost(self) -> Floats:
        """What the other processes wait for the greatest, on average."""
        return self.greatest - self.mean


@dataclass(frozen=True)
class RunSupersteps:
    """The supersteps of all groups of a run, by group and number."""

    group: Positions
    """Position in ``run.groups``."""
    number: NDArray[np.int64]
    """Number within its group."""
    ended: Floats
    """1 where the superstep ended with a sync, 0 for the stretch after the last one."""
    w: Leaders
    """Computation in nanoseconds."""
    h: dict[str, Leaders]
    """Bytes of the h-relation, by each of ``RULES``."""
    of_record: NDArray[np.int64]
    """For each record of the run the position of its superstep."""


class BookedCells(NamedTuple):
    """What is booked for each group at each origin; the arrays have equal lengths."""

    group: Positions
    origin: Positions
    """Position in ``CallGraph.origins``."""
    w: Floats
    w_lost: Floats
    steps: Floats
    h: dict[str, Floats]
    h_lost: dict[str, Floats]


class Partitions(NamedTuple):
    """The sets of sub-groups that ran side by side; the arrays have equal lengths."""

    parent: Positions
    """Group that was divided."""
    origin: Positions
    """Origin at which the superstep of the parent ended; -1 if it did not end."""
    record: Positions
    """Position in ``run.records`` of the greatest w of that superstep, or -1."""


@dataclass(frozen=True)
class Books:
    """What a run cost and lost, before any price."""

    supersteps: RunSupersteps
    cells: BookedCells
    partitions: Partitions
    partition_of: Positions
    """For each group the position of its partition; -1 for the root."""
    parent: Positions
    size: Positions
    """Number of processes of each group."""


def keep_books(callgraph: CallGraph) -> Books:
    """Book all supersteps of the run of a call graph."""
    run = callgraph.run
    supersteps = _supersteps(run)
    origin = callgraph.origin_of_records()
    size = np.array([group.size for group in run.groups], np.intp)
    parent = np.array([group.parent for group in run.groups], np.intp)
    partitions, partition_of = _partitions(run, supersteps, origin)
    cells = _cells(supersteps, origin, len(callgraph.origins))
    return Books(supersteps, cells, partitions, partition_of, parent, size)


def _supersteps(run: Run) -> RunSupersteps:
    records = run.records
    of_record = superstep_numbers(run)
    first = np.empty(int(of_record.max(initial=-1)) + 1, np.intp)
    ended = np.zeros(len(first))
    for part in blocks(len(records)):
        first[of_record[part]] = np.arange(part.start, part.start + len(of_record[part]))
        ends = records["kind"][part] != Kind.END
        np.maximum.at(ended, of_record[part], ends.astype(np.float64))  # of one type: fast
    group = records["group"][first].astype(np.intp)
    size = np.array([entry.size for entry in run.groups], np.float64)[group]
    number = records["superstep"][first].astype(np.int64)

    def leaders(values: Values) -> Leaders:
        return _leaders(run, values, of_record, size)

    h_out, h_in = h_relation(run, of_record)
    h = {
        "max": leaders(lambda part: np.maximum(h_in[part], h_out[part])),
        "sum": leaders(lambda part: h_in[part] + h_out[part]),
    }
    w = computation_ns(run)
    return RunSupersteps(group, number, ended, leaders(lambda part: w[part]), h, of_record)


def _leaders(run: Run, values: Values, of_record: NDArray[np.int64], size: Floats) -> Leaders:
    """Find the greatest value of each superstep, and of the lowest pid that has it.

    Args:
        run: the run.
        values: returns the values of a block of records.
        of_record: superstep of each record.
        size: number of processes of each superstep.
    """
    greatest, sums = np.full(len(size), -np.inf), np.zeros(len(size))
    for part in blocks(len(of_record)):
        np.maximum.at(greatest, of_record[part], values(part))
        np.add.at(sums, of_record[part], values(part))
    pid, record = np.full(len(size), run.nprocs, np.int32), np.empty(len(size), np.intp)
    for part in blocks(len(of_record)):
        rows = part.start + np.flatnonzero(values(part) == greatest[of_record[part]])
        pids = run.records["pid"][rows]
        np.minimum.at(pid, of_record[rows], pids)
        lowest = rows[pids == pid[of_record[rows]]]
        record[of_record[lowest]] = lowest
    return Leaders(greatest, np.minimum(sums / size, greatest), record)


def _cells(steps: RunSupersteps, origin: Positions, origins: int) -> BookedCells:
    """Sum the supersteps of each group at each origin."""
    keys = {name: steps.group * origins + origin[entry.record] for name, entry in steps.h.items()}
    w_keys = steps.group * origins + origin[steps.w.record]
    found, _ = ranked(np.concatenate([w_keys, *keys.values()]))
    group, at = np.divmod(found, max(origins, 1))

    def total(by: Positions, values: Floats) -> Floats:
        return np.bincount(np.searchsorted(found, by), values, len(found)).astype(np.float64)

    return BookedCells(
        group,
        at,
        total(w_keys, steps.w.greatest),
        total(w_keys, steps.w.lost),
        total(w_keys, steps.ended),
        {name: total(by, steps.h[name].greatest) for name, by in keys.items()},
        {name: total(by, steps.h[name].lost) for name, by in keys.items()},
    )


def _partitions(run: Run, steps: RunSupersteps, origin: Positions) -> tuple[Partitions, Positions]:
    """Find the groups that ran side by side, and where the superstep of their parent ended."""
    partition_of = np.full(len(run.groups), -1, np.intp)
    found: dict[tuple[int, int], int] = {}
    opened: list[tuple[int, int]] = []
    for position, group in enumerate(run.groups[1:], start=1):
        which = found.setdefault((group.parent, group.ordinal), len(found))
        partition_of[position] = which
        if which == len(opened):
            opened.append((group.parent, group.superstep))
    parent, number = np.array(opened, np.int64).reshape(-1, 2).T
    step = _positions(steps, parent, number)
    record = np.full(len(opened), -1, np.intp)
    record[step >= 0] = steps.w.record[step[step >= 0]]
    at = np.full(len(opened), -1, np.intp)
    at[step >= 0] = origin[record[step >= 0]]
    return Partitions(parent.astype(np.intp), at, record), partition_of


def _positions(
    steps: RunSupersteps, group: NDArray[np.int64], number: NDArray[np.int64]
) -> Positions:
    """Return the positions of supersteps; -1 where there is none."""
    distinct, _ = ranked(steps.number)
    keys = steps.group * len(distinct) + np.searchsorted(distinct, steps.number)
    rank = np.searchsorted(distinct, number).clip(max=max(len(distinct) - 1, 0))
    if len(keys) == 0:
        return np.full(len(group), -1, np.intp)
    wanted = group * len(distinct) + rank
    position = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    sound = (keys[position] == wanted) & (distinct[rank] == number)
    return np.where(sound, position, -1)
