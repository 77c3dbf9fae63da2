"""Page faults by node and process: in the report as JSON, in tables and in CSV."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bsplib
from bsplib.profiler import tables
from bsplib.profiler.profile import Profile
from bsplib.profiler.report.document import document
from bsplib.recording.records import FROM_SYSTEM, Trace
from bsplib.recording.trace import read_trace

FIELDS = [name for name in FROM_SYSTEM if name.endswith(("minor", "major"))]


@pytest.fixture
def touching(script):
    """A run with page faults of both kinds, in both parts of supersteps."""
    program = script(2)
    program.step("main touch", w=10)
    program.step("main read", w=10)
    run = program.run()
    for name, values in zip(
        FIELDS, ([5, 7, 0, 1], [0, 0, 2, 3], [1, 0, 0, 0], [0] * 4), strict=True
    ):
        run.records[name] = values
    return run


def test_tables_and_json_have_them(touching):
    (profile,) = Profile(Trace((touching,))).runs
    nodes = tables.nodes(profile.book())
    at = nodes["name"].index("read")
    assert (nodes["minor_faults"][at], nodes["major_faults"][at]) == (1, 5)
    processes = tables.processes(profile.callgraph)
    rows = [position for position, name in enumerate(processes["name"]) if name == "read"]
    assert [processes["major_faults"][row] for row in rows] == [2, 3]
    (run,) = document([profile])["runs"]
    assert run["page_faults"] == {"minor": [6, 8], "major": [2, 3]}
    assert {each["name"]: each["minor_faults"] for each in run["nodes"]}["touch"] == 13


def test_where_they_were_not_measured_no_table_has_a_column_of_them(script):
    program = script(2)
    program.step("main", w=10)
    (profile,) = Profile(Trace((program.run(),))).runs
    for columns in (tables.nodes(profile.book()), tables.processes(profile.callgraph)):
        assert not {"minor_faults", "major_faults"} & set(columns)
    (run,) = document([profile])["runs"]
    assert run["page_faults"] is None
    profile.graph()  # whose attributes are numbers and texts


def first_touch(bsp):
    bsp.sync()
    if bsp.pid == 1:
        held = [np.ones(2**16) for _ in range(64)]  # too small for huge pages
        assert len(held) == 64
    bsp.sync()


@pytest.mark.lengthy
def test_the_process_that_touches_new_memory_has_more_of_them(tmp_path):
    bsplib.run(first_touch, nprocs=2, backend="shm", profile=tmp_path / "run.bsp")
    (profile,) = Profile(read_trace(tmp_path / "run.bsp")).runs
    (run,) = json.loads(json.dumps(document([profile])))["runs"]
    if reason := profile.run.measured["faults"]:
        pytest.skip(reason)
    first, second = run["page_faults"]["minor"]
    assert second > first
