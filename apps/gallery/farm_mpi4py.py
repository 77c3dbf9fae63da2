"""A farm in mpi4py: rank 0 sends a task to each rank that has returned one, and works on none.

Where no rank needs the others, ``mpi4py.futures`` has a pool that hides all this.
"""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, size: int = 1000) -> Any:
    """Return after how many steps each point leaves the set, on rank 0."""
    if comm.rank > 0:
        return work(comm, size)
    picture, tasks, working = np.empty((size, size), int), list(range(size)), comm.size - 1
    if not working:
        picture[:] = [row(number, size) for number in tasks]
    status = MPI.Status()
    while working:
        done = comm.recv(source=MPI.ANY_SOURCE, status=status)
        if done is not None:
            number, picture[number] = done
        working -= not tasks
        comm.send(tasks.pop() if tasks else None, status.source)
    return picture


def work(comm: MPI.Intracomm, size: int) -> None:
    """Ask for tasks until there are none."""
    comm.send(None, 0)
    while (number := comm.recv(source=0)) is not None:
        comm.send((number, row(number, size)), 0)


def row(number: int, size: int) -> Any:
    """Return after how many steps, at most 200, the points of a row leave the set."""
    c = np.linspace(-2, 0.5, size) + 1j * (2.5 * number / size - 1.25)
    z, steps = np.zeros_like(c), np.zeros(size, int)
    for _ in range(200):
        inside = np.abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]
        steps += inside
    return steps


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if result is not None:
        print(result)
