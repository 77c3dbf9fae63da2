"""A pipeline in mpi4py: each rank receives a frame, applies its filters, and sends the frame on."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, frames: int = 60, size: int = 512, filters: int = 8) -> Any:
    """Return the greatest value of each frame behind all filters, on rank 0."""
    mine = np.array_split(np.arange(filters), comm.size)[comm.rank].tolist()
    greatest, frame = [], np.empty((size, size))
    for number in range(frames):
        if comm.rank == 0:
            frame = np.random.default_rng(number).random((size, size))
        else:
            comm.Recv(frame, comm.rank - 1)
        for each in mine:
            frame = filtered(frame, each)
        if comm.rank < comm.size - 1:
            comm.Send(frame, comm.rank + 1)
        else:
            greatest.append(float(frame.max()))
    found = comm.gather(greatest)
    return None if found is None else found[-1]


def filtered(frame: Any, number: int) -> Any:
    """Return a frame behind a filter, which blurs it over rows or over columns."""
    axis = number % 2
    return frame / 2 + (np.roll(frame, number + 1, axis) + np.roll(frame, -number - 1, axis)) / 4


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if result is not None:
        print(result)
