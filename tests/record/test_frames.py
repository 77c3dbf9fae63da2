"""The frames of Python are found in memory, so that a call needs no lock to know its line."""

from __future__ import annotations

import sys

import pytest

from bsplib.record import frames

KNOWN = sys.implementation.name == "cpython" and sys.version_info[:2] <= (3, 14)


@pytest.mark.skipif(not KNOWN, reason="the frames of this Python are not known")
def test_the_frames_of_this_python_are_found():
    assert frames.offsets() != frames.UNKNOWN_OFFSETS


def test_offsets_that_do_not_lead_to_frames_are_not_used(monkeypatch):
    state, structure, by_frame, previous, _ = frames.offsets()
    wrong = (state, structure, by_frame, previous, 24)
    monkeypatch.setattr(frames, "_expected", lambda: wrong)
    assert frames.offsets() == frames.UNKNOWN_OFFSETS


def test_a_stack_is_written_once():
    written = []
    stacks = frames.Stacks(lambda number, found: written.append((number, found)))

    def ask():
        return stacks.number()

    first, second = ask(), ask()
    assert (first, second) == (0, 1)  # two places of this line
    assert [ask() for _ in range(3)] == [2, 2, 2]
    assert [number for number, _ in written] == [0, 1, 2]
    file, name, *_, library = written[0][1][-1]
    assert (file, library) == (__file__, False)
    assert name.endswith("ask")
