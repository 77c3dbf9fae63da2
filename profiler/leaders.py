"""The supersteps of a run: which process computes most in each, and which moves most bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._numbering import blocks
from bsplib.profiler.costs import computation_ns, group_sizes, h_relation, superstep_numbers
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Positions = NDArray[np.intp]

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


def supersteps_of(run: Run) -> RunSupersteps:
    """Return the supersteps of a run, or of a window of it."""
    records = run.records
    of_record = superstep_numbers(run)
    first = np.empty(int(of_record.max(initial=-1)) + 1, np.intp)
    ended = np.zeros(len(first))
    for part in blocks(len(records)):
        first[of_record[part]] = np.arange(part.start, part.start + len(of_record[part]))
        ends = records["kind"][part] != Kind.END
        np.maximum.at(ended, of_record[part], ends.astype(np.float64))  # of one type: fast
    group = records["group"][first].astype(np.intp)
    size = group_sizes(run)[group].astype(np.float64)
    number = records["superstep"][first].astype(np.int64)
    h_out, h_in = h_relation(run, of_record)
    most = _leaders(run, np.maximum(h_in, h_out), of_record, size)
    both = _leaders(run, h_in + h_out, of_record, size) if most.greatest.any() else most
    h = {"max": most, "sum": both}
    w = _leaders(run, computation_ns(run), of_record, size)
    return RunSupersteps(group, number, ended, w, h, of_record)


def _leaders(run: Run, values: Floats, of_record: NDArray[np.int64], size: Floats) -> Leaders:
    """Find the greatest value of each superstep, and of the lowest pid that has it.

    Args:
        run: the run.
        values: of each record.
        of_record: superstep of each record.
        size: number of processes of each superstep.
    """
    greatest = np.full(len(size), -np.inf)
    np.maximum.at(greatest, of_record, values)
    sums = np.bincount(of_record, values, len(size))
    record = lowest_of(run, np.flatnonzero(values == greatest[of_record]), of_record, len(size))
    return Leaders(greatest, np.minimum(sums / size, greatest), record)


def lowest_of(
    run: Run, rows: Positions, of_record: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return for each of ``count`` supersteps the one of some records with the lowest pid."""
    order = rows[np.argsort(run.records["pid"][rows], kind="stable")[::-1]]
    record = np.zeros(count, np.int64)
    record[of_record[order]] = order  # of several the last one stays
    return record
