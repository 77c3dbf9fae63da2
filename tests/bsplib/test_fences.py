"""Where the machine does not keep the order of stores and loads, the code fences them.

Two processes of a run live here, in two threads, and note every look at a control word, every
store of one, and every fence. This machine is said to be one that keeps no order. These are
the parts outside the core, whose meetings have tests of their own (core/test_meeting.py).
"""

from __future__ import annotations

import ast
import re
import threading
from pathlib import Path

import pytest

import bsplib
from bsplib.backends.shm import context, waiting
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import (
    ASLEEP,
    BLOCK_WORDS,
    BLOCKS,
    CELLS,
    CLOSED,
    CONSUMED,
    DELIVERED,
    FIRST_BLOCK,
    LATEST,
    PAGE,
    POSTED,
    RING_START,
    STAMP,
    WAITED,
    WORD,
)
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.segment import Segment
from bsplib.backends.shm.waiting import Fences
from bsplib.core.entries import SendBuffer
from bsplib.core.kinds import IN_BUFFER, INLINE_BYTES, KIND_SHIFT

from .phases import eventually

pytestmark = pytest.mark.real_processes

FENCE = ("fence", 0, "")
ANNOUNCES = {"word", "POSTED", "CONSUMED", "CLOSED", "LATEST", "DELIVERED", "label"}
ANNOUNCED = {"stamp", "head", "ring"}
NOTE = 3


class NotedFences(Fences):
    """Fences of which each is noted."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def full(self):
        self.noted.append(FENCE)


class NotedWords:
    """Control words of which each look and each store is noted."""

    def __init__(self, segment, noted):
        self._segment = segment
        self._words = segment.control
        self._noted = noted

    def __getitem__(self, key):
        self._note("load", key)
        return self._words[key]

    def __setitem__(self, key, value):
        self._note("clear" if value == 0 else "store", key)
        self._words[key] = value

    def _note(self, what, key):
        first = key.start if isinstance(key, slice) else key
        for pid in range(2):
            word = first - self._segment.control_start(pid) // WORD
            if 0 <= word < FIRST_BLOCK + BLOCKS * BLOCK_WORDS:
                self._noted.append((what, pid, self._name(word, isinstance(key, slice))))

    @staticmethod
    def _name(word, is_slice):
        if word < BLOCKS:
            return "label"
        if word < FIRST_BLOCK or is_slice:
            return {ASLEEP: "ASLEEP", WAITED: "WAITED"}.get(word, "")
        word = (word - FIRST_BLOCK) % BLOCK_WORDS
        names = {POSTED: "POSTED", CONSUMED: "CONSUMED", CLOSED: "CLOSED", LATEST: "LATEST"}
        names |= dict.fromkeys(CELLS, "word") | {DELIVERED: "DELIVERED"}
        names |= {cell + STAMP: "stamp" for cell in CELLS}
        names |= {cell + STAMP + 1: "head" for cell in CELLS}
        return "ring" if word >= RING_START else names.get(word, "")


@pytest.fixture
def ports(monkeypatch):
    """Ports of two processes, and what each of them has noted."""
    monkeypatch.setattr(waiting, "STORES_IN_ORDER", False)
    monkeypatch.setattr(context, "Fences", NotedFences)
    first = Segment(2)
    segments = [first, Segment(2, first.descriptor)]
    words = [segment.control for segment in segments]
    first.reserve(0, PAGE)
    for pid in range(2):
        first.reserve(first.control_start(pid), PAGE)
    made, notes = [], []
    for pid, segment in enumerate(segments):
        process = ProcessContext(segment, pid, "block")
        process.begin()
        noted = process.fences.noted
        process.control = process.waiting.control = segment.control = NotedWords(segment, noted)
        monkeypatch.setattr(process.heap, "release", note_reuse(process, noted))
        made.append(ShmPort.of_root(process))
        notes.append(noted)
    yield made, notes
    for segment, control in zip(segments, words, strict=True):
        segment.control = control


def note_reuse(process, noted):
    release = process.heap.release

    def release_noted(start):
        noted.append(("store", process.pid, "staging buffer"))
        release(start)

    return release_noted


def together(ports, notes, act):
    """Let process 1 act first, and process 0 when the other one has posted and is asleep."""
    for noted in notes:
        noted.clear()
    results = [None, None]

    def other():
        results[1] = act(ports[1], 0)

    thread = threading.Thread(target=other)
    thread.start()
    eventually(lambda: ("store", 1, "ASLEEP") in notes[1])
    results[0] = act(ports[0], 1)
    thread.join()
    return results


def missing_release(noted, pid):
    """Return the words that a process stored with no fence just before, to announce something."""
    return [
        (noted[number - 1], event)
        for number, event in enumerate(noted)
        if event[0] == "store" and event[1] == pid and event[2] in ANNOUNCES
        if noted[number - 1] != FENCE
    ]


def missing_acquire(noted, pid):
    """Return the looks at what was announced with no fence since the look that found it."""
    found, fenced, wrong = set(), set(), []
    for event in noted:
        what, whose, name = event
        if event == FENCE:
            fenced |= found
            found = set()
        elif what == "store" and whose == pid and name in ("word", "POSTED"):
            fenced = set()  # another meeting begins
        elif what == "load" and whose != pid and ("load", whose, "label") in found - {event}:
            wrong.append(event)
        elif what == "load" and whose != pid and name in ANNOUNCES:
            found |= {event} - fenced  # it may look once more at what it has found and fenced
        elif what == "load" and whose != pid and name in ANNOUNCED and found:
            wrong.append(event)
    return wrong


def missing_acquire_before_reuse(noted, pid):
    """Return the stores before which others were seen to be done, with no fence in between."""
    done, wrong = False, []
    for event in noted:
        what, whose, name = event
        if event == FENCE:
            done = False
        elif what == "load" and whose != pid and name in ("CONSUMED", "CLOSED"):
            done = True
        elif what == "store" and done:
            wrong.append(event)
    return wrong


def by_oblivious_exchange(port, other):
    return port.exchange_oblivious({other: (1, bytes(8))}, 1, 7)


def by_oblivious_exchanges(port, other):
    for _ in range(6):
        by_oblivious_exchange(port, other)
        port.end_superstep()


def in_a_sub_group(port, other):
    sub = port.split(0, 0, [0, 1])
    send_buffer, meeting = SendBuffer(port.pid, 2, sub.send_buffer_memory()), sub.meeting
    send_buffer.reserve(other, 0, 0, INLINE_BYTES)  # too large for an inline entry
    sub.stage(400, other)
    meeting.meet(NOTE, send_buffer.complete(meeting.inline_address()), 7)
    assert meeting.head_of(other) >> KIND_SHIFT == IN_BUFFER
    sub.end_superstep()
    sub.close()
    for _ in range(3):  # it sees here that the other one has left, too
        port.meeting.meet(NOTE, 0, 0)
        port.end_superstep()


ACTS = [by_oblivious_exchanges, in_a_sub_group]


@pytest.mark.parametrize("act", ACTS)
def test_what_a_word_announces_is_fenced_from_it_on_both_sides(ports, act):
    ports, notes = ports
    together(ports, notes, act)
    for pid, noted in enumerate(notes):
        assert FENCE in noted
        assert missing_release(noted, pid) == []
        assert missing_acquire(noted, pid) == []


@pytest.mark.parametrize("act", ACTS)
def test_memory_is_used_again_behind_a_fence(ports, act):
    ports, notes = ports
    together(ports, notes, act)
    for pid, noted in enumerate(notes):
        assert ("store", pid, "staging buffer") in noted
        assert missing_acquire_before_reuse(noted, pid) == []


def test_who_goes_to_sleep_says_so_before_it_asks_to_be_woken(ports):
    ports, notes = ports
    together(ports, notes, by_oblivious_exchanges)
    asleep, waited = ("store", 1, "ASLEEP"), ("store", 0, "WAITED")
    first = notes[1].index(asleep)
    assert notes[1][first : first + 3] == [asleep, FENCE, waited]


@pytest.mark.lengthy
def test_every_function_that_the_protocol_page_names_exists():
    page = (Path(context.__file__).parent / "PROTOCOL.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z]\w+)\.(\w+)`", page))
    assert len(named) > 20
    assert named - {*names_in_classes()} == set()


def names_in_classes():
    """Yield the functions and attributes of all classes of the runtime, with their classes."""
    for file in Path(bsplib.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                for part in ast.walk(node):
                    if isinstance(part, ast.FunctionDef):
                        yield node.name, part.name
                    elif isinstance(part, ast.Attribute):
                        yield node.name, part.attr
                    elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        yield node.name, part.target.id
