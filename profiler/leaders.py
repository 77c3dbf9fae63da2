"""The supersteps of a run: which process computes most in each, and which moves most bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._numbering import blocks
from bsplib.profiler.costs import by_superstep, computation_ns, group_sizes, h_relation
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler._by_step import BySuperstep
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
    records, by = run.records, by_superstep(run)
    first = np.empty(by.count, np.intp)
    for part in blocks(len(records)):
        first[by.of_record[part]] = np.arange(part.start, part.start + len(by.of_record[part]))
    ended = by.greatest((records["kind"] != Kind.END).astype(np.float64))
    group = records["group"][first].astype(np.intp)
    size = group_sizes(run)[group].astype(np.float64)
    number = records["superstep"][first].astype(np.int64)
    h_out, h_in = h_relation(run, by.of_record)
    most = _leaders(by, np.maximum(h_in, h_out), size)
    both = _leaders(by, h_in + h_out, size) if most.greatest.any() else most
    h = {"max": most, "sum": both}
    w = _leaders(by, computation_ns(run), size)
    return RunSupersteps(group, number, ended, w, h, by.of_record)


def _leaders(by: BySuperstep, values: Floats, size: Floats) -> Leaders:
    """Find the greatest value of each superstep, and of the lowest pid that has it.

    Args:
        by: the supersteps.
        values: of each record.
        size: number of processes of each superstep.
    """
    greatest = by.greatest(values)
    mean = np.minimum(by.sums(values) / size, greatest)
    return Leaders(greatest, mean, by.leader(values))
