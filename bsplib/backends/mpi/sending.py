"""Sends that have been started, the memory that they read, and memory for payloads."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from mpi4py import MPI

from bsplib.backends.base import Buffer

HEADS, BODIES, PAYLOADS = 1, 2, 3
"""Tags: one for each kind of what is sent. See PROTOCOL.md."""
PIECE_BYTES = 1 << 30
"""What is larger is sent in pieces: counts of MPI have 32 bits, but for the newest."""


class Sends:
    """Sends of one process that have been started and may not have been completed.

    Args:
        comm: of the job.
        buffers: take back the memory of what has been sent.
    """

    def __init__(self, comm: MPI.Intracomm, buffers: Buffers) -> None:
        self._comm = comm
        self._buffers = buffers
        self._requests: list[MPI.Request] = []
        self._kept: list[tuple[Buffer | None, int]] = []
        self.unsent_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._requests)

    def start(self, data: Any, to: int, tag: int, buffer: Buffer | None = None) -> None:
        """Start to send bytes, which stay as they are until they are sent.

        Args:
            data: contiguous bytes.
            to: rank.
            tag: of MPI.
            buffer: given back once all is sent.
        """
        nbytes = len(data)
        if 0 < nbytes <= PIECE_BYTES:
            self._start(data, to, tag, buffer, nbytes)
            return
        for begin in range(0, nbytes, PIECE_BYTES):  # a buffer of this size is not kept
            piece = data[begin : begin + PIECE_BYTES]
            self._start(piece, to, tag, None, len(piece))

    def _start(self, data: Any, to: int, tag: int, buffer: Buffer | None, nbytes: int) -> None:
        self._requests.append(self._comm.Isend((data, MPI.BYTE), to, tag))
        self._kept.append((buffer, nbytes))
        self.unsent_bytes += nbytes

    def all_sent(self) -> bool:
        """Tell whether all is sent; then forget it."""
        if self._requests and not MPI.Request.Testall(self._requests):
            return False
        for buffer, _ in self._kept:
            if buffer is not None:
                self._buffers.give(buffer)
        self._requests, self._kept, self.unsent_bytes = [], [], 0
        return True

    def forget_sent(self) -> int:
        """Forget what is sent; return the bytes of what is not."""
        if self._requests:
            for index in MPI.Request.Testsome(self._requests) or ():
                buffer, nbytes = self._kept[index]
                self.unsent_bytes -= nbytes
                if buffer is not None:
                    self._buffers.give(buffer)
                self._kept[index] = None, 0
            unsent = [index for index, each in enumerate(self._requests) if each]
            self._requests = [self._requests[index] for index in unsent]
            self._kept = [self._kept[index] for index in unsent]
        return self.unsent_bytes

    def take_over(self, others: Sends) -> None:
        """Keep the sends of others from now on."""
        self._requests += others._requests
        self._kept += others._kept
        self.unsent_bytes += others.unsent_bytes
        others._requests, others._kept, others.unsent_bytes = [], [], 0


# -- memory for payloads that is used again: fresh pages would cost more than a copy into them ----


_LEAST_BYTES = 4096
_MOST_KEPT_BYTES = 1 << 28
"""Most bytes of memory that nobody uses and that is kept."""


class Buffers:
    """Buffers in sizes that are powers of two."""

    def __init__(self) -> None:
        self._free: defaultdict[int, list[Buffer]] = defaultdict(list)
        self._free_bytes = 0

    def take(self, nbytes: int) -> Buffer:
        """Return a buffer of at least ``nbytes`` bytes."""
        size = max(_LEAST_BYTES, 1 << (nbytes - 1).bit_length()) if nbytes else _LEAST_BYTES
        free = self._free[size]
        if not free:
            return np.empty(size, np.uint8)
        self._free_bytes -= size
        return free.pop()

    def give(self, buffer: Buffer) -> None:
        """Take back a buffer that nobody reads or writes any more."""
        if self._free_bytes + len(buffer) <= _MOST_KEPT_BYTES:
            self._free[len(buffer)].append(buffer)
            self._free_bytes += len(buffer)
