"""The errors that the caller of run gets when processes fail."""

from __future__ import annotations

import os
import signal
import traceback
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.running.failures import Failure, raise_first

from .neighbours import line_of

HERE = Path(bsplib.__file__).parent


def raised_by(run, main, *args, kind=Exception):
    with pytest.raises(kind) as raised:
        run(main, *args)
    return raised.value


def shown(error):
    return "".join(traceback.format_exception(error))


# -- notes -------------------------------------------------------------------------------------


@pytest.mark.procs(4)
def test_an_exception_has_a_note_with_process_superstep_and_line(run):
    def main(bsp):
        bsp.sync()
        bsp.sync()
        if bsp.pid == 2:
            {}["key"]
        bsp.sync()

    error = raised_by(run, main, kind=KeyError)
    at = line_of(main, '{}["key"]')
    assert error.__notes__ == [f"[process 2, superstep 2, test_failures.py:{at}]"]


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("wrong", ["[process 2 is on host far]"]),
        ("process 2 on host far was killed", []),
    ],
)
def test_the_host_of_a_process_is_told_once(text, notes):
    error = bsplib.BspError(text)
    error.pid, error.superstep = 2, 1
    with pytest.raises(bsplib.BspError) as raised:
        raise_first({2: Failure(2, 1, error, "a.py:3")}, {1: "near", 2: "far"})
    assert getattr(raised.value, "__notes__", []) == notes


class Unreadable:
    """An argument that cannot be unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def test_an_argument_that_cannot_be_unpickled_is_an_error_before_the_first_superstep():
    with bsplib.Pool(1) as pool, pytest.raises(ValueError, match="no number") as raised:
        pool.run(lambda bsp, x: x, Unreadable())
    assert raised.value.__notes__ == ["[process 0, superstep 0, before main]"]


@pytest.mark.procs(4)
def test_the_first_of_several_errors_is_raised_and_the_others_are_counted(run):
    def main(bsp):
        bsp.sync()
        if bsp.pid:
            raise RuntimeError(bsp.pid)
        bsp.sync()

    error = raised_by(run, main, kind=RuntimeError)
    at = line_of(main, "raise RuntimeError")
    assert error.args == (1,)
    assert error.__notes__ == [
        f"[process 1, superstep 1, test_failures.py:{at}; 2 more processes failed]"
    ]


@pytest.mark.procs(2)
def test_an_error_of_bsplib_says_its_place_once(run):
    def main(bsp):
        bsp.put(7, 1, np.zeros(1))

    error = raised_by(run, main, kind=bsplib.ProcessRangeError)
    assert str(error).count("process 0, superstep 0") == 1
    assert error.__notes__ == ["[1 more process failed]"]


@pytest.mark.procs(2)
def test_the_line_is_that_of_the_program_where_a_library_raises(run):
    def main(bsp):
        np.linalg.inv(np.zeros((2, 3)))

    error = raised_by(run, main, kind=np.linalg.LinAlgError)
    assert f"test_failures.py:{line_of(main, 'linalg.inv')}; 1 more" in error.__notes__[0]


@pytest.mark.procs(2)
def test_the_superstep_is_that_of_the_whole_run_in_a_sub_group_too(run):
    def main(bsp):
        bsp.sync()
        with bsp.partition([1, 2]) as sub:
            for _ in range(5):
                sub.sync()
            if bsp.pid == 1:
                raise OSError

    assert "[process 1, superstep 1, " in raised_by(run, main, kind=OSError).__notes__[0]


class StubbornError(Exception):
    """An exception that takes no notes, and says nothing."""

    def add_note(self, note):
        raise TypeError("no")

    def __str__(self):
        raise RuntimeError("no words")


class ImpostorError(Exception):
    """An exception that unpickles to none."""

    def __reduce__(self):
        return int, (7,)


class UnreadableError(Exception):
    """An exception that unpickles in its own process alone."""

    def __reduce__(self):
        return only_in, (os.getpid(),)


def only_in(pid):
    if os.getpid() == pid:
        return UnreadableError()
    raise LookupError("another process")


def raise_it(bsp, kind):
    raise kind


@pytest.mark.procs(2)
def test_an_exception_that_says_nothing_is_raised_all_the_same(run):
    raised_by(run, raise_it, StubbornError, kind=StubbornError)


@pytest.mark.procs(2)
def test_an_exception_whose_str_raises_can_be_recorded(run, tmp_path):
    def main(bsp):
        raise StubbornError

    with pytest.raises(StubbornError):
        run(main, profile=tmp_path / "trace.bsp")


@pytest.mark.procs(2)
def test_an_exception_that_unpickles_to_none_is_told_in_words(run):
    error = raised_by(run, raise_it, ImpostorError, kind=bsplib.BspError)
    assert "ImpostorError:  (the error itself unpickles to int, which is no exception)" in str(
        error
    )


@pytest.mark.real_processes
@pytest.mark.procs(2)
def test_an_exception_that_cannot_be_unpickled_by_the_parent_is_told_in_words(run):
    error = raised_by(run, raise_it, UnreadableError, kind=bsplib.BspError)
    assert "cannot be unpickled here: another process" in str(error)


@pytest.mark.not_on_mpi("mpi/test_faults.py has the tests of ranks")
@pytest.mark.real_processes
@pytest.mark.procs(2)
def test_death_by_a_realtime_signal_is_named(run):
    def main(bsp):
        if bsp.pid:
            os.kill(os.getpid(), signal.SIGRTMIN + 5)
        bsp.sync()

    number = signal.SIGRTMIN + 5
    error = raised_by(run, main, kind=bsplib.ProcessDiedError)
    assert f"process 1 was killed by signal {number} (SIGRTMIN+5) in superstep 0" in str(error)


# -- tracebacks --------------------------------------------------------------------------------


def helper(bsp, x):
    bsp.put(bsp.nprocs, 1, x)


def puts_wrongly(bsp):
    x = bsp.zeros(3)
    bsp.sync()
    helper(bsp, x)


@pytest.mark.procs(2)
def test_a_traceback_has_the_frames_of_the_program_and_none_of_bsplib(run):
    text = shown(raised_by(run, puts_wrongly, kind=bsplib.ProcessRangeError))
    assert str(HERE) not in text
    assert text.count("in helper") == text.count("in puts_wrongly") == 1


@pytest.mark.procs(2)
def test_a_pool_leaves_its_own_frames_out_too():
    with bsplib.Pool(2) as pool:
        text = shown(raised_by(pool.run, puts_wrongly))
    assert str(HERE) not in text


@pytest.mark.procs(2)
def test_an_error_at_the_end_of_main_has_no_frame_of_bsplib(run):
    def main(bsp):
        if bsp.pid:
            bsp.sync()

    assert str(HERE) not in shown(raised_by(run, main, kind=bsplib.SyncMismatchError))


@pytest.mark.procs(2)
def test_causes_lose_the_frames_of_bsplib_too(run):
    def main(bsp):
        try:
            helper(bsp, bsp.zeros(1))
        except bsplib.UsageError as error:
            raise ValueError from error

    text = shown(raised_by(run, main, kind=ValueError))
    assert str(HERE) not in text
    assert "in helper" in text


@pytest.mark.procs(2)
def test_all_frames_can_be_asked_for(run, monkeypatch):
    monkeypatch.setenv("BSP_TRACEBACK", "full")
    text = shown(raised_by(run, puts_wrongly, kind=bsplib.ProcessRangeError))
    assert str(HERE / "primitives" / "remote.py") in text


# -- mismatches --------------------------------------------------------------------------------


@pytest.mark.procs(4)
def test_a_mismatch_of_kinds_names_the_line_of_every_process(run):
    def main(bsp):
        bsp.sync()
        if bsp.pid == 0:
            bsp.oblsync(1)
        elif bsp.pid == 1:
            bsp.sync()
        else:
            bsp.allreduce(1)

    text = str(raised_by(run, main, kind=bsplib.SyncMismatchError))
    for words in ("oblsync(1)", "elif", "allreduce"):
        at = line_of(main, words) + (words == "elif")
        assert f"at test_failures.py:{at}" in text
    assert "processes 2 to 3 wait at" in text


@pytest.mark.procs(3)
def test_a_mismatch_says_who_has_returned_from_main(run):
    def main(bsp):
        if bsp.pid != 1:
            bsp.sync()

    text = str(raised_by(run, main, kind=bsplib.SyncMismatchError))
    assert "process 1 waits at the end of main" in text
    assert f"processes 0, 2 wait at test_failures.py:{line_of(main, 'bsp.sync')}" in text


@pytest.mark.procs(3)
def test_a_mismatch_of_registrations_names_the_lines(run):
    def main(bsp):
        if bsp.pid:
            bsp.zeros(3)
            bsp.sync()
        bsp.sync()

    text = str(raised_by(run, main, kind=bsplib.SyncMismatchError))
    first = line_of(main, "bsp.sync")
    assert f"process 0 waits at test_failures.py:{first + 1}" in text
    assert f"processes 1 to 2 wait at test_failures.py:{first}" in text


# -- operations and lines ----------------------------------------------------------------------


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sync", lambda bsp: bsp.sync()),
        ("put", lambda bsp: bsp.put(0, 1, np.zeros(1))),
        ("get_at", lambda bsp: bsp.get_at(0, 0, np.zeros(1))),
        ("messages", lambda bsp: list(bsp.messages())),
        ("scan", lambda bsp: bsp.scan(1)),
        ("array", lambda bsp: bsp.array([1])),
        ("done", lambda bsp: bsp.done()),
    ],
)
def test_a_group_that_rests_names_the_operation(run, name, call):
    def main(bsp):
        with bsp.partition([2]):
            call(bsp)

    error = raised_by(run, main, kind=bsplib.PartitionError)
    assert str(error).startswith(f"{name}: this group cannot be used: a sub-group of it is open")


@pytest.mark.procs(1, 2)
def test_a_pending_transfer_names_its_kind_its_process_and_its_line(run):
    def main(bsp):
        x = bsp.zeros(3)
        bsp.put(0, 1.0, x, offset=0)
        bsp.sync()
        bsp.send(0, 1)
        bsp.put(0, 1.0, x, offset=1)

    text = str(raised_by(run, main, kind=bsplib.PendingTransferError))
    send = line_of(main, "send")
    assert text.startswith(
        "main: 2 transfers are pending at the end (1 put to process 0, 1 message to process 0): "
        f"main calls send at test_failures.py:{send}, put at test_failures.py:{send + 1}; sync "
    )


@pytest.mark.procs(1, 2)
def test_a_pending_transfer_of_a_helper_is_named_where_calls_are_checked(run):
    def helps(bsp, x):
        bsp.put(0, 1.0, x, offset=0)

    def main(bsp):
        helps(bsp, bsp.zeros(3))

    text = str(raised_by(run, main, kind=bsplib.PendingTransferError))
    assert "(1 put to process 0); check=True names their lines; sync before the end" in text
    with pytest.raises(bsplib.PendingTransferError) as raised:
        run(main, check=True)
    assert f"(1 put to process 0): put at test_failures.py:{line_of(helps, 'put')}; sync" in str(
        raised.value
    )


@pytest.mark.procs(2)
def test_a_pending_transfer_of_a_sub_group_names_its_line(run):
    def main(bsp):
        with bsp.partition([2]) as sub:
            x = sub.zeros(1)
            sub.sync()
            sub.get(1, x)

    text = str(raised_by(run, main, kind=bsplib.PendingTransferError))
    assert "done: 1 transfer is pending at the end (1 get from process 1): main calls get" in text
    assert f"test_failures.py:{line_of(main, 'sub.get')}" in text
