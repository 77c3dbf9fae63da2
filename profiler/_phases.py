"""What each process did at each moment, summed up so that any range of time is two look-ups.

A process computes, calls primitives and waits for a core, then it is idle in a sync until the
last process arrives, then the sync communicates. How the first three share the time before
the sync is known only for a whole superstep; they are spread over it evenly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._numbering import preceding, ranked
from bsplib.profiler.costs import computation_ns, record_around, spent_ns, superstep_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class _Phases(NamedTuple):
    """The time of rows, in pieces. Each field has one element a piece, times are in ns."""

    row: Ints
    step: Ints
    """Pieces of different rows with the same number can be joined."""
    start: Ints
    arrive: Ints
    released: Ints
    end: Ints
    comp: Floats
    """Computation, waiting for a core and calls of primitives, all from start to arrive."""
    waiting: Floats
    calls: Floats
    idle: Floats
    """From arrive to released."""
    exchange: Floats
    """From released to end."""

    def of(self, pieces: Ints) -> _Phases:
        """Return some of the pieces."""
        return _Phases._make(field[pieces] for field in self)


_AMOUNTS = 5
"""Number of fields of a piece that are amounts, at the end."""


class Course:
    """The times spent by each row in the supersteps of a window, until any moment."""

    def __init__(self, window: RunWindow, block: int) -> None:
        """Sum up a window of a run.

        Args:
            window: the window.
            block: number of processes in a row. In a row of several processes, each
                superstep begins and ends at the means of their times.
        """
        run = window.run
        phases = _of_records(run)
        for amounts in phases[-_AMOUNTS:]:
            amounts[: window.halo] = 0  # they count in the window before
        if len(run.groups) > 1:
            phases = _with_openings(run, phases)
        if block > 1:
            phases = _joined(phases, block, -(-run.nprocs // block))
        self._phases = phases = _in_sequence(phases)
        self.rows = -(-run.nprocs // block)
        self._bounds = np.searchsorted(phases.row, np.arange(self.rows + 1))
        layers = phases.comp, phases.calls + phases.exchange, phases.idle, phases.waiting
        self._until = np.zeros((len(layers), len(phases.row) + 1))
        for until, amounts in zip(self._until, layers, strict=True):
            np.cumsum(amounts, out=until[1:])

    def between(self, edges: Floats) -> Floats:
        """Return the time spent between each moment and the next one, in nanoseconds.

        Args:
            edges: moments in nanoseconds, rising.

        Returns:
            Computation, communication, idle time and waiting for a core:
            shape ``(len(edges) - 1, 4, rows)``.
        """
        if len(self._phases.row) == 0:
            return np.zeros((len(edges) - 1, len(self._until), self.rows))
        ends, bounds = self._phases.end, self._bounds
        current = np.empty((self.rows, len(edges)), np.int64)
        for row in range(self.rows):
            current[row] = np.searchsorted(ends[bounds[row] : bounds[row + 1]], edges)
        current += bounds[:-1, None]
        until = self._until[:, current] + self._begun(current, edges, bounds[1:, None])
        spent: Floats = np.maximum(np.diff(until, axis=2), 0).transpose(2, 0, 1)
        return spent

    def _begun(self, current: Ints, edges: Floats, stop: Ints) -> Floats:
        """Return the times spent in unfinished pieces until the edges that lie in them."""
        pieces = self._phases.of(np.minimum(current, len(self._phases.row) - 1))
        here = current < stop
        before, waiting, syncing = (
            here * _part(edges, low, high)
            for low, high in (
                (pieces.start, pieces.arrive),
                (pieces.arrive, pieces.released),
                (pieces.released, pieces.end),
            )
        )
        comm = before * pieces.calls + syncing * pieces.exchange
        return np.stack(
            [before * pieces.comp, comm, waiting * pieces.idle, before * pieces.waiting]
        )


def _part(moment: Floats, low: Ints, high: Ints) -> Floats:
    """Return which part of a range is over at a moment; an empty one is over when it begins."""
    length = high - low
    part: Floats = np.clip((moment - low + (length == 0)) / np.maximum(length, 1), 0, 1)
    return part


def _of_records(run: Run) -> _Phases:
    """Return one piece for each record."""
    records = run.records
    pid, start, arrive, released, end = (
        records[name].astype(np.int64) for name in ("pid", "start", "arrive", "released", "end")
    )
    comp = computation_ns(run)
    amounts = (
        comp.copy(),
        spent_ns(run) - comp,
        records["comm_calls"].astype(np.float64),
        (released - arrive).astype(np.float64),
        (end - released).astype(np.float64),
    )
    return _Phases(pid, superstep_numbers(run), start, arrive, released, end, *amounts)


def _with_openings(run: Run, phases: _Phases) -> _Phases:
    """Divide the time before a sync where it was interrupted by sub-groups.

    The time from a sync to the opening of a sub-group belongs to the superstep of the parent
    that ends after the sub-group.
    """
    before = preceding(phases.row)
    begun = np.where(before < 0, _began(phases)[phases.row], phases.end[before])
    opens = np.flatnonzero((begun < phases.start) & (run.records["group"] > 0))
    owner = record_around(run)[opens]
    opens, owner = opens[owner >= 0], owner[owner >= 0]
    length = phases.start[opens] - begun[opens]
    at_end = phases.arrive - np.maximum(phases.start, begun)
    whole = at_end + np.bincount(owner, length, len(at_end))
    share = length / whole[owner]
    kept = np.divide(at_end, whole, out=np.ones(len(whole)), where=whole > 0)
    step = phases.step[opens] + phases.step.max(initial=0) + 1
    times = (phases.row[opens], step, begun[opens], *[phases.start[opens]] * 3)
    busy = [amount[owner] * share for amount in (phases.comp, phases.waiting, phases.calls)]
    openings = _Phases(*times, *busy, *[np.zeros(len(opens))] * 2)
    rest = phases._replace(
        comp=phases.comp * kept, waiting=phases.waiting * kept, calls=phases.calls * kept
    )
    return _Phases._make(np.concatenate(both) for both in zip(openings, rest, strict=True))


def _joined(phases: _Phases, block: int, rows: int) -> _Phases:
    """Join the pieces of each row in the same superstep: means of times, sums of amounts."""
    keys, piece = ranked(phases.step * rows + phases.row // block)
    count = np.bincount(piece, minlength=len(keys))
    times = (
        (np.bincount(piece, time, len(keys)) / count).astype(np.int64)
        for time in (phases.start, phases.arrive, phases.released, phases.end)
    )
    amounts = (np.bincount(piece, amount, len(keys)) for amount in phases[-_AMOUNTS:])
    return _Phases._make([keys % rows, keys // rows, *times, *amounts])


def _in_sequence(phases: _Phases) -> _Phases:
    """Sort the pieces by row and end, and let none begin before the end of the one before."""
    order = np.argsort(phases.end, kind="stable")
    # Numbers of 16 bits are sorted in linear time; there are at most 2**16 processes.
    order = order[np.argsort(phases.row[order].astype(np.uint16), kind="stable")]
    phases = phases.of(order)
    ended = np.append(0, phases.end[:-1])
    ended[np.flatnonzero(np.diff(phases.row)) + 1] = 0
    start = np.maximum(phases.start, ended)
    return phases._replace(start=start, arrive=np.maximum(phases.arrive, start))


def _began(phases: _Phases) -> Ints:
    """Return when each process began."""
    began = np.full(int(phases.row.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(began, phases.row, phases.start)
    return began
