"""Traces of versions 1 and 2, which have less in them, are read."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from bsplib.errors import TraceError
from bsplib.profiler.callgraph import build
from bsplib.recording.old_formats import RECORDS
from bsplib.recording.records import FROM_SYSTEM, NOT_MEASURED, RECORD, TRAFFIC, Frame
from bsplib.recording.trace import _npy_header, read_heads, read_trace
from bsplib.sync_kinds import Kind

ROWS = [
    # pid, group, superstep, kind, stack, start..end, calls, sub
    (0, 1, 0, Kind.SYNC, 0, 10, 20, 20, 25, 3, 0),
    (0, 0, 0, Kind.SYNC, 0, 0, 80, 90, 95, 20, 0),
    (1, 0, 0, Kind.SYNC, 0, 0, 90, 90, 95, 0, 0),
]
CPU = {0: NOT_MEASURED, 1: 40, 2: 100}
"""CPU time of the rows of version 2."""
GROUPS = {
    1: [[-1, 0, 0, 0, 0, 2], [0, 0, 0, 0, 0, 1]],
    2: [[-1, 0, 0, 0, {"first": 0, "count": 2, "step": 1}], [0, 0, 0, 0, [0]]],
}
FRAMES = {1: [["a.py", "main", 3, 9]], 2: [["a.py", "main", 3, 9, True]]}


def write_npy(archive, name, array):
    with archive.open(name, "w") as file:
        file.write(_npy_header(array.dtype, len(array)) + array.tobytes())


def write_old(path, version, **changes):
    """Write a trace as bsplib of that version did."""
    cpu = [(time,) if version > 1 else () for time in CPU.values()]
    rows = [(*row, *more, 8, 1) for row, more in zip(ROWS, cpu, strict=True)]
    entry = {"nprocs": 2, "complete": True, "meta": {"program": "a.py"}}
    entry |= {"groups": GROUPS[version], "frames": FRAMES[version], "stacks": [[0]]}
    entry |= {"records": len(rows), "traffic": 1} | changes
    document = {"format": "bsplib trace", "version": version, "runs": [entry]}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trace.json", json.dumps(document))
        write_npy(archive, "run-0/records.npy", np.array(rows, RECORDS[version]))
        write_npy(archive, "run-0/traffic.npy", np.array([(1, 1, 0, 16, 1)], TRAFFIC))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "old.trace"


@pytest.mark.parametrize("version", [1, 2])
def test_a_trace_of_an_earlier_version_is_read_with_what_it_has(path, version):
    write_old(path, version)
    (run,) = read_trace(path).runs
    assert run.records.dtype is RECORD
    assert run.records["self_bytes"].tolist() == [8, 8, 8]
    assert [group.members for group in run.groups] == [range(2), range(1)]
    assert run.stacks == ((Frame("a.py", "main", 3, 9, version > 1),),)
    for name in FROM_SYSTEM[1:]:
        assert run.records[name].tolist() == [NOT_MEASURED] * 3
    assert run.records["recording"].tolist() == [0] * 3
    assert (run.lifetime, run.steal_ns, run.measured, run.samples) == (None, NOT_MEASURED, {}, None)
    assert read_heads(path)[0].lifetime is None
    assert build(run)


def test_cpu_time_of_version_2_is_shared_between_computation_and_calls(path):
    write_old(path, 2)
    (run,) = read_trace(path).runs
    assert run.records["comp_cpu"].tolist() == [NOT_MEASURED, 40 * 60 // 80, 90]


def test_version_1_has_no_cpu_time(path):
    write_old(path, 1)
    (run,) = read_trace(path).runs
    assert run.records["comp_cpu"].tolist() == [NOT_MEASURED] * 3


@pytest.mark.parametrize(
    "changes",
    [
        {"groups": [[-1, 0, 0, 0, 0]]},
        {"groups": [[-1, 0, 0, 0, 0, 3]]},
        {"groups": [[-1, 0, 0, 0, 0, 2], [0, 0, 0, 0, 1, 2]]},
        {"groups": 7},
        {"frames": [["a.py", "main", 3, 9, 1]]},
        {"frames": [7]},
    ],
)
def test_what_cannot_be_in_version_1_is_refused(path, changes):
    write_old(path, 1, **changes)
    with pytest.raises(TraceError, match=r"old\.trace: run 0: "):
        read_trace(path)


@pytest.mark.parametrize("cpu", [-2, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_impossible_cpu_time_of_version_2_is_refused(path, cpu, monkeypatch):
    monkeypatch.setitem(CPU, 0, cpu)
    write_old(path, 2)
    with pytest.raises(TraceError, match=r"record 0 has a comp_cpu outside -1"):
        read_trace(path)
