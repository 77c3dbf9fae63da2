"""A pipeline: frames of a film pass from process to process, and each applies some of the filters.

The filters of a frame have an order, but different frames can be worked on at the same time: in
each superstep every process works on another frame, and sends it to the next process. The first
and the last supersteps fill and empty the pipeline.

Cost: for t frames of m bytes and filters of W seconds a frame: (W/p + m g + l) (t + p - 1).
Teaches: a message of one superstep is the work of the next. The slowest process is the time of all,
so that the filters are divided evenly; a report names the process whose part is too long.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, frames: int = 60, size: int = 512, filters: int = 8) -> Any:
    """Return the greatest value of each frame behind all filters, on process 0."""
    mine = np.array_split(np.arange(filters), bsp.nprocs)[bsp.pid].tolist()
    greatest = []
    for superstep in range(frames + bsp.nprocs - 1):
        number = superstep - bsp.pid
        if 0 <= number < frames:
            frame = camera(number, size) if bsp.pid == 0 else next(bsp.messages())[2]
            for each in mine:
                frame = filtered(frame, each)
            if bsp.pid < bsp.nprocs - 1:
                bsp.send(bsp.pid + 1, frame)
            else:
                greatest.append(float(frame.max()))
        bsp.sync()
    found = bsp.gather(greatest)
    return None if found is None else found[-1]


def camera(number: int, size: int) -> Any:
    """Return a frame."""
    return np.random.default_rng(number).random((size, size))


def filtered(frame: Any, number: int) -> Any:
    """Return a frame behind a filter, which blurs it over rows or over columns."""
    axis = number % 2
    return frame / 2 + (np.roll(frame, number + 1, axis) + np.roll(frame, -number - 1, axis)) / 4


if __name__ == "__main__":
    print(bsplib.run(main)[0])
