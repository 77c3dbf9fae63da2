"""Sends that have been started."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

HEADS, BODIES, PAYLOADS = 1, 2, 3
"""Tags: one for each kind of what is sent. See PROTOCOL.md."""
PIECE_BYTES = 1 << 30
"""What is larger is sent in pieces: counts of MPI have 32 bits, but for the newest."""


class Sends:
    """Sends of one process that have been started and may not have been completed.

    A request keeps the memory that it reads.

    Args:
        comm: of the job.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self._requests: list[MPI.Request] = []
        self._sizes: list[int] = []
        self.unsent_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._requests)

    def start(self, data: Any, to: int, tag: int) -> None:
        """Start to send bytes, which stay as they are until they are sent.

        Args:
            data: contiguous bytes.
            to: rank.
            tag: of MPI.
        """
        for begin in range(0, len(data), PIECE_BYTES):
            piece = data[begin : begin + PIECE_BYTES]
            self._requests.append(self._comm.Isend((piece, MPI.BYTE), to, tag))
            self._sizes.append(len(piece))
            self.unsent_bytes += len(piece)

    def all_sent(self) -> bool:
        """Tell whether all is sent; then forget it."""
        if self._requests and not MPI.Request.Testall(self._requests):
            return False
        self._requests, self._sizes, self.unsent_bytes = [], [], 0
        return True

    def forget_sent(self) -> int:
        """Forget what is sent; return the bytes of what is not."""
        if self._requests and MPI.Request.Testsome(self._requests):
            unsent = [index for index, each in enumerate(self._requests) if each]
            self._requests = [self._requests[index] for index in unsent]
            self._sizes = [self._sizes[index] for index in unsent]
            self.unsent_bytes = sum(self._sizes)
        return self.unsent_bytes

    def take_over(self, others: Sends) -> None:
        """Keep the sends of others from now on."""
        self._requests += others._requests
        self._sizes += others._sizes
        self.unsent_bytes += others.unsent_bytes
        others._requests, others._sizes, others.unsent_bytes = [], [], 0
