"""Puts that overlap in chains and in nested ranges, and arrays that share memory."""

from __future__ import annotations

import numpy as np
import pytest

SIZE = 40


def by_view(bsp, pid, values, x, start):
    bsp.put(pid, values, x[start : start + len(values)])


def by_offset(bsp, pid, values, x, start):
    bsp.put(pid, values, x, offset=start)


def by_index(bsp, pid, values, x, start):
    bsp.put(pid, values, x, at=np.s_[start : start + len(values)])


def by_words(bsp, pid, values, x, start):
    bsp.put_at(pid, np.arange(start, start + len(values)), values, x)


def by_single_words(bsp, pid, values, x, start):
    for number, value in enumerate(values, start):
        bsp.put(pid, value, x, offset=number)


def backwards(bsp, pid, values, x, start):
    bsp.put(pid, values[::-1], x[start : start + len(values)][::-1])


def in_two_halves(bsp, pid, values, x, start):
    """In the other order, which does not matter."""
    half = len(values) // 2
    by_view(bsp, pid, values[half:], x, start + half)
    by_offset(bsp, pid, values[:half], x, start)


WAYS = [by_view, by_offset, by_index, by_words, by_single_words, backwards, in_two_halves]


def roof_tiles(number):
    """Each covers half of the one before."""
    return 3 * number, 6


def pyramid(number):
    """Each lies within the one before: all can be seen."""
    return number, SIZE - 2 * number


def pyramid_on_its_point(number):
    """Each covers the one before."""
    return SIZE // 2 - number - 1, 2 * number + 2


def one_on_another(number):
    return 5, 7


PATTERNS = [roof_tiles, pyramid, pyramid_on_its_point, one_on_another]


def values_of(source, number, length):
    return 1000.0 * source + 100 * number + np.arange(length)


def stack(pattern, sources, numbers):
    """What stays of the pieces of all sources, laid down one after the other."""
    expected = np.zeros(SIZE)
    for source in sources:
        for number in numbers(source):
            start, length = pattern(number)
            expected[start : start + length] = values_of(source, number, length)
    return expected.tolist()


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_pieces_of_all_processes_lie_in_the_order_of_their_pids(bsp, pattern):
    """However each of them names its place."""
    x = bsp.zeros(SIZE)
    bsp.sync()
    start, length = pattern(bsp.pid)
    for pid in range(bsp.nprocs):
        way = WAYS[(bsp.pid + pid) % len(WAYS)]
        way(bsp, pid, values_of(bsp.pid, bsp.pid, length), x, start)
    bsp.sync()
    assert x.tolist() == stack(pattern, range(bsp.nprocs), lambda source: [source])


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_pieces_of_each_process_lie_in_the_order_of_its_program(run, nprocs, pattern):
    """The first to last of one process, then those of the next; forth here and back there."""

    def numbers(source):
        return range(8)[:: 1 if source % 2 else -1]

    def main(bsp):
        x = bsp.zeros(SIZE)
        bsp.sync()
        for number in numbers(bsp.pid):
            start, length = pattern(number)
            way = WAYS[(bsp.pid + number) % len(WAYS)]
            way(bsp, 0, values_of(bsp.pid, number, length), x, start)
        bsp.sync()
        return x.tolist()

    first, *others = run(main)
    assert first == stack(pattern, range(nprocs), numbers)
    assert others == [[0.0] * SIZE] * len(others)


@pytest.mark.parametrize("shift", [1, -1, 7])
@pytest.mark.parametrize("operation", ["put", "get"])
def test_an_array_may_be_shifted_onto_itself(run, nprocs, operation, shift):
    """A put has the values at the call; a get those at the sync, before anything is written."""
    to, of = (np.s_[shift:], np.s_[:-shift]) if shift > 0 else (np.s_[:shift], np.s_[-shift:])

    def main(bsp):
        x = bsp.array(np.arange(SIZE) + 100 * bsp.pid)
        bsp.sync()
        getattr(bsp, operation)((bsp.pid + 1) % bsp.nprocs, x[of], x[to])
        x += 50
        bsp.sync()
        return x.tolist()

    beside, late = (-1, 0) if operation == "put" else (1, 50)
    for pid, result in enumerate(run(main)):
        expected = np.arange(SIZE) + 100 * pid + 50
        expected[to] = np.arange(SIZE)[of] + 100 * ((pid + beside) % nprocs) + late
        assert result == expected.tolist()


def test_one_memory_under_two_registrations_is_written_in_the_one_order(run, nprocs):
    def main(bsp):
        whole = np.zeros(10, int)
        bsp.push_reg(whole)
        part = whole[3:8]
        bsp.push_reg(part)
        bsp.sync()
        bsp.put(0, bsp.pid + 1, part)
        bsp.put(0, -bsp.pid - 1, whole, offset=5)
        bsp.put(0, [7] * 3, whole[0:3])
        bsp.put(0, 10 * (bsp.pid + 1), part[4:])
        bsp.sync()
        return whole.tolist()

    first, *others = run(main)
    assert first == [7, 7, 7, nprocs, nprocs, -nprocs, nprocs, 10 * nprocs, 0, 0]
    assert others == [[0] * 10] * len(others)
