"""What the chunks of a run's tables cover, so that a reader knows which of them it needs.

Of a chunk of records these are the first and the last superstep of the root group in which its
records took place, and the greatest number of page faults; of a chunk of traffic the first and the
last record to which it belongs. Beside them it is found into which records samples fall.
Whoever reads all chunks for another purpose notes them, so that they are not read for this again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run
    from bsplib.recording.tables import Columns, Rows

    Ints = NDArray[np.int64]


def opening_steps(run: Run) -> Ints:
    """Return for each group the superstep of the root group in which it was opened."""
    opened = np.zeros(len(run.groups), np.int64)
    for position, info in enumerate(run.groups[1:], start=1):
        opened[position] = opened[info.parent] if info.parent else info.superstep
    return opened


def root_steps(records: Rows | Columns, opened: Ints) -> Ints:
    """Return the superstep of the root group in which each record took place.

    Args:
        records: the records; of the fields ``superstep`` is needed, and ``group`` where the run
            has more groups than the root.
        opened: the result of :func:`opening_steps`.
    """
    if len(opened) == 1:
        own: Ints = records["superstep"]
        return own
    group = records["group"]
    inside: Ints = np.where(group == 0, records["superstep"], opened[group])
    return inside


class ChunkRanges:
    """Notes the least and the greatest value of each chunk of a table, one after the other."""

    def __init__(self, run: Run, name: str, field: str = "") -> None:
        """Begin with the first chunk of a table.

        Args:
            run: the run.
            name: of the table, ``records`` or ``traffic``.
            field: of what to note the values; default: root supersteps, or records of traffic.
        """
        self._run, self._key = run, f"ranges of {name} {field}".rstrip()
        self._bounds = run.table(name).bounds
        self._low: list[int] = []
        self._high: list[int] = []

    def known(self) -> tuple[Ints, Ints] | None:
        """Return what was noted before of all chunks, if they are still the same."""
        found = self._run.derived.get(self._key)
        # Rows that were read meanwhile are in other chunks than those of the file.
        if found is None or found[0] != self._bounds:
            return None
        ranges: tuple[Ints, Ints] = found[1]
        return ranges

    def add(self, values: NDArray[np.integer]) -> None:
        """Take in the next chunk."""
        self._low.append(int(values.min()))
        self._high.append(int(values.max()))

    def close(self) -> tuple[Ints, Ints]:
        """Return the ranges of all chunks, and keep them with the run."""
        ranges = np.array(self._low, np.int64), np.array(self._high, np.int64)
        self._run.derived[self._key] = self._bounds, ranges
        return ranges


class SampledRecords(NamedTuple):
    """The records into which samples fall, as columns; all are -1 after the last record."""

    position: Ints
    stack: Ints
    kind: Ints


class RecordsOfSamples:
    """Finds the record into which each sample of a run falls, from one chunk after the other.

    That is the first record of its process that ends later. The superstep of a sub-group ends
    before the one around it, so that a sample there is its own.
    """

    FIELDS = ("pid", "end", "stack", "kind")
    """The fields of records that it needs."""
    _KEY = "records of samples"

    def __init__(self, run: Run) -> None:
        """Begin with the first chunk of the records."""
        self._run, samples = run, run.samples
        self._time = np.zeros(0, np.int64) if samples is None else samples["time"]
        self._found = SampledRecords(*np.full((3, len(self._time)), -1))
        pid = self._time if samples is None else samples["pid"]
        self._left = {each: np.flatnonzero(pid == each) for each in np.unique(pid).tolist()}
        """The samples of each process that are later than the records until now."""

    def add(self, first: int, rows: Rows | Columns) -> None:
        """Take in the next chunk, whose first record has this position."""
        for pid in np.intersect1d(rows["pid"], list(self._left)).tolist():
            mine, at = self._left[pid], np.flatnonzero(rows["pid"] == pid)
            place = np.searchsorted(rows["end"][at], self._time[mine], side="right")
            within = place < len(at)
            here, sampled = at[place[within]], mine[within]
            self._found.position[sampled] = first + here
            self._found.stack[sampled], self._found.kind[sampled] = (
                rows[name][here] for name in ("stack", "kind")
            )
            self._left[pid] = mine[~within]

    def close(self) -> SampledRecords:
        """Return what was found; keep it with the run."""
        self._run.derived[self._KEY] = self._found
        return self._found

    @classmethod
    def of(cls, run: Run) -> SampledRecords:
        """Return what is known of a run, or read its records for it."""
        if cls._KEY not in run.derived:
            found = cls(run)
            if run.samples is not None:
                for first, rows in run.table("records").chunks(cls.FIELDS):
                    found.add(first, rows)
            found.close()
        known: SampledRecords = run.derived[cls._KEY]
        return known
