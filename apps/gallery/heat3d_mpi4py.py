"""Heat in a cube, in mpi4py: neighbours on a Cartesian grid exchange their outer layers."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, size: int = 128, steps: int = 60) -> Any:
    """Return the temperatures after some steps, on rank 0."""
    cube = comm.Create_cart(MPI.Compute_dims(comm.size, 3))
    pairs = zip(cube.coords, cube.dims, strict=True)
    spans = [slice(size * i // q, size * (i + 1) // q) for i, q in pairs]
    old = np.zeros([span.stop - span.start + 2 for span in spans])
    if cube.coords[0] == 0:
        old[0] = 100.0
    new = old.copy()
    for _ in range(steps):
        for axis in range(3):
            below, above = cube.Shift(axis, 1)
            for target, source, own, halo in ((below, above, 1, -1), (above, below, -2, 0)):
                got = old[side(axis, halo)].copy()
                cube.Sendrecv(old[side(axis, own)].copy(), target, recvbuf=got, source=source)
                old[side(axis, halo)] = got
        new[1:-1, 1:-1, 1:-1] = mean(old)
        old, new = new, old
    blocks = comm.gather((spans, old[1:-1, 1:-1, 1:-1]))
    if blocks is None:
        return None
    whole = np.empty((size, size, size))
    for where, block in blocks:
        whole[*where] = block
    return whole


def side(axis: int, number: int) -> Any:
    """Return the index of a layer of a block, without its edges."""
    index: list[Any] = [slice(1, -1)] * 3
    index[axis] = number
    return tuple(index)


def mean(x: Any) -> Any:
    """Return the mean of the six neighbours of each inner point."""
    sums = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
    return (sums + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]) / 6


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if result is not None:
        print(result)
