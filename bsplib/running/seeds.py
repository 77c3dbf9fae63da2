"""Seeds of the global random generators, so that real processes draw different numbers.

A process that is forked inherits the state of ``random`` and of ``numpy.random``. Each
process therefore seeds both anew, from numbers that the parent draws from its own
generators and from its pid: the processes differ, and a program whose parent has set a
seed draws the same in every run.
"""

from __future__ import annotations

import random
import sys
from typing import NamedTuple

import numpy as np

_BITS = 64
_PID_BITS = 16
"""Bits for the pid in a seed of ``random``; no backend has as many processes."""


class Seeds(NamedTuple):
    """Seeds that the parent has drawn for one run."""

    of_random: int = 0
    of_numpy: int | None = None
    """None where the parent has not imported ``numpy.random``, and a process that does so
    gets a state of its own."""


def draw() -> Seeds:
    """Draw the seeds of a run, in its parent."""
    seed = random.getrandbits(_BITS)
    numpy_random = sys.modules.get("numpy.random")  # imported by the program, or not needed
    if numpy_random is None:
        return Seeds(seed)
    return Seeds(seed, int.from_bytes(numpy_random.bytes(_BITS // 8), "little"))


def seed_generators(seeds: Seeds, pid: int) -> None:
    """Seed the global generators of this process.

    Args:
        seeds: seeds of the run.
        pid: this process.
    """
    random.seed(seeds.of_random << _PID_BITS | pid)
    if seeds.of_numpy is not None:
        words = [seeds.of_numpy & 0xFFFFFFFF, seeds.of_numpy >> 32, pid]
        np.random.seed(words)  # a forked process inherits this legacy state
