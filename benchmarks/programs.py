"""The programs that are measured; each returns the seconds of one operation."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import bsplib

_WARM_UP = 3


def _per_superstep(count: int, superstep: Callable[[], object]) -> float:
    for _ in range(_WARM_UP):
        superstep()
    began = time.perf_counter()
    for _ in range(count):
        superstep()
    return (time.perf_counter() - began) / count


def nothing(bsp: bsplib.Group) -> None:
    """Return at once."""


def supersteps(bsp: bsplib.Group, count: int) -> float:
    """End supersteps in which nothing was done."""
    return _per_superstep(count, bsp.sync)


def puts(bsp: bsplib.Group, count: int, nbytes: int, *, unbuffered: bool = False) -> float:
    """End supersteps in which process 0 puts once to process 1."""
    there = bsp.zeros(nbytes, np.uint8)
    here = np.ones(nbytes, np.uint8)
    put = bsp.hpput if unbuffered else bsp.put

    def superstep() -> None:
        if bsp.pid == 0:
            put(1, here, there)
        bsp.sync()

    return _per_superstep(count, superstep)


def small_puts(bsp: bsplib.Group, count: int, number: int) -> float:
    """End supersteps in which process 0 puts many single words; return seconds a put."""
    words = bsp.zeros(number)

    def superstep() -> None:
        if bsp.pid == 0:
            for position in range(number):
                bsp.put(bsp.nprocs - 1, 1.0, words, offset=position)
        bsp.sync()

    return _per_superstep(count, superstep) / number


def small_puts_into_views(bsp: bsplib.Group, count: int, number: int) -> float:
    """Do as small_puts, each into a slice of the array."""
    words = bsp.zeros(number)
    views = [words[position : position + 1] for position in range(number)]

    def superstep() -> None:
        if bsp.pid == 0:
            for view in views:
                bsp.put(bsp.nprocs - 1, 1.0, view)
        bsp.sync()

    return _per_superstep(count, superstep) / number


def small_puts_at(bsp: bsplib.Group, count: int, number: int) -> float:
    """Do as small_puts, in one call a superstep."""
    words = bsp.zeros(number)
    indices, values = np.arange(number), np.ones(number)

    def superstep() -> None:
        if bsp.pid == 0:
            bsp.put_at(bsp.nprocs - 1, indices, values, words)
        bsp.sync()

    return _per_superstep(count, superstep) / number


def small_messages(bsp: bsplib.Group, count: int, number: int) -> float:
    """End supersteps in which process 0 sends many messages, which are read; seconds each."""

    def superstep() -> None:
        if bsp.pid == 0:
            for _ in range(number):
                bsp.send(1, b"8 bytes.")
        bsp.sync()
        for _ in bsp.messages():
            pass

    return _per_superstep(count, superstep) / number
