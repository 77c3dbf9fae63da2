"""The programs that are measured; each returns the seconds of one operation.

At the end they check that the values have arrived, so that no figure comes from a program
that transfers nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from benchmarks import collective_calls
from benchmarks.timing import seconds_each, seconds_of_transfer

Numbers = NDArray[np.float64]


def nothing(bsp: bsplib.Group) -> None:
    """Return at once."""


def supersteps(bsp: bsplib.Group, count: int) -> float:
    """End supersteps in which nothing was done."""
    return seconds_each(count, bsp.sync)


def late_syncs(bsp: bsplib.Group, count: int, late_s: float, quantile: float) -> float:
    """End supersteps to which the last process comes late, after it has computed.

    Returns:
        A quantile of the seconds from its coming to the end of the sync in all processes.
    """
    came, ended, now = np.zeros(count), np.zeros(count), time.perf_counter
    bsp.sync()
    for turn in range(count):
        if bsp.pid == bsp.nprocs - 1:
            until = now() + late_s
            while now() < until:
                pass
        came[turn] = now()
        bsp.sync()
        ended[turn] = now()
    seconds = bsp.allreduce(ended, np.maximum) - bsp.allreduce(came, np.maximum)
    return float(np.quantile(seconds, quantile))


def collectives(
    bsp: bsplib.Group, count: int, name: str, size: int, *, given: bool = False
) -> float:
    """Call a collective of arrays of ``size`` numbers, into given arrays or new ones."""
    call = collective_calls.on_bsplib(bsp, name, size, given=given)
    collective_calls.check(name, bsp.pid, bsp.nprocs, size, call())
    return seconds_each(count, call)


def gets(bsp: bsplib.Group, count: int) -> float:
    """End supersteps in which every process gets one number from the next process."""
    there, here = bsp.zeros(1), np.empty(1)
    there[0] = bsp.pid
    right = (bsp.pid + 1) % bsp.nprocs
    bsp.sync()

    def superstep() -> None:
        bsp.get(right, there, here)
        bsp.sync()

    seconds = seconds_each(count, superstep)
    _check(here, np.array([float(right)]))
    return seconds


def messages(bsp: bsplib.Group, count: int) -> float:
    """End supersteps in which every process sends eight bytes to the next one, which reads them."""
    right, left = (bsp.pid + 1) % bsp.nprocs, (bsp.pid - 1) % bsp.nprocs
    payload = bytes(8)
    read: list[tuple[int, Any, bytes]] = []

    def superstep() -> None:
        bsp.send(right, payload)
        bsp.sync()
        read[:] = bsp.messages()

    seconds = seconds_each(count, superstep)
    if read != [(left, None, payload)]:
        raise AssertionError(f"wrong messages came: {read}")
    return seconds


def puts(bsp: bsplib.Group, count: int, nbytes: int, *, unbuffered: bool = False) -> float:
    """End supersteps in which every process makes one put to the next process."""
    there = bsp.zeros(nbytes, np.uint8)
    here = np.ones(nbytes, np.uint8)
    right = (bsp.pid + 1) % bsp.nprocs
    put = bsp.hpput if unbuffered else bsp.put

    def superstep() -> None:
        put(right, here, there)
        bsp.sync()

    seconds = seconds_each(count, superstep)
    _check(there, here)
    return seconds


def puts_that_are_read(
    bsp: bsplib.Group, count: int, nbytes: int, *, unbuffered: bool = False
) -> float:
    """End supersteps in which every process puts what it has written, and reads what came.

    An hpput may write at any time in its superstep, while the receiver still reads what the
    superstep before brought: it needs two arrays in turn. A put needs one.
    """
    targets = [bsp.zeros(nbytes, np.uint8) for _ in range(1 + unbuffered)]
    source = np.zeros(nbytes, np.uint8)
    right = (bsp.pid + 1) % bsp.nprocs
    put = bsp.hpput if unbuffered else bsp.put

    def transfer(target: int) -> None:
        put(right, source, targets[target])
        bsp.sync()

    return seconds_of_transfer(count, source, targets, transfer)


def messages_that_are_read(bsp: bsplib.Group, count: int, nbytes: int) -> float:
    """End supersteps in which every process sends what it has written, and reads what came."""
    source = np.zeros(nbytes, np.uint8)
    right = (bsp.pid + 1) % bsp.nprocs
    received = [source]

    def transfer(_: int) -> None:
        bsp.send(right, source)
        bsp.sync()
        received[0] = bsp.move()

    return seconds_of_transfer(count, source, received, transfer)


def small_puts(bsp: bsplib.Group, count: int, number: int) -> float:
    """Return the seconds for each of many puts of one word from process 0 to the last."""

    def put_words(words: Numbers, last: int) -> None:
        for position in range(number):
            bsp.put(last, 1.0, words, offset=position)

    return _small_puts(bsp, count, number, put_words)


def small_puts_into_views(bsp: bsplib.Group, count: int, number: int) -> float:
    """Return the seconds for each put as :func:`small_puts`, but into slices of the array."""

    def put_words(words: Numbers, last: int) -> None:
        for position in range(number):
            bsp.put(last, 1.0, words[position : position + 1])

    return _small_puts(bsp, count, number, put_words)


def _small_puts(
    bsp: bsplib.Group, count: int, number: int, put_words: Callable[[Numbers, int], object]
) -> float:
    """Return the seconds for each word that ``put_words`` puts from process 0 to the last."""
    words = bsp.zeros(number)
    last = bsp.nprocs - 1

    def superstep() -> None:
        if bsp.pid == 0:
            put_words(words, last)
        bsp.sync()

    seconds = seconds_each(count, superstep) / number
    _check(words, np.full(number, bsp.pid == last))
    return seconds


def work(bsp: bsplib.Group, count: int, rounds: int) -> float:
    """End supersteps in which every process computes and puts its result to the next one."""
    there, right = bsp.zeros(8), (bsp.pid + 1) % bsp.nprocs
    numbers = some_numbers()

    def superstep() -> None:
        bsp.put(right, compute(numbers, rounds)[:8], there)
        bsp.sync()

    return seconds_each(count, superstep)


def some_numbers() -> Numbers:
    """Return numbers that fit into the first-level cache of a core."""
    return np.linspace(0.0, 1.0, 1024)


def compute(numbers: Numbers, rounds: int) -> Numbers:
    """Compute for a number of rounds of equal length."""
    for _ in range(rounds):
        numbers = np.sin(numbers)
    return numbers


def _check(found: NDArray[Any], expected: NDArray[Any]) -> None:
    if not np.array_equal(found, expected):
        raise RuntimeError("the words that were put have not arrived")
