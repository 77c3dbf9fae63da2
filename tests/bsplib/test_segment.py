"""The shared memory of a run where others use /dev/shm at the same time."""

from __future__ import annotations

import errno
import os
import resource

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


# -- pages that are mapped at once ----------------------------------------------------------

MANY = 64 * PAGE


@pytest.fixture
def area(segment):
    """The first byte of the area of process 0."""
    return next(segment.area(0))[0]


def faults_of_writing(segment, start, nbytes):
    """Write to every page; return how many of them the system had to map for that."""
    memory = segment.view(start, nbytes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for byte in range(0, nbytes, PAGE):
        memory[byte] = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_many_pages_are_mapped_when_they_are_reserved(segment, area):
    segment.reserve(area, 2 * MANY)
    if not segments.populate(segment.address_of(area), PAGE):
        pytest.skip("this kernel is older than Linux 5.14")
    assert faults_of_writing(segment, area, 2 * MANY) < MANY // PAGE


def test_pages_that_cannot_be_mapped_at_once_are_mapped_one_by_one(segment, area, monkeypatch):
    monkeypatch.setattr(segments, "populate", lambda *_: False)
    segment.reserve(area, MANY)
    assert faults_of_writing(segment, area, MANY) >= MANY // PAGE


def test_a_few_pages_are_left_until_they_are_touched(segment, area):
    segment.reserve(area, 4 * PAGE)
    assert faults_of_writing(segment, area, 4 * PAGE) >= 4


def test_pages_that_were_not_reserved_are_never_mapped_at_once(segment, area, monkeypatch):
    failing(100, monkeypatch)
    monkeypatch.setattr(segments, "populate", lambda *where: pytest.fail(str(where)))
    with pytest.raises(OutOfSharedMemoryError):
        segment.reserve(area, MANY)


def test_the_file_of_a_run_never_has_a_name(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a name was given")

    monkeypatch.setattr(segments, "SharedMemory", refuse)
    made = Segment(1)
    made.reserve(0, PAGE)
    made.close()


def test_where_every_file_needs_a_name_it_is_removed_at_once(monkeypatch):
    monkeypatch.setattr(segments, "_NAMELESS", 0)
    before = os.listdir("/dev/shm")
    made = Segment(1)
    assert os.listdir("/dev/shm") == before
    made.reserve(0, PAGE)
    made.control[0] = 7
    again = Segment(1, os.dup(made.descriptor))
    assert again.control[0] == 7
    again.close()
    made.close()
