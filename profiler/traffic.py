"""Who sent how much to whom: the matrix of bytes and messages between processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.window import windows
from bsplib.recording.records import Direction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MAX_BLOCKS = 128
"""Greatest number of rows and columns of a matrix."""


class Blocks(NamedTuple):
    """Consecutive pids in blocks of equal size; the last block may be smaller."""

    first: int
    end: int
    """Pid after the last one."""
    size: int

    @property
    def parts(self) -> int:
        """Number of blocks."""
        return -(-(self.end - self.first) // self.size)

    @classmethod
    def of(cls, first: int, end: int, nprocs: int, most: int) -> Blocks:
        """Divide a range of pids, clipped to those of a run, into at most ``most`` blocks."""
        first = min(max(first, 0), nprocs - 1)
        end = min(max(end, first + 1), nprocs)
        return cls(first, end, -(-(end - first) // most))


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

    senders: Blocks
    receivers: Blocks
    bytes: Floats
    messages: Floats
    """Both have the shape ``(senders.parts, receivers.parts)``."""
    h_out: BlockSums
    """Bytes that each sender sent to all others, also to processes outside the columns."""
    h_in: BlockSums
    """Bytes that each receiver received from all others."""
    self_bytes: Floats
    """Bytes that each sender sent to itself, by block; they are in no other field."""
    total_bytes: float
    total_messages: float
    """All transfers between different processes, also those outside the matrix."""


class RunTraffic:
    """The transfers of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def matrix(
        self,
        chosen: NDArray[np.bool_] | None = None,
        senders: tuple[int, int] | None = None,
        receivers: tuple[int, int] | None = None,
        *,
        most: int = MAX_BLOCKS,
    ) -> Matrix:
        """Return the matrix of transfers.

        Args:
            chosen: the records that count, one element for each record of the run; all if
                None. A transfer belongs to the record of the process that asked for it: of
                the sender for put and send, of the receiver for get.
            senders: first and end of the range of pids in the rows; all if None.
            receivers: the same for the columns.
            most: greatest number of rows and of columns; where there are more processes, a
                row or column is a block of processes.
        """
        run, nprocs = self._run, self._run.nprocs
        rows, columns = (
            Blocks.of(*(pids or (0, nprocs)), nprocs, most) for pids in (senders, receivers)
        )
        shape = rows.parts, columns.parts
        sums = _Sums(nprocs, shape)
        for window in windows(run) if len(run.table("traffic")) else ():
            kept = None if chosen is None else chosen[window.position]
            sender, receiver, sizes, messages = _transfers(window, kept)
            inside = _within(sender, rows) & _within(receiver, columns)
            cells = _block(sender[inside], rows) * columns.parts + _block(receiver[inside], columns)
            sums.bytes += _by_cell(cells, sizes[inside], shape)
            sums.messages += _by_cell(cells, messages[inside], shape)
            sums.out += np.bincount(sender, sizes, nprocs)
            sums.into += np.bincount(receiver, sizes, nprocs)
            sums.total += float(sizes.sum()), float(messages.sum())
        for first, records in run.table("records").chunks(("pid", "self_bytes")):
            counted = 1 if chosen is None else chosen[first : first + len(records)]
            sums.to_self += np.bincount(records["pid"], records["self_bytes"] * counted, nprocs)
        return Matrix(
            rows,
            columns,
            sums.bytes,
            sums.messages,
            _sums(sums.out, rows),
            _sums(sums.into, columns),
            _sums(sums.to_self, rows).total,
            *sums.total.tolist(),
        )


class _Sums:
    """Sums over the transfers of a run."""

    def __init__(self, nprocs: int, shape: tuple[int, int]) -> None:
        self.bytes, self.messages = np.zeros((2, *shape))
        self.out, self.into, self.to_self = np.zeros((3, nprocs))
        self.total = np.zeros(2)


def _transfers(
    window: RunWindow, chosen: NDArray[np.bool_] | None
) -> tuple[Ints, Ints, Floats, Floats]:
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
    out = rows["direction"] == Direction.OUT
    sizes, messages = (rows[name].astype(np.float64) for name in ("bytes", "messages"))
    return np.where(out, caller, partner), np.where(out, partner, caller), sizes, messages


def _by_cell(cells: Ints, amount: Floats, shape: tuple[int, int]) -> Floats:
    return np.bincount(cells, amount, shape[0] * shape[1]).astype(np.float64).reshape(shape)


def _within(pids: Ints, blocks: Blocks) -> NDArray[np.bool_]:
    return (blocks.first <= pids) & (pids < blocks.end)


def _block(pids: Ints, blocks: Blocks) -> Ints:
    return (pids - blocks.first) // blocks.size


def _sums(by_process: NDArray[np.float64 | np.int64], blocks: Blocks) -> BlockSums:
    """Sum up a quantity of all processes of the run by blocks."""
    padded = np.full(blocks.parts * blocks.size, -1.0)
    values = by_process[blocks.first : blocks.end]
    padded[: len(values)] = values
    by_block = padded.reshape(blocks.parts, blocks.size)
    at = by_block.argmax(axis=1)
    pid = blocks.first + np.arange(blocks.parts) * blocks.size + at
    most = by_block.max(axis=1)
    return BlockSums(np.maximum(by_block, 0).sum(axis=1), most, pid)
