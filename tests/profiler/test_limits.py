"""Small files that declare too much are refused in one sentence, before they take memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from bsplib.profiler import limits
from bsplib.profiler.callgraph import build
from bsplib.recording.records import Trace, root_group
from bsplib.recording.trace import read_trace, write_trace
from tests.scripted import Script


def lonely(nprocs, names):
    """A run that broke off: process 0 has a superstep in each function, and no other any."""
    program = Script(1)
    for name in names:
        program.step(f"main {name}:6", 1000)
    run = program.run(complete=False)
    return replace(run, nprocs=nprocs, groups=(root_group(nprocs),))


def test_many_declared_processes_with_few_records_are_refused_without_memory(tmp_path):
    path = tmp_path / "wide.bsp"
    write_trace(path, Trace((lonely(65536, [f"g{number}" for number in range(500)]),)))
    assert path.stat().st_size < 120_000
    (run,) = read_trace(path).runs
    tracemalloc.start()
    try:
        with pytest.raises(limits.TooLargeError) as caught:
            build(run)
        assert tracemalloc.get_traced_memory()[1] < 10**8
    finally:
        tracemalloc.stop()
    assert str(caught.value) == (
        "the call graph is too large to show: 1502 nodes and edges for 65536 processes, with 500 "
        "places of supersteps"
    )


@pytest.mark.lengthy
def test_many_nodes_of_many_supersteps_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "MAX_SHARES", 3 * 6146 - 1)
    with pytest.raises(limits.TooLargeError, match="6146 nodes and edges for 1 processes, with 20"):
        build(lonely(1, map(str, range(2048))))


@pytest.mark.lengthy
def test_nodes_that_are_passed_by_many_supersteps_are_refused(monkeypatch):
    """Those of main are those of its line, too; each function has one, and the edges around it."""
    monkeypatch.setattr(limits, "MAX_SHARES", 3002 + 2000 // 64)
    assert len(build(lonely(1, map(str, range(1000)))).graph) == 1002
    monkeypatch.setattr(limits, "MAX_SHARES", 3002 + 2000 // 64 - 1)
    with pytest.raises(limits.TooLargeError):
        build(lonely(1, map(str, range(1000))))


def test_records_of_one_superstep_at_one_place_count_once(monkeypatch, script):
    monkeypatch.setattr(limits, "MAX_SHARES", 3 * 8 + 1)
    program = script(8)
    for _ in range(64):
        program.step("main")
    assert len(build(program.run()).graph) == 2
