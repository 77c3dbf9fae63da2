"""The shared memory of a run where others use /dev/shm at the same time."""

from __future__ import annotations

import errno
import os

import pytest

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
    """Let the system find no room so many times; return the list of all attempts."""
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
