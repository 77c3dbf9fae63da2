"""Who sent how much to whom: the matrix of bytes and messages between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.directions import is_out
from bsplib.profiler.costs import once
from bsplib.profiler.window import hand_out

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Bools, Floats, Ints
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


MAX_BLOCKS = 128
"""Greatest number of rows and columns of a matrix."""


Sums = tuple["Floats", "Floats", "Ints"]
"""A quantity of processes by block: its sum, the greatest value, and the process that has it; of
equals the lowest."""


class Matrix:
    """Transfers from senders (rows) to receivers (columns), added up window by window."""

    def __init__(self, run: Run, chosen: Bools | None = None, most: int = MAX_BLOCKS) -> None:
        """Begin with nothing; :func:`matrix_of` has the arguments."""
        nprocs = run.nprocs
        self._chosen, self.block = chosen, -(-nprocs // most)
        """Number of processes of a row and of a column; the last one may have fewer."""
        self._parts = -(-nprocs // self.block)
        self.bytes, self.messages = np.zeros((2, self._parts, self._parts))
        self._out, self._into, self._to_self = np.zeros((3, nprocs))
        self.total_bytes = self.total_messages = 0.0
        """All transfers between different processes."""

    def add(self, window: RunWindow) -> None:
        """Take in the transfers of a window."""
        nprocs, parts = window.run.nprocs, self._parts
        kept = None if self._chosen is None else self._chosen[window.position]
        sender, receiver, sizes, messages = _transfers(window, kept)
        cells = sender // self.block * parts + receiver // self.block
        self.bytes += np.bincount(cells, sizes, parts * parts).reshape(parts, parts)
        self.messages += np.bincount(cells, messages, parts * parts).reshape(parts, parts)
        self._out += np.bincount(sender, sizes, nprocs)
        self._into += np.bincount(receiver, sizes, nprocs)
        self.total_bytes += float(sizes.sum())
        self.total_messages += float(messages.sum())
        records = window.run.records[window.fresh]
        if records["self_bytes"].any():
            to_self = records["self_bytes"] if kept is None else records["self_bytes"] * kept
            self._to_self += np.bincount(records["pid"], to_self, nprocs)

    @property
    def h_out(self) -> Sums:
        """Bytes that each sender sent to all others."""
        return self._sums(self._out)

    @property
    def h_in(self) -> Sums:
        """Bytes that each receiver received from all others."""
        return self._sums(self._into)

    @property
    def self_bytes(self) -> Floats:
        """Bytes that each sender sent to itself, by block; nothing else has them."""
        return self._sums(self._to_self)[0]

    def _sums(self, by_process: Floats) -> Sums:
        """Sum up a quantity of all processes of the run by blocks."""
        padded = np.full(self._parts * self.block, -1.0)
        padded[: len(by_process)] = by_process
        by_block = padded.reshape(self._parts, self.block)
        pid = np.arange(self._parts) * self.block + by_block.argmax(axis=1)
        return np.maximum(by_block, 0).sum(axis=1), by_block.max(axis=1), pid

    def keep(self, run: Run) -> Matrix:
        """Keep this as the matrix of a whole run, of which all windows have been added."""
        return once(run, _WHOLE, lambda: self)


_WHOLE = "matrix of the whole run"


def matrix_of(
    run: Run,
    chosen: Bools | None = None,
    *,
    most: int = MAX_BLOCKS,
) -> Matrix:
    """Return the matrix of the transfers of a run.

    Args:
        run: the run.
        chosen: the records that count, one element for each record of the run; all if
            None. A transfer belongs to the record of the process that asked for it: of
            the sender for put and send, of the receiver for get.
        most: greatest number of rows and of columns; where there are more processes, a
            row or column is a block of processes.
    """

    def summed() -> Matrix:
        matrix = Matrix(run, chosen, most)
        hand_out(run, matrix.add)
        return matrix

    is_whole = chosen is None and most == MAX_BLOCKS
    return once(run, _WHOLE, summed) if is_whole else summed()


def _transfers(window: RunWindow, chosen: Bools | None) -> tuple[Ints, Ints, Floats, Floats]:
    """Return sender, receiver, bytes and messages of the transfers in a window.

    Args:
        window: the window.
        chosen: the records that count, of those of the window itself; all if None.
    """
    rows = window.run.traffic
    kept = rows["record"] >= window.halo
    if chosen is not None:
        kept[kept] = chosen[rows["record"][kept] - window.halo]
    rows = rows[kept]
    caller = window.run.records["pid"][rows["record"]].astype(np.int64)
    partner = rows["partner"].astype(np.int64)
    out = is_out(rows["direction"])
    sizes, messages = (rows[name].astype(np.float64) for name in ("bytes", "messages"))
    return np.where(out, caller, partner), np.where(out, partner, caller), sizes, messages
