"""A verdict names what is wrong with a program, and says nothing about the rest of it."""

from __future__ import annotations

import os

import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.kinds import COMMUNICATION, CORE

from .planted import PROGRAMS, REAL, recorded


def missing(planted, sentence):
    """Return what a sentence had to name, and does not."""
    return [word for word in planted.words if word not in sentence.text]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_sentence_names_what_was_planted_and_there_is_no_other(tmp_path, name):
    planted = PROGRAMS[name]
    verdict = book_graph(build(recorded(tmp_path / "trace.bsp", planted))).verdict()
    first = verdict.sentences[0]
    assert missing(planted, first) == [], first.text
    assert first.kind == planted.kind
    assert verdict.balanced == (planted.kind == "balanced")
    assert len(verdict.sentences) == 1, str(verdict)


@pytest.mark.lengthy
@pytest.mark.parametrize("name", REAL)
def test_the_first_sentence_names_what_was_planted_on_real_processes(tmp_path, name):
    """One of three recordings suffices, since a busy computer disturbs them.

    Two true sentences may come before what was planted: that bytes take the time of a program in
    which one process gets them all, and that its processes outnumber the cores. Where they do, they
    wait for cores while the bytes move, and what the fan-in costs is not seen.
    """
    planted, verdicts = REAL[name], []
    if name == "fan-in" and planted.nprocs > len(os.sched_getaffinity(0)):
        pytest.skip("needs a core for each process")
    for number in range(3):
        trace = recorded(tmp_path / f"trace-{number}.bsp", planted, "shm")
        verdict = book_graph(build(trace)).verdict()
        others = [each for each in verdict.sentences if each.kind not in (COMMUNICATION, CORE)]
        if others and others[0].kind == planted.kind and not missing(planted, others[0]):
            return
        verdicts.append(str(verdict))
    pytest.fail("\n\n".join(verdicts))
