"""Whatever happens to the records of a run, its results are returned."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from unittest import mock

import pytest

import bsplib
from bsplib.recording import recovery, spool, trace_document
from bsplib.recording.record_folder import lock_if_possible
from bsplib.recording.records import MAX_STACK, MAX_TEXT, Trace
from bsplib.recording.trace import read_trace, write_trace
from bsplib.sync_kinds import Kind
from tests.commands import run_bsp

TRACE = "out.bsp"


def count(bsp, supersteps, at=None, do=None):
    """Sync ``supersteps`` times; before one of them do something."""
    for number in range(supersteps):
        if number == at and do is not None:
            do(bsp)
        bsp.send((bsp.pid + 1) % bsp.nprocs, number)
        bsp.sync()
    return supersteps


def left(folder):
    return sorted(path.name for path in folder.iterdir())


# -- found before anything starts -----------------------------------------------------------------


def never(bsp):
    raise AssertionError("it was started")


@pytest.mark.procs(2)
def test_what_cannot_be_a_trace_is_found_before_anything_starts(run, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    before = left(tmp_path)
    for name, words in (
        ("folder", "is a folder; choose the name of a file"),
        ("device", "is a device; choose the name of a file"),
        ("pipe", "is a named pipe; choose the name of a file"),
        ("no/out.bsp", "there is no folder"),
        ("x" * 300, "File name too long"),
    ):
        with pytest.raises(bsplib.UsageError, match=f"^profile: .*{words}"):
            run(never, profile=tmp_path / name)
    assert left(tmp_path) == before


@pytest.mark.procs(2)
def test_a_disk_without_room_for_records_is_found_before_anything_starts(
    run, tmp_path, monkeypatch
):
    free = os.statvfs_result((4096, 4096, 100, 10, 10, 9, 9, 9, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: free)
    with pytest.raises(bsplib.UsageError, match=r"need at least .* bytes, and 40960 are free"):
        run(never, profile=tmp_path / TRACE)
    assert left(tmp_path) == []


@pytest.mark.procs(2)
def test_a_trace_damaged_between_two_runs_is_found_before_the_second_starts(run, tmp_path):
    run(count, 1, profile=tmp_path / TRACE)
    os.truncate(tmp_path / TRACE, 100)
    with pytest.raises(bsplib.TraceError, match=r"out\.bsp: is no trace.*remove it, or name"):
        run(never, profile=tmp_path / TRACE)
    assert left(tmp_path) == [TRACE]
    (tmp_path / TRACE).unlink()
    run(count, 1, profile=tmp_path / TRACE)
    assert len(read_trace(tmp_path / TRACE).runs) == 1


# -- what fails later -----------------------------------------------------------------------------


def fill_up(bsp):
    if bsp.pid == bsp.nprocs - 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


@pytest.mark.lengthy
@pytest.mark.procs(1, 3)
@pytest.mark.real_processes
@pytest.mark.fresh
def test_a_disk_that_gets_full_ends_the_recording_and_not_the_program(run, nprocs, tmp_path):
    many = 5 * spool.ROWS_AT_FIRST // 2
    with pytest.warns(bsplib.TraceWarning) as caught:
        results = run(count, many, 10, fill_up, profile=tmp_path / TRACE)
    assert results == [many] * nprocs
    (warned,) = caught
    path = tmp_path / TRACE
    assert str(warned.message) == (
        f"profile: process {nprocs - 1} stopped recording: File too large; {path} holds the "
        "supersteps that all processes recorded before"
    )
    assert warned.filename.endswith("conftest.py")
    (recorded,) = read_trace(tmp_path / TRACE).runs
    assert not recorded.complete
    assert "File too large" in recorded.meta["error"]
    assert len(recorded.records) == nprocs * spool.ROWS_AT_FIRST
    assert len(recorded.traffic) == (nprocs * spool.ROWS_AT_FIRST if nprocs > 1 else 0)
    assert left(tmp_path) == [TRACE]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_any_file_of_records_may_fail(tmp_path, monkeypatch, number):
    # On virtual processors, whose files are the only ones that get room here.
    effects = [mock.DEFAULT] * 100
    effects[number - 1] = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    fails = mock.Mock(wraps=os.posix_fallocate, side_effect=effects)
    monkeypatch.setattr(os, "posix_fallocate", fails)
    many = spool.ROWS_AT_FIRST + 5
    with pytest.warns(bsplib.TraceWarning, match="there was no room|No space left on device"):
        results = bsplib.run(count, many, nprocs=2, backend="sim", profile=tmp_path / TRACE)
    assert results == [many] * 2
    (recorded,) = read_trace(tmp_path / TRACE).runs
    assert not recorded.complete
    assert left(tmp_path) == [TRACE]


@pytest.mark.procs(2)
def test_a_folder_that_is_removed_costs_the_trace_and_not_the_results(run, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()

    def remove(_):
        shutil.rmtree(folder, ignore_errors=True)

    with pytest.warns(bsplib.TraceWarning, match="was removed while the program ran; no trace"):
        assert run(count, 4, 2, remove, profile=folder / TRACE) == [4, 4]
    assert not folder.exists()


@pytest.mark.procs(2)
def test_a_file_of_records_that_is_removed_costs_the_records(run, backend, tmp_path):
    def remove(_):
        for path in tmp_path.glob(".bsp-records-*/1.records"):
            path.unlink(missing_ok=True)

    may_be_elsewhere = backend == "mpi"  # on another host, where they can be looked for
    said = (
        "the records of process 1 are not there; look for folders"
        if may_be_elsewhere
        else "process 1 stopped recording: it has no file"
    )
    with pytest.warns(bsplib.TraceWarning, match=said):
        assert run(count, 4, 2, remove, profile=tmp_path / TRACE) == [4, 4]
    assert may_be_elsewhere or not read_trace(tmp_path / TRACE).runs[0].complete


@pytest.mark.procs(2)
def test_a_trace_that_cannot_be_written_can_be_recovered(run, tmp_path, monkeypatch, capfd):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("bsplib.recording.collect.write_trace", fail)
        with pytest.warns(bsplib.TraceWarning, match="no trace was written: No space") as caught:
            assert run(count, 4, profile=tmp_path / TRACE) == [4, 4]
    (folder,) = tmp_path.iterdir()
    assert str(caught[0].message).endswith(f"bsp recover {folder}")
    target, recovered = recovery.recover(folder)
    assert target == tmp_path / TRACE
    assert recovered.complete
    assert "error" not in recovered.meta
    assert len(read_trace(target).runs[0].records) == 10
    assert left(tmp_path) == [TRACE]


@pytest.mark.procs(2)
def test_a_fault_of_bsplib_itself_in_the_trace_does_not_cost_the_results(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr("bsplib.recording.recording.collect", lambda *_, **__: 1 / 0)
    with pytest.warns(bsplib.TraceWarning, match="no trace was written: division by zero; the rec"):
        assert run(count, 4, profile=tmp_path / TRACE) == [4, 4]


@pytest.mark.procs(2)
def test_ctrl_c_while_the_trace_is_written_says_where_the_records_are(run, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bsplib.recording.collect.write_trace", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(count, 4, profile=tmp_path / TRACE)
    monkeypatch.undo()
    (folder,) = tmp_path.iterdir()
    (note,) = caught.value.__notes__
    assert note.endswith(f"bsp recover {folder}")
    assert recovery.recover(folder)[1].complete


@pytest.mark.procs(2)
def test_a_trace_damaged_while_the_second_run_goes_on_is_left_and_named(run, tmp_path):
    run(count, 1, profile=tmp_path / TRACE)

    def damage(_):
        (tmp_path / TRACE).write_text("damaged")

    with pytest.warns(bsplib.TraceWarning, match="is not a trace.* the records are kept in"):
        assert run(count, 4, 2, damage, profile=tmp_path / TRACE) == [4, 4]
    assert (tmp_path / TRACE).read_text() == "damaged"
    (folder,) = tmp_path.glob(".bsp-records-*")
    recovery.recover(folder, tmp_path / "other.bsp")
    assert left(tmp_path) == ["other.bsp", TRACE]


@pytest.mark.procs(2)
def test_the_error_of_the_program_is_not_hidden_behind_that_of_its_trace(
    run, tmp_path, monkeypatch
):
    def broken(bsp):
        bsp.sync()
        raise ZeroDivisionError("the program's own")

    def fail(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("bsplib.recording.collect.write_trace", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("error", bsplib.TraceWarning)
        with pytest.raises(ZeroDivisionError, match="the program's own"):
            run(broken, profile=tmp_path / TRACE)


# -- what the reader would refuse -----------------------------------------------------------------


@pytest.mark.procs(2)
def test_names_that_are_too_long_and_stacks_that_are_too_deep_are_cut(record):
    def main(bsp):
        sys.setrecursionlimit(5000)
        inner.__code__ = inner.__code__.replace(co_qualname="f" * 5000)
        return inner(bsp, 1200)

    def inner(bsp, depth):
        return inner(bsp, depth - 1) if depth else bsp.sync()

    limit = sys.getrecursionlimit()
    try:
        recorded = record(main)
    finally:
        sys.setrecursionlimit(limit)
    (deep,) = [stack for stack in recorded.stacks if len(stack) > 2]
    assert len(deep) == MAX_STACK
    assert deep[0].function.endswith("main")
    assert [frame.function for frame in deep if "calls left out" in frame.function] == [
        "[203 calls left out]"
    ]
    assert len(deep[-1].function) <= MAX_TEXT
    assert deep[-1].function.startswith("fff")
    assert recorded.complete


@pytest.mark.procs(2)
def test_stacks_whose_json_is_too_long_lose_their_middle(record, monkeypatch):
    monkeypatch.setattr(trace_document, "MAX_JSON_BYTES", 13_000)

    def down(bsp, depth):
        if depth:
            down(bsp, depth - 1)
        bsp.sync()

    recorded = record(lambda bsp: down(bsp, 90))
    assert recorded.complete
    assert max(map(len, recorded.stacks)) == 10
    assert len(recorded.records) == 2 * 92


@pytest.mark.lengthy
@pytest.mark.procs(3)
def test_a_trace_with_too_many_groups_keeps_the_beginning_of_the_run(run, tmp_path, monkeypatch):
    def main(bsp):
        time.sleep(0.05)  # however long the first superstep takes, the next ones stay
        for _ in range(60):
            with bsp.split(0 if bsp.pid != 1 else 1) as pair, pair.partition([1, pair.nprocs]):
                pass
            bsp.sync()

    run(main, profile=tmp_path / "whole.bsp")
    (whole,) = read_trace(tmp_path / "whole.bsp").runs
    monkeypatch.setattr(trace_document, "MAX_JSON_BYTES", 9_500)
    with pytest.warns(bsplib.TraceWarning, match="the end of the run was left out, since .*9500; "):
        run(main, profile=tmp_path / TRACE, lines=False)
    (recorded,) = read_trace(tmp_path / TRACE).runs
    assert not recorded.complete
    assert "left out" in recorded.meta["error"]
    assert len(whole.groups) / 8 < len(recorded.groups) < len(whole.groups) / 2
    assert len(whole.records) / 8 < len(recorded.records) < len(whole.records) / 2
    members = {group.members for group in recorded.groups}
    assert members <= {group.members for group in whole.groups}


@pytest.mark.procs(2)
def test_a_trace_that_no_reader_would_take_is_not_written(run, tmp_path, monkeypatch):
    monkeypatch.setattr(trace_document, "MAX_JSON_BYTES", 200)
    older = b"PK\x03\x04" + bytes(26) + b"trace.json and more"
    (tmp_path / TRACE).write_bytes(older)
    with pytest.warns(bsplib.TraceWarning, match="trace.json would have .* more than 200"):
        assert run(count, 2, profile=tmp_path / TRACE) == [2, 2]
    assert (tmp_path / TRACE).read_bytes() == older


def test_a_run_in_which_no_time_passed_is_left_out_if_its_trace_would_be_too_long(
    tmp_path, monkeypatch
):
    def main(bsp):
        bsp.charge(0)
        for _ in range(3):
            bsp.sync()
        return bsp.pid

    path, free = tmp_path / TRACE, bsplib.Machine("free", "none", g=0, l=0)
    monkeypatch.setattr(trace_document, "MAX_JSON_BYTES", 200)
    with pytest.warns(bsplib.TraceWarning, match="trace.json would have .* more than 200"):
        done = bsplib.run(main, nprocs=2, backend="sim", machine=free, profile=path)
    assert done == [0, 1]
    assert not path.exists()


def test_a_time_that_no_trace_can_hold_ends_the_recording(tmp_path):
    def main(bsp, seconds):
        bsp.sync()
        bsp.charge(seconds)
        bsp.sync()
        return bsp.pid

    for seconds in (1e8, 4e9):  # the clock itself goes no further than 2^62 ns
        path = tmp_path / f"{seconds}.bsp"
        with pytest.warns(bsplib.TraceWarning, match="stopped recording"):
            assert bsplib.run(main, seconds, nprocs=2, backend="sim", profile=path) == [0, 1]
        (recorded,) = read_trace(path).runs
        assert recorded.records["superstep"].tolist() == [0, 0]


# -- when the caller is killed --------------------------------------------------------------------

ENDLESS = """
import sys, time
import bsplib

def main(bsp):
    for number in range(10**9):
        bsp.sync()
        if number == 100 and bsp.pid == 0:
            print("recorded", flush=True)
        time.sleep(0.0005)

if __name__ == "__main__":
    bsplib.run(main, nprocs=2, backend=sys.argv[1], profile="out.bsp")
"""


@pytest.fixture
def endless(script, tmp_path):
    """Start a program that records until it is ended; return it once it has recorded."""
    started = []

    def start(backend):
        line = [sys.executable, script(ENDLESS), backend]
        program = subprocess.Popen(
            line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(program)
        assert program.stdout.readline() == "recorded\n"
        return program

    yield start
    for program in started:
        program.kill()
        program.communicate()


def await_unlocked(folder):
    """Wait until the processes of a killed run have ended too."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(bsplib.TraceError):
            return recovery.recover(folder)
        time.sleep(0.02)
    raise AssertionError("the folder stays locked")


@pytest.fixture
def _hangup_not_ignored():
    """What nohup starts has SIGHUP ignored, and then bsplib leaves it so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.not_on_mpi("mpi/test_faults.py has the tests of ranks")
@pytest.mark.usefixtures("_hangup_not_ignored")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_the_records_of_a_killed_program_make_a_trace(endless, backend, tmp_path, name):
    program = endless(backend)
    (folder,) = tmp_path.glob(".bsp-records-*")
    with pytest.raises(bsplib.TraceError, match="the run that records here is still running"):
        recovery.recover(folder)
    program.send_signal(signal.Signals[name])
    said = program.communicate(timeout=30)[1]
    assert program.returncode == -signal.Signals[name]
    told = (
        f"bsp: ended by {name}; the records are kept in {folder}; make a trace of them "
        f"(with --out FILE in another file) by: bsp recover {folder}\n"
    )
    assert said == ("" if name == "SIGKILL" else told)
    target, run = await_unlocked(folder)
    assert target == tmp_path / TRACE
    assert not folder.exists()
    (recorded,) = read_trace(target).runs
    assert not recorded.complete
    assert recorded.meta["error"] == "the program was killed while it recorded"
    assert recorded.meta["program"] == "script.py"
    assert len(recorded.records) == len(run.records) >= 200
    first, second = (recorded.records[recorded.records["pid"] == pid] for pid in (0, 1))
    assert first["superstep"].tolist() == second["superstep"].tolist()
    assert set(recorded.records["kind"]) == {Kind.SYNC}


@pytest.mark.not_on_mpi("mpi/test_faults.py has the tests of ranks")
@pytest.mark.procs(2)
@pytest.mark.real_processes
def test_a_process_that_is_ended_by_a_signal_prints_no_notice(run, tmp_path, capfd):
    def main(bsp):
        if bsp.pid == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        bsp.sync()

    with pytest.raises(bsplib.ProcessDiedError, match="process 1 was killed by SIGTERM"):
        run(main, profile=tmp_path / TRACE)
    assert "bsp recover" not in capfd.readouterr().err
    assert left(tmp_path) == [TRACE]


@pytest.mark.not_on_mpi("a program that no launcher has started has no ranks")
@pytest.mark.usefixtures("_hangup_not_ignored")
def test_a_signal_that_the_program_handles_itself_stays_its_own(execute, backend, tmp_path):
    done = execute(
        f"""
        import os, signal, sys
        import bsplib

        signal.signal(signal.SIGTERM, lambda *_: print("mine", file=sys.stderr))
        def main(bsp):
            bsp.sync()
            return 5

        if __name__ == "__main__":
            print(bsplib.run(main, nprocs=1, backend={backend!r}, profile=sys.argv[1]))
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
            os.kill(os.getpid(), signal.SIGTERM)
        """,
        str(tmp_path / TRACE),
    )
    assert (done.stdout, done.stderr) == ("[5]\n", "mine\n")


def test_a_program_killed_while_it_writes_its_trace_leaves_the_records_and_no_other_file(
    execute, tmp_path
):
    path = tmp_path / "there" / TRACE
    path.parent.mkdir()
    done = execute(
        """
        import os, signal, sys
        import bsplib
        from bsplib.recording import trace

        def main(bsp):
            bsp.sync()

        if __name__ == "__main__":
            trace._reader = lambda path: os.kill(os.getpid(), signal.SIGKILL)
            bsplib.run(main, nprocs=2, backend="sim", profile=sys.argv[1])
        """,
        str(path),
    )
    assert done.returncode == -signal.SIGKILL
    (folder,) = path.parent.iterdir()
    recovery.recover(folder)
    assert left(path.parent) == [TRACE]
    assert read_trace(path).runs[0].complete


# -- bsp recover ----------------------------------------------------------------------------------


@pytest.fixture
def records(tmp_path, monkeypatch):
    """The folder of a run whose trace could not be written."""

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("bsplib.recording.collect.write_trace", fail)
    with pytest.warns(bsplib.TraceWarning):
        bsplib.run(count, 4, nprocs=2, backend="sim", profile=tmp_path / TRACE)
    monkeypatch.undo()
    (folder,) = tmp_path.glob(".bsp-records-*")
    return folder


def test_a_folder_of_which_another_command_made_the_trace_meanwhile_is_no_running_run(
    records, tmp_path, monkeypatch
):
    def lock(folder):
        monkeypatch.undo()
        assert run_bsp("recover", folder).exit_code == 0
        return lock_if_possible(folder)

    monkeypatch.setattr(recovery, "lock_if_possible", lock)
    done = run_bsp("recover", records, "--out", tmp_path / "late.bsp")
    assert done.output == (
        f"Error: {records} was removed meanwhile: its records have become a trace\n"
    )


def test_recover_replaces_no_file_unless_it_is_named(records, tmp_path):
    (tmp_path / TRACE).write_text("of another program")
    done = run_bsp("recover", records)
    assert done.output == (
        f"Error: recover: {tmp_path / TRACE} exists and is not a trace; name another file, or "
        "remove it\n"
    )
    write_trace(tmp_path / "other.bsp", Trace(()))
    (tmp_path / "other.bsp").replace(tmp_path / TRACE)
    done = run_bsp("recover", records)
    assert done.exit_code == 1
    assert done.output == (
        f"Error: recover: {tmp_path / TRACE} exists already; give another file by --out\n"
    )
    assert run_bsp("recover", records, "--out", tmp_path / TRACE).exit_code == 0
    assert len(read_trace(tmp_path / TRACE).runs) == 1


def test_recover_refuses_what_is_no_folder_of_records(tmp_path, records):
    (tmp_path / "empty").mkdir()
    done = run_bsp("recover", tmp_path / "empty")
    assert done.exit_code == 1
    assert "empty is no folder of records: run.json cannot be read" in done.output
    for junk in ("", "[]", '{"format": 1}', "[" * 100_000, '{"format": "bsplib records"}'):
        (records / "run.json").write_text(junk)
        done = run_bsp("recover", records)
        assert done.exit_code == 1
        assert "is no folder of records" in done.output
        assert "Traceback" not in done.output


@pytest.mark.parametrize("told", ["1e999", "-1", '"1"', "true", "NaN"])
def test_an_import_that_cannot_be_true_is_a_sentence(records, told):
    with (records / "1.definitions").open("a") as file:
        file.write(f'["imports", [[1, 1], [1, {told}]]]\n')
    with pytest.raises(bsplib.TraceError, match="records of process 1 are damaged: it noted an"):
        recovery.recover(records)
