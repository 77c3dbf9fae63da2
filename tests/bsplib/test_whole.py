"""A long run that ended well is collected without unpacking its records, and reads the same."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from bsplib.errors import TraceError
from bsplib.recording import collect as collecting
from bsplib.recording import spool as spooling
from bsplib.recording.collect import collect
from bsplib.recording.lifetimes import Caller
from bsplib.recording.packing import StoredTable
from bsplib.recording.records import UNMEASURED, Frame, GroupInfo, Run, Trace, root_group
from bsplib.recording.spool import Spool
from bsplib.recording.trace import read_trace, write_archive, write_trace
from bsplib.sync_kinds import Kind
from tests.recordings import record_run
from tests.scripted import append_row

FRAMES = [Frame("a.py", f"f{number}", 10 * number, 10 * number + 1) for number in range(3)]


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """Chunks of eight rows."""
    monkeypatch.setattr(spooling, "ROWS_AT_FIRST", 4)
    monkeypatch.setattr(spooling, "CHUNK_ROWS", 8)


def write(folder, pid, count):
    """Record supersteps of two groups and three stacks, which each process numbers anew."""
    spool = Spool(folder, pid)
    spool.define("group", root_group(2).to_json())
    spool.define("group", GroupInfo(0, 0, 0, pid, range(pid, pid + 1)).to_json())
    for at in range(3):
        spool.define("stack", (FRAMES[(at + pid) % 3],))
    spool.define("noted", {"began": 1000, "started": 100, "ready": 900, "finished": 5000})
    spool.define("measured", {"cpu": "", "ready": "no file"})
    samples = [(20 + at, at % 3, at % 3, 7, 2) for at in range(count)]
    spool.define(
        "samples", [[(FRAMES[(at + pid) % 3],) for at in range(3)], samples], is_needed=False
    )
    rows = spool.records.rows
    for number in range(count):
        if number % 4 == 0:
            append_row(spool.traffic.rows, rows.before + rows.count, 1 - pid, 0, number, 1)
        times = (10 * number + 1, 10 * number + 2, 10 * number + 3, 10 * number + 4)
        place = (pid, number % 2, number, Kind.SYNC, number % 3)
        append_row(rows, *place, *times, 0, 0, 0, 0, *UNMEASURED)
    spool.close()


def collected(folder, **given):
    """The run of the two processes that recorded in a folder."""
    given = {"complete": True, "meta": {}, "caller": Caller(is_virtual=False, called=10)} | given
    return collect([folder] * 2, **given)


@pytest.mark.parametrize("counts", [(1, 1), (8, 8), (9, 30), (40, 17)])
def test_stored_chunks_read_as_records_that_were_looked_at(tmp_path, monkeypatch, counts):
    for pid, count in enumerate(counts):
        write(tmp_path, pid, count)
    stored = collected(tmp_path).run
    assert isinstance(stored.table("records"), StoredTable) == (max(counts) > 8)
    monkeypatch.setattr(collecting, "_stored", collecting._looked_at)
    looked_at = collected(tmp_path).run
    write_trace(tmp_path / "one.bsp", Trace((stored,)))
    (again,) = read_trace(tmp_path / "one.bsp").runs  # its chunks are copied once more
    write_trace(tmp_path / "two.bsp", Trace((again, looked_at)))
    for run in (stored, *read_trace(tmp_path / "two.bsp").runs):
        for field in dataclasses.fields(Run):
            expected, found = (getattr(each, field.name) for each in (looked_at, run))
            if isinstance(expected, np.ndarray):
                assert np.array_equal(expected, found)
            elif field.name != "derived":
                assert expected == found, field.name


def test_samples_name_the_stacks_of_the_run(tmp_path):
    for pid in range(2):
        write(tmp_path, pid, 3)
    run = collected(tmp_path).run
    names = [run.stacks[stack][0].function for stack in run.samples["stack"]]
    assert names == ["f0", "f1", "f2", "f1", "f2", "f0"]
    assert run.samples["pid"].tolist() == [0, 0, 0, 1, 1, 1]


def test_samples_that_cannot_be_are_left_out(tmp_path):
    write(tmp_path, 0, 3)
    write(tmp_path, 1, 0)
    wrong = [(-1, 0, 0, 1, 0), (2**60, 0, 0, 1, 0), (5, 3, 0, 1, 0), (5, -1, 0, 1, 0)]
    wrong += [(5, 0, 5, 1, 0), (5, 0, 0, -1, 0), (5, 0, 0, 1, 2)]
    definitions = tmp_path / "0.definitions"
    told = definitions.read_text()
    more = json.dumps([*wrong, (5, 1, 1, 7, 2)])[:-1]
    definitions.write_text(told.replace("[[20, 0,", f"{more}, [20, 0,"))
    run = collect([tmp_path] * 2, complete=True, meta={}).run
    written = [(0, 20 + at, at, at, 7, 2) for at in range(3)]
    assert run.samples.tolist() == [(0, 5, 1, 1, 7, 2), *written]


def test_the_records_of_a_process_that_stopped_recording_are_looked_at(tmp_path):
    for pid in range(2):
        write(tmp_path, pid, 20)
    spool = Spool(tmp_path, 1)
    spool.stop(OSError(28, "full"))
    found = collected(tmp_path)
    assert found.lost == {1: "No space left on device"}
    assert not isinstance(found.run.table("records"), StoredTable)
    (tmp_path / "1.records").unlink()
    assert collected(tmp_path).lost == {1: "it has no file of records"}


@pytest.mark.parametrize("numberings", [7, [[[0]]], [[[0], [9]]], [[[1], [0]]], [[[-1], [0]]]])
def test_numberings_that_cannot_be_are_refused(tmp_path, monkeypatch, numberings):
    write(tmp_path, 0, 9)
    write(tmp_path, 1, 9)
    if numberings == [[[1], [0]]]:  # positions that are there, and not all that the chunk has
        numberings = [[[0], []]]
    monkeypatch.setattr("bsplib.recording.trace_document.numberings_in", lambda _: numberings)
    write_archive(tmp_path / "run.bsp", Trace((collected(tmp_path).run,)))
    with pytest.raises(TraceError, match=r"run 0: .*numbering"):
        read_trace(tmp_path / "run.bsp")


@pytest.mark.lengthy
def test_a_run_whose_processes_go_different_ways_has_the_stacks_of_each(tmp_path):
    def left(bsp):
        bsp.sync()

    def right(bsp):
        bsp.sync()

    def main(bsp):
        for number in range(40):
            (left if (number + bsp.pid) % 2 else right)(bsp)

    run = record_run(tmp_path / "run.bsp", main, nprocs=2)
    for record in run.records[run.records["kind"] == Kind.SYNC]:
        ways = "left" if (record["superstep"] + record["pid"]) % 2 else "right"
        assert run.stacks[record["stack"]][-1].function.endswith(ways)
