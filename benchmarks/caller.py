"""A program whose caller will be killed: ``python -m benchmarks.caller METHOD HABIT``."""

from __future__ import annotations

import os
import signal
import sys
import time

import bsplib

NPROCS = 4
COMPUTES = "compute in one call"
BLOCKS = "block all signals"
FORKED = "have forked"
HABITS = (COMPUTES, BLOCKS, FORKED)
_LONG_S = 20


def main(bsp: bsplib.Group, habit: str) -> None:
    """Print the pid in the system, and run for a long time."""
    bsp.sync()
    if habit == BLOCKS:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    if habit == FORKED and not os.fork():
        os.close(1)  # the benchmark waits until this pipe is closed
        time.sleep(_LONG_S)
        os._exit(0)
    os.write(1, f"{os.getpid()}\n".encode())
    if habit == COMPUTES:
        sum(range(10**9))
    time.sleep(_LONG_S)


if __name__ == "__main__":
    bsplib.run(main, sys.argv[2], nprocs=NPROCS, start_method=sys.argv[1])
