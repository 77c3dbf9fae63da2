"""Values of records, summed up by superstep: the greatest, the least, the sum, and whose it is.

Most programs have one group, in whose supersteps all processes take part, and the records of a
window stand process by process. Then a column of records is a table of processes and supersteps,
and a sum over processes is one over its rows, which takes a fraction of the time that looking up
the superstep of each record takes. For all other records the supersteps are looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Floats, Ints, Numbers
    from bsplib.recording.records import Run


class BySuperstep:
    """Sums up values of records by superstep; each value is one of a record, in their order."""

    def __init__(self, of_record: Ints, pid: Numbers) -> None:
        """Look up the superstep of each record.

        Args:
            of_record: number of the superstep of each record, from 0 without gaps.
            pid: process of each record.
        """
        self._of_record: Ints | None = of_record
        of_record.setflags(write=False)
        self.count = int(of_record.max(initial=-1)) + 1
        """Number of supersteps."""
        self._pid = pid

    @property
    def of_record(self) -> Ints:
        """Number of the superstep of each record."""
        if self._of_record is None:
            self._of_record = self.spread(np.arange(self.count))
            self._of_record.setflags(write=False)
        return self._of_record

    def after(self, halo: int) -> BySuperstep:
        """Return the same without the first records, which are whole supersteps, the first ones."""
        of_record = self.of_record[halo:]
        return BySuperstep(of_record - of_record.min(initial=self.count), self._pid[halo:])

    def greatest(self, values: Numbers) -> Numbers:
        """Return the greatest value in each superstep."""
        most = self._filled(values)
        np.maximum.at(most, self.of_record, values)
        return most

    def least(self, values: Numbers) -> Numbers:
        """Return the least value in each superstep."""
        least = self._filled(values)
        np.minimum.at(least, self.of_record, values)
        return least

    def _filled(self, values: Numbers) -> Numbers:
        """Return a value of each superstep."""
        some = np.empty(self.count, values.dtype)
        some[self.of_record] = values
        return some

    def sums(self, values: Numbers) -> Floats:
        """Return the sum of the values in each superstep."""
        sums: Floats = np.bincount(self.of_record, values, self.count).astype(np.float64)
        return sums

    def spread(self, values: Numbers) -> Numbers:
        """Return for each record the value of its superstep."""
        of_each: Numbers = values[self.of_record]
        return of_each

    def leader(self, values: Numbers) -> Ints:
        """Return the record with the greatest value in each superstep; of equals the lowest pid."""
        rows = np.flatnonzero(values == self.spread(self.greatest(values)))
        order = rows[np.argsort(self._pid[rows], kind="stable")[::-1]]
        record = np.zeros(self.count, np.int64)
        record[self.of_record[order]] = order  # of several the last one stays
        return record


class TableBySuperstep(BySuperstep):
    """The same of records process by process, all of which are in the same supersteps.

    Before them there may be one superstep of all processes, that of the halo of a window.
    """

    def __init__(self, nprocs: int, before: int, steps: int, pid: Numbers) -> None:
        """Note the shape of the table.

        Args:
            nprocs: number of processes.
            before: number of supersteps before the others, 0 or 1.
            steps: number of the other supersteps.
            pid: process of each record.
        """
        self.count = before + steps
        self._pid = pid
        self.nprocs = nprocs
        """Number of processes."""
        self.before = before
        """Number of supersteps before the others."""
        self.steps = steps
        """Number of the others."""
        self._of_record = None  # made when it is asked for

    def after(self, halo: int) -> BySuperstep:
        if halo != self.before * self.nprocs:
            return super().after(halo)
        return TableBySuperstep(self.nprocs, 0, self.steps, self._pid[halo:])

    def _table(self, values: Numbers) -> Numbers:
        """Return the values but for those of the superstep before: (processes, supersteps)."""
        return values[self.before * self.nprocs :].reshape(self.nprocs, self.steps)

    def _reduced(self, reduce: np.ufunc, values: Numbers, dtype: Any = None) -> Numbers:
        reduced = np.empty(self.count, dtype or values.dtype)
        if self.before:
            reduced[0] = reduce.reduce(values[: self.nprocs])
        reduce.reduce(self._table(values), axis=0, out=reduced[self.before :])
        return reduced

    def greatest(self, values: Numbers) -> Numbers:
        return self._reduced(np.maximum, values)

    def least(self, values: Numbers) -> Numbers:
        return self._reduced(np.minimum, values)

    def sums(self, values: Numbers) -> Floats:
        return self._reduced(np.add, values, np.float64)

    def spread(self, values: Numbers) -> Numbers:
        of_each = np.empty(self.count * self.nprocs, values.dtype)
        of_each[: self.before * self.nprocs] = values[: self.before]
        self._table(of_each)[:] = values[self.before :]
        return of_each

    def leader(self, values: Numbers) -> Ints:
        table, first = self._table(values), self.before * self.nprocs
        record = np.empty(self.count, np.int64)
        record[: self.before] = values[:first].argmax() if first else 0
        at = record[self.before :]
        at[:] = table.argmax(axis=0)
        at *= self.steps
        at += np.arange(first, first + self.steps)
        return record

    def preceding(self) -> Ints:
        """Return for each record the one before it of its process; -1 for the first one."""
        first = self.before * self.nprocs
        preceding = np.arange(-1, self.count * self.nprocs - 1)
        preceding[:first] = -1
        if self.steps:
            self._table(preceding)[:, 0] = np.arange(self.nprocs) if first else -1
        return preceding


def table_of(run: Run) -> TableBySuperstep | None:
    """Return the table that the records of a run, or of a window, are; None where they are none."""
    nprocs, count = run.nprocs, len(run.records)
    if len(run.groups) > 1 or count == 0 or count % nprocs:
        return None
    pid, superstep = run.records["pid"], run.records["superstep"]
    pids = np.arange(nprocs)
    before = int((superstep[:nprocs] == superstep[0]).all() and (pid[:nprocs] == pids).all())
    first, steps = before * nprocs, count // nprocs - before
    numbers = superstep[first:].reshape(nprocs, steps)
    if steps and not (
        int(numbers[0, 0]) > (int(superstep[0]) if before else -1)
        and (numbers == numbers[0, 0] + np.arange(steps)).all()
        and (pid[first:].reshape(nprocs, steps) == pids[:, None]).all()
    ):
        return None
    return TableBySuperstep(nprocs, before, steps, pid)
