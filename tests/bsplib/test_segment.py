"""The shared memory of a run where others use /dev/shm at the same time."""

from __future__ import annotations

import errno
import os

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


def test_pages_that_were_not_reserved_are_never_mapped_at_once(segment, area, monkeypatch):
    failing(100, monkeypatch)
    monkeypatch.setattr(segments, "populate", lambda *where: pytest.fail(str(where)))
    with pytest.raises(OutOfSharedMemoryError):
        segment.reserve(area, 64 * PAGE)
