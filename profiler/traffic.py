"""Who sent how much to whom: the matrix of bytes and messages between processes."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class BlockSums:
    """A quantity of each process, in blocks."""

    total: Floats
    """Sum over the processes of each block."""
    most: Floats
    """Greatest value of a process in each block."""
    pid: Ints
    """Process with that value; of equals the lowest."""


@dataclass(frozen=True)
class Matrix:
    """Transfers from senders (rows) to receivers (columns)."""

    block: int
    """Number of processes of a row and of a column; the last one may have fewer."""
    bytes: Floats
    messages: Floats
    h_out: BlockSums
    """Bytes that each sender sent to all others."""
    h_in: BlockSums
    """Bytes that each receiver received from all others."""
    self_bytes: Floats
    """Bytes that each sender sent to itself, by block; they are in no other field."""
    total_bytes: float
    total_messages: float
    """All transfers between different processes."""


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
        sums = MatrixSums(run, chosen, most)
        hand_out(run, sums.add)
        return sums.matrix()

    is_whole = chosen is None and most == MAX_BLOCKS
    return once(run, _WHOLE, summed) if is_whole else summed()


_WHOLE = "matrix of the whole run"


class MatrixSums:
    """Takes in the windows of a run for a matrix; :func:`matrix_of` has the arguments."""

    def __init__(self, run: Run, chosen: Bools | None = None, most: int = MAX_BLOCKS) -> None:
        self._run, self._chosen, nprocs = run, chosen, run.nprocs
        self._block = -(-nprocs // most)
        self._parts = -(-nprocs // self._block)
        self._bytes, self._messages = np.zeros((2, self._parts, self._parts))
        self._out, self._into, self._to_self = np.zeros((3, nprocs))
        self._total = np.zeros(2)

    def add(self, window: RunWindow) -> None:
        """Take in the transfers of a window."""
        nprocs, parts = self._run.nprocs, self._parts
        kept = None if self._chosen is None else self._chosen[window.position]
        sender, receiver, sizes, messages = _transfers(window, kept)
        cells = sender // self._block * parts + receiver // self._block
        self._bytes += np.bincount(cells, sizes, parts * parts).reshape(parts, parts)
        self._messages += np.bincount(cells, messages, parts * parts).reshape(parts, parts)
        self._out += np.bincount(sender, sizes, nprocs)
        self._into += np.bincount(receiver, sizes, nprocs)
        self._total += float(sizes.sum()), float(messages.sum())
        records = window.run.records[window.fresh]
        if records["self_bytes"].any():
            to_self = records["self_bytes"] if kept is None else records["self_bytes"] * kept
            self._to_self += np.bincount(records["pid"], to_self, nprocs)

    def matrix(self) -> Matrix:
        """Return the matrix, when all windows have been taken in."""
        return Matrix(
            self._block,
            self._bytes,
            self._messages,
            self._sums(self._out),
            self._sums(self._into),
            self._sums(self._to_self).total,
            *self._total.tolist(),
        )

    def _sums(self, by_process: Floats) -> BlockSums:
        """Sum up a quantity of all processes of the run by blocks."""
        padded = np.full(self._parts * self._block, -1.0)
        padded[: len(by_process)] = by_process
        by_block = padded.reshape(self._parts, self._block)
        pid = np.arange(self._parts) * self._block + by_block.argmax(axis=1)
        return BlockSums(np.maximum(by_block, 0).sum(axis=1), by_block.max(axis=1), pid)

    def keep(self) -> None:
        """Keep the matrix of the whole run for :func:`matrix_of`."""
        once(self._run, _WHOLE, self.matrix)


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
