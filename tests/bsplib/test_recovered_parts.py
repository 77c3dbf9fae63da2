"""Processes that cannot see the folder of the trace record in parts, which become one trace."""

from __future__ import annotations

import errno
import os
import signal
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.backends import table
from bsplib.backends.base import Alignment
from bsplib.backends.stream import StreamPort
from bsplib.backends.table import own_cores
from bsplib.recording import parts, recovery
from bsplib.recording.record_folder import lock_if_possible
from bsplib.recording.trace import read_trace
from tests.commands import run_bsp

from .pipes_backend import PIPES

pytestmark = pytest.mark.real_processes

SPREAD = "spread"
TRACE = "out.bsp"


@pytest.fixture(autouse=True)
def hosts(tmp_path, monkeypatch):
    """Let each process be on a host of its own; return the folder of their temporary files."""
    table.register(PIPES._replace(name=SPREAD, is_spread=True))
    temporary = tmp_path / "hosts"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(parts, "can_see", lambda _: False)
    yield temporary
    table._backends.pop(SPREAD)


@pytest.fixture
def trace(tmp_path):
    return tmp_path / TRACE


def run(main, *args, nprocs=3, **more):
    return bsplib.run(main, *args, nprocs=nprocs, backend=SPREAD, **more)


def ring(bsp, supersteps, end=None):
    """Send to the right; before the last superstep do something."""
    for number in range(supersteps):
        if end is not None and number == supersteps - 1:
            end(bsp)
        bsp.send((bsp.pid + 1) % bsp.nprocs, np.zeros(10 * number))
        bsp.sync()
    return bsp.pid


def fail_in_process_1(bsp):
    if bsp.pid == 1:
        raise ZeroDivisionError("here")


def be_killed_in_process_1(bsp):
    if bsp.pid == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def left_parts(trace, hosts, monkeypatch):
    """The parts of a run of 3 processes, none of which came to the caller."""
    with monkeypatch.context() as patch:
        patch.setattr(parts, "with_part", lambda report, *_: report)
        with pytest.warns(bsplib.TraceWarning, match="processes 0 to 2 stopped recording"):
            run(ring, 4, profile=trace)
    return sorted(hosts.iterdir(), key=lambda part: part.name[-1])


# -- parts that come to the caller ----------------------------------------------------------------


@pytest.mark.lengthy
def test_the_parts_become_the_trace_that_processes_beside_it_write(tmp_path, hosts, monkeypatch):
    run(ring, 5, profile=tmp_path / "parts.bsp", lines=False)
    assert names(hosts) == []
    monkeypatch.undo()
    run(ring, 5, profile=tmp_path / "beside.bsp", lines=False)
    (of_parts,), (beside,) = (
        read_trace(tmp_path / f"{name}.bsp").runs for name in ("parts", "beside")
    )
    assert of_parts.complete
    assert of_parts.stacks == beside.stacks
    assert of_parts.traffic.tolist() == beside.traffic.tolist()
    for field in ("pid", "group", "superstep", "kind", "stack"):
        assert of_parts.records[field].tolist() == beside.records[field].tolist()
    assert names(tmp_path) == ["beside.bsp", "hosts", "parts.bsp"]


def test_some_processes_may_write_beside_the_trace_and_others_into_parts(trace, hosts, monkeypatch):
    opened = parts.opened

    def opened_there(destination, pid):
        monkeypatch.setattr(parts, "can_see", lambda _: pid == 0)
        return opened(destination, pid)

    monkeypatch.setattr("bsplib.recording.parts.opened", opened_there)
    assert run(ring, 4, profile=trace) == [0, 1, 2]
    (recorded,) = read_trace(trace).runs
    assert recorded.complete
    assert len(recorded.records) == 15
    assert names(hosts) == []


@pytest.mark.lengthy
def test_a_process_with_many_records_sends_all_of_them(trace):
    def many(bsp):
        for _ in range(3000):  # its file grows twice
            bsp.sync()

    run(many, nprocs=2, profile=trace)
    (recorded,) = read_trace(trace).runs
    assert recorded.complete
    assert len(recorded.records) == 2 * 3001


@pytest.mark.lengthy
def test_the_parts_of_a_run_that_failed_become_a_trace_of_its_whole_supersteps(trace, hosts):
    with pytest.raises(ZeroDivisionError):
        run(ring, 4, fail_in_process_1, profile=trace)
    (recorded,) = read_trace(trace).runs
    assert not recorded.complete
    assert len(recorded.records) == 9
    assert names(hosts) == []


@pytest.mark.lengthy
def test_a_later_run_is_added_to_the_trace(trace):
    run(ring, 2, profile=trace)
    run(ring, 3, profile=trace)
    assert [len(each.records) for each in read_trace(trace).runs] == [9, 12]


def test_a_part_that_finds_no_room_beside_the_trace_costs_the_records(trace, monkeypatch):
    write_bytes = Path.write_bytes

    def fill_disk(path, content):
        if path.name == "1.traffic":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_bytes(path, content)

    monkeypatch.setattr(Path, "write_bytes", fill_disk)
    with pytest.warns(bsplib.TraceWarning, match="process 1 stopped recording: No space left"):
        assert run(ring, 3, profile=trace) == [0, 1, 2]
    assert not read_trace(trace).runs[0].complete


def test_a_part_that_cannot_be_made_costs_the_records_and_not_the_results(trace, hosts):
    hosts.rmdir()
    with pytest.warns(bsplib.TraceWarning, match="processes 0 to 2 stopped recording: it has no"):
        assert run(ring, 3, profile=trace) == [0, 1, 2]


def test_other_users_cannot_read_a_part(left_parts):
    assert {part.stat().st_mode & 0o777 for part in left_parts} == {0o700}


# -- parts that stay on their hosts ---------------------------------------------------------------


def test_the_records_of_a_killed_process_stay_on_its_host_and_can_be_given(trace, hosts, tmp_path):
    with (
        pytest.warns(bsplib.TraceWarning, match="no trace was written: the rec") as caught,
        pytest.raises(bsplib.ProcessDiedError),
    ):
        run(ring, 4, be_killed_in_process_1, profile=trace)
    (folder,), (part,) = tmp_path.glob(".bsp-records-*"), hosts.iterdir()
    (text,) = [str(each.message) for each in caught if each.category is bsplib.TraceWarning]
    assert "the records of process 1 are not there; look for folders bsp-part-" in text
    assert part.name.removesuffix("1") in text
    assert f"bsp recover {folder} " in text
    assert not trace.exists()

    with pytest.raises(bsplib.TraceError, match="the records of process 1 are not there"):
        recovery.recover(folder)
    done = run_bsp("recover", folder, part)
    assert done.output == f"wrote {trace}: 3 processes, 3 supersteps: bsp report {trace}\n"
    (recorded,) = read_trace(trace).runs
    assert not recorded.complete
    assert recorded.meta["error"] == "the program was killed while it recorded"
    assert recorded.meta["backend"] == SPREAD
    assert not folder.exists()
    assert not part.exists()


def test_parts_of_a_run_that_ended_become_a_complete_trace(left_parts, trace):
    done = run_bsp("recover", *reversed(left_parts), "--out", trace)
    assert done.exit_code == 0, done.output
    (recorded,) = read_trace(trace).runs
    assert (recorded.complete, recorded.absent) == (True, ())
    assert {"error", "absent"}.isdisjoint(recorded.meta)
    assert len(recorded.records) == 15


@pytest.mark.lengthy
def test_parts_of_different_runs_are_told_apart(left_parts, trace, hosts, monkeypatch):
    monkeypatch.setattr(parts, "with_part", lambda report, *_: report)
    with pytest.warns(bsplib.TraceWarning):
        run(ring, 4, profile=trace)
    (other,) = (part for part in hosts.glob("*-1") if part not in left_parts)
    done = run_bsp("recover", left_parts[0], other, left_parts[2], "--out", trace)
    assert done.exit_code == 1
    assert done.output.startswith(
        f"Error: {left_parts[0]} and {other} are parts of different runs, started 20"
    )
    assert not trace.exists()


@pytest.mark.lengthy
def test_a_trace_of_some_parts_names_the_processes_that_are_absent(left_parts, trace):
    done = run_bsp("recover", left_parts[1], "--out", trace)
    assert done.exit_code == 0, done.output
    missing = "the records of processes 0, 2 are missing, and count as 0 in all figures"
    assert missing in done.output
    (recorded,) = read_trace(trace).runs
    assert (recorded.nprocs, recorded.absent, recorded.complete) == (3, (0, 2), False)
    assert recorded.records["pid"].tolist() == 5 * [1]
    assert missing in recorded.meta["error"]
    report = run_bsp("report", trace)
    assert (report.exit_code, missing in " ".join(report.output.split())) == (0, True)
    page = trace.with_suffix(".html")
    assert run_bsp("view", trace, "--html", page).exit_code == 0
    assert missing in page.read_text()


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "command",
    [
        ["predict", "--machine", "all"],
        ["compare", "{whole}"],
        ["export", "--format", "csv", "--out", "{out}"],
        ["export", "--format", "chrome", "--out", "{out}"],
        ["predict", "--machine", "shared-memory"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_every_command_says_that_processes_are_absent(command, left_parts, trace, tmp_path):
    whole = tmp_path / "whole.bsp"
    assert run_bsp("recover", left_parts[1], "--out", trace).exit_code == 0
    # The first one has kept its part.
    assert run_bsp("recover", *left_parts, "--out", whole).exit_code == 0
    name, *others = command
    words = [each.format(whole=whole, out=tmp_path / "out") for each in others]
    done = run_bsp(name, trace, *words)
    missing = "the records of processes 0, 2 are missing, and count as 0 in all figures"
    assert f"Warning: {trace.name}, run 1: {missing}" in done.stderr
    if name == "compare":
        assert "the run before has no records of some processes" in done.output


@pytest.mark.lengthy
def test_processes_of_a_sub_group_may_be_absent(trace, hosts, monkeypatch):
    def main(bsp):
        with bsp.partition([1, bsp.nprocs]) as sub:
            sub.send(0, bsp.pid)
            sub.sync()
        bsp.sync()

    monkeypatch.setattr(parts, "with_part", lambda report, *_: report)
    with pytest.warns(bsplib.TraceWarning):
        run(main, profile=trace)
    first, second, _ = sorted(hosts.iterdir(), key=lambda part: part.name[-1])
    assert run_bsp("recover", first, second, "--out", trace).exit_code == 0
    (recorded,) = read_trace(trace).runs
    assert recorded.absent == (2,)
    assert {recorded.groups[group].size for group in recorded.records["group"]} == {1, 2, 3}
    for ending in ("csv", "dot", "json", "html"):
        out = str(trace.with_suffix(f".{ending}"))
        done = run_bsp("export", trace, "--out", out)
        assert done.exit_code == 0, done.output


def test_folders_without_any_records_are_refused(left_parts, trace):
    for file in left_parts[1].glob("1.*"):
        file.unlink()
    done = run_bsp("recover", left_parts[1], "--out", trace)
    assert done.exit_code == 1
    assert "the records of all 3 processes are missing; give the folders" in done.output


def test_a_part_that_is_given_twice_is_named(left_parts, trace):
    done = run_bsp("recover", *left_parts, left_parts[1], "--out", trace)
    assert done.exit_code == 1
    assert f"{left_parts[1]} and {left_parts[1]} both have the records of process 1" in done.output


def test_a_run_that_still_records_is_not_recovered(left_parts, trace):
    held = lock_if_possible(left_parts[1])
    try:
        done = run_bsp("recover", *left_parts, "--out", trace)
    finally:
        os.close(held)
    assert done.exit_code == 1
    why = "the run that records here is still running, or another bsp recover reads it"
    assert f"{left_parts[1]}: {why}" in done.output
    assert run_bsp("recover", *left_parts, "--out", trace).exit_code == 0


@pytest.mark.lengthy
def test_recover_refuses_what_is_no_part(left_parts, tmp_path):
    done = run_bsp("recover", tmp_path, "--out", tmp_path / TRACE)
    assert done.exit_code == 1
    assert f"{tmp_path} is no folder of records" in done.output
    done = run_bsp("recover", *left_parts, "--out", tmp_path)
    assert done.exit_code != 0
    done = run_bsp("recover", *left_parts, "--out", tmp_path / "no" / TRACE)
    assert "out: there is no folder" in done.output


@pytest.mark.parametrize(
    "host", ["[1, 2, 3]", '["a", -1, 1]', '["a", 1]', '["a", 1.5, 1]', '["a", 1, "b"]', "7"]
)
def test_a_host_that_cannot_be_one_is_refused(left_parts, trace, host):
    with (left_parts[0] / "0.definitions").open("a") as file:
        file.write(f'["host", {host}]\n')
    done = run_bsp("recover", *left_parts, "--out", trace)
    assert done.exit_code == 1
    assert "the records of process 0 are damaged" in done.output
    assert "Traceback" not in done.output


# -- hosts and their clocks -----------------------------------------------------------------------


BOUND_NS = 10**8


@pytest.fixture
def skewed(monkeypatch):
    """Let the stamp of a process be wrong for the others, by less than the bound that is told."""
    found = [Alignment("a", 0, 0), Alignment("b", 0, BOUND_NS), Alignment("a", 0, 0)]
    ahead_ns = (0, BOUND_NS - 10**6, 0)
    exchange = StreamPort.exchange

    def exchange_stamps(port, records, note, stamp):
        ahead = ahead_ns[port.members[port.pid]]
        arrivals = exchange(port, records, note, stamp + ahead)
        port.released -= ahead
        return arrivals

    monkeypatch.setattr(StreamPort, "exchange", exchange_stamps)
    monkeypatch.setattr(StreamPort, "align_clocks", lambda port, *, again: found[port.pid])


@pytest.mark.lengthy
def test_the_trace_names_the_hosts_and_the_error_of_their_clocks(trace, skewed):
    run(ring, 3, profile=trace)
    (recorded,) = read_trace(trace).runs
    assert recorded.meta["hosts"] == ["a", "b", "a"]
    assert recorded.meta["clock_bounds_s"] == {"a": 0.0, "b": 0.1}
    assert recorded.meta["cores"] == 2 * own_cores()


@pytest.mark.lengthy
def test_stamps_that_are_wrong_within_the_bound_make_a_sound_trace(trace, skewed):
    def main(bsp):
        for _ in range(200):
            bsp.sync()
        with bsp.partition([1, bsp.nprocs]) as sub:
            sub.sync()
        return bsp.time()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert min(run(main, profile=trace)) > 0
    (recorded,) = read_trace(trace).runs  # which checks the order of times
    assert recorded.complete
    records = recorded.records[recorded.records["group"] == 0]
    for superstep in range(200):
        rows = records[records["superstep"] == superstep]
        assert (rows["released"] <= rows["end"]).all()
        assert rows["arrive"].max() <= rows["released"].min() + BOUND_NS


def test_clocks_that_went_apart_during_the_run_widen_the_bound(trace, monkeypatch):
    def align(port, *, again):
        assert again
        port.calls = getattr(port, "calls", 0) + 1
        return Alignment("a", 1000 * port.pid * (port.calls - 1), 50)

    monkeypatch.setattr(StreamPort, "align_clocks", align)
    run(ring, 2, profile=trace)
    (recorded,) = read_trace(trace).runs
    assert recorded.meta["clock_bounds_s"] == {"a": pytest.approx(2050e-9)}


@pytest.mark.lengthy
def test_a_process_that_ended_before_it_named_its_host_has_an_unknown_one(left_parts, trace):
    with (left_parts[1] / "1.definitions").open("a") as file:
        file.write('["host", ["b", 5, 3]]\n')
    assert run_bsp("recover", *left_parts, "--out", trace).exit_code == 0
    (recorded,) = read_trace(trace).runs
    assert recorded.meta["hosts"] == ["unknown", "b", "unknown"]
    assert recorded.meta["cores"] == 3


def test_where_nothing_is_recorded_clocks_are_measured_only_if_they_have_not_been(monkeypatch):
    asked = []
    monkeypatch.setattr(StreamPort, "align_clocks", lambda _, *, again: asked.append(again) or None)
    run(lambda bsp: bsp.sync() or None, nprocs=1)
    assert run(lambda _: asked, nprocs=1) == [[False]]
