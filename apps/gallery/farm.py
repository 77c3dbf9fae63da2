"""A farm: tasks whose lengths nobody knows before are dealt out anew again and again.

A task is a row of a picture of the Mandelbrot set; rows in the middle take longer. Each process
works on its tasks for a slice of time, and puts the rows into the picture on process 0. Then all
say which of their tasks are left, and these are dealt out evenly.

Cost: for t tasks of W seconds in all, with results of m bytes each, in slices of s seconds:
W/p + m t (1 - 1/p) g + W/(p s) (8 t g + l), and at most one task more in each slice.
Teaches: ``bsp.time()`` bounds a superstep. With slices much longer than l the balance costs next
to nothing, and no process has to be a master.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 1000, slice_s: float = 0.05) -> Any:
    """Return after how many steps each point leaves the set, on process 0."""
    picture = bsp.zeros((size, size), int)
    tasks = np.arange(size)
    while len(tasks):
        mine, end = tasks[bsp.pid :: bsp.nprocs].tolist(), bsp.time() + slice_s
        while mine and bsp.time() < end:
            number = mine.pop()
            bsp.on(0, picture)[number] = row(number, size)
        tasks = bsp.allgather(np.array(mine, int), axis=0)
    return picture


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
    print(bsplib.run(main)[0])
