"""After a failed run: all that ranks have sent each other is received, and nobody keeps it.

PROTOCOL.md, section *After a failed run*, argues why that is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
from mpi4py import MPI

from bsplib.backends.mpi.sending import BODIES, HEADS, PAYLOADS

_NAP_S = 5e-5


def drain(
    comm: MPI.Intracomm, heads: Mapping[int, MPI.Prequest], is_complete: Callable[[], bool]
) -> None:
    """Receive all that other ranks have sent to this one; all ranks call it.

    Each rank sends a **last** message without a byte with each tag to each other one. What was
    sent before comes before.

    Args:
        comm: connects the ranks.
        heads: by rank, the receive of its heads; when this function returns, it is not started.
        is_complete: tells whether the sends and receives are complete that this rank had
            started before, but for those of ``heads``.
    """
    tags = HEADS, BODIES, PAYLOADS
    last = [comm.Isend((b"", MPI.BYTE), rank, tag) for rank in heads for tag in tags]
    of_heads = list(heads.values())
    of_others = [(rank, tag) for rank in heads for tag in (BODIES, PAYLOADS)]
    while True:
        of_heads = [receive for receive in of_heads if not _took_last_head(receive)]
        of_others = [each for each in of_others if not _took_last(comm, *each)]
        is_done = is_complete() and MPI.Request.Testall(last)
        if is_done and not of_heads and not of_others:
            return
        time.sleep(_NAP_S)


def _took_last_head(receive: MPI.Prequest) -> bool:
    """Drop the heads of a rank that have come; tell whether the last one is among them."""
    status = MPI.Status()
    while receive.Test(status):
        was_started = status.source != MPI.ANY_SOURCE
        if was_started and not status.Get_count(MPI.BYTE):
            return True
        receive.Start()
    return False


def _took_last(comm: MPI.Intracomm, rank: int, tag: int) -> bool:
    """Drop what has come from a rank with a tag; tell whether the last message is among it."""
    status = MPI.Status()
    while (message := comm.Improbe(rank, tag, status)) is not None:
        nbytes = status.Get_count(MPI.BYTE)
        message.Recv((np.empty(nbytes, np.uint8), MPI.BYTE))
        if not nbytes:
            return True
    return False
