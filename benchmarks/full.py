"""A program for which /dev/shm is too small: ``python -m benchmarks.full METHOD``."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

import bsplib

NPROCS = 4
_TOO_MUCH = 1 << 40


def main(bsp: bsplib.Group) -> None:
    """Print the time, and allocate too much on process 1."""
    bsp.sync()
    if bsp.pid == 1:
        time.sleep(0.05)  # by then the others wait
        os.write(1, f"{time.monotonic_ns()}\n".encode())
        bsp.empty(_TOO_MUCH, np.uint8)
    bsp.sync()


if __name__ == "__main__":
    try:
        bsplib.run(main, nprocs=NPROCS, start_method=sys.argv[1])
    except bsplib.OutOfSharedMemoryError:
        os.write(1, f"{time.monotonic_ns()}\n".encode())
