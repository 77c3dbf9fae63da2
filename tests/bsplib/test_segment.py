"""The shared memory of a run where others use /dev/shm at the same time."""

from __future__ import annotations

import errno
import mmap
import os
import struct

import numpy as np
import pytest

import bsplib
from bsplib.backends.shm import segment as segments
from bsplib.backends.shm.control import PAGE
from bsplib.backends.shm.segment import Segment
from bsplib.errors import OutOfSharedMemoryError


@pytest.fixture
def segment():
    made = Segment(1)
    yield made
    made.close()


def failing(times, monkeypatch):
    """Let the system find no room for the first attempts; return the list of all attempts."""
    attempts = []
    reserve = os.posix_fallocate

    def attempt(*where):
        attempts.append(where)
        if len(attempts) <= times:
            raise OSError(errno.ENOSPC, "no room")
        reserve(*where)

    monkeypatch.setattr(os, "posix_fallocate", attempt)
    return attempts


def test_pages_that_are_free_again_are_reserved_at_the_next_attempt(segment, monkeypatch):
    attempts = failing(1, monkeypatch)
    segment.reserve(0, PAGE)
    assert attempts == [(segment.descriptor, 0, PAGE)] * 2


def test_where_there_is_never_room_the_attempts_end_in_an_error(segment, monkeypatch):
    attempts = failing(100, monkeypatch)
    with pytest.raises(OutOfSharedMemoryError, match=f"full: {PAGE} bytes more are needed"):
        segment.reserve(0, PAGE)
    assert len(attempts) == 3


def test_nothing_is_tried_again_where_too_few_bytes_are_free(segment, monkeypatch):
    attempts = failing(100, monkeypatch)
    monkeypatch.setattr(segments, "free_shared_memory", lambda: PAGE - 1)
    with pytest.raises(OutOfSharedMemoryError, match=f"has {PAGE - 1} free"):
        segment.reserve(0, PAGE)
    assert len(attempts) == 1


def test_where_shared_memory_has_no_files_without_names_the_file_is_in_no_file_system(monkeypatch):
    make = os.open

    def refuse(path, flags, *more):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return make(path, flags, *more)

    def main(bsp):
        x = bsp.zeros(100_000)
        bsp.put(1 - bsp.pid, np.ones(100_000), x)
        bsp.sync()
        return x.sum(), os.readlink(f"/proc/self/fd/{bsp._port._segment.descriptor}")

    monkeypatch.setattr(os, "open", refuse)
    assert bsplib.run(main, nprocs=2) == [(100_000, "/memfd:bsplib (deleted)")] * 2


# -- pages that are mapped at once ----------------------------------------------------------


@pytest.fixture
def area(segment):
    """The first byte of the area of process 0."""
    return next(segment.area(0))[0]


def mapped(segment, start, pages):
    """Tell of each page of this process whether it is mapped."""
    first = segment.address_of(start) // PAGE
    with open("/proc/self/pagemap", "rb", buffering=0) as table:
        table.seek(8 * first)
        return [word >> 63 == 1 for (word,) in struct.iter_unpack("Q", table.read(8 * pages))]


@pytest.fixture
def populates():
    """Skip where the system cannot map pages at once."""
    memory = mmap.mmap(-1, PAGE)
    if not segments.populate(np.frombuffer(memory, np.uint8).ctypes.data, PAGE):
        pytest.skip("this kernel is older than Linux 5.14")


@pytest.mark.usefixtures("populates")
def test_many_pages_are_mapped_when_they_are_reserved(segment, area):
    segment.reserve(area, 64 * PAGE)
    assert mapped(segment, area, 65) == 64 * [True] + [False]


def test_a_few_pages_are_left_until_they_are_touched(segment, area):
    segment.reserve(area, 4 * PAGE)
    segment.view(area, 4 * PAGE)[PAGE] = 1
    assert mapped(segment, area, 4) == [False, True, False, False]


@pytest.mark.usefixtures("populates")
def test_of_a_part_of_a_page_all_is_mapped_and_nothing_else(segment, area):
    segment.reserve(area, 4 * PAGE)
    segments.populate(segment.address_of(area) + PAGE + 100, PAGE)  # parts of two pages
    assert mapped(segment, area, 4) == [False, True, True, False]


def test_pages_that_cannot_be_mapped_at_once_are_mapped_one_by_one(segment, area, monkeypatch):
    monkeypatch.setattr(segments, "populate", lambda *_: False)
    segment.reserve(area, 64 * PAGE)
    segment.view(area, 64 * PAGE)[:] = bytes(64 * PAGE)
    assert all(mapped(segment, area, 64))


def test_pages_that_were_not_reserved_are_never_mapped_at_once(segment, area, monkeypatch):
    failing(100, monkeypatch)
    monkeypatch.setattr(segments, "populate", lambda *where: pytest.fail(str(where)))
    with pytest.raises(OutOfSharedMemoryError):
        segment.reserve(area, 64 * PAGE)
