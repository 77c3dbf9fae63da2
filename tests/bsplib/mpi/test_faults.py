"""A process that fails, or is lost, is named; nothing is left of the run; the next run works."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import time

import pytest

import bsplib
from bsplib.backends.base import Stopped
from bsplib.backends.mpi.launch import end_kept
from bsplib.backends.mpi.watcher import mapped_by
from bsplib.errors import BspError, ProcessDiedError, RunTimeoutError, SyncMismatchError

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(2 * DEADLINE_S)]


def ordinary(bsp):
    bsp.sync()
    return bsp.pid


def fail(bsp, how):
    """Let process 1 fail in superstep 1 while the others wait for it."""
    bsp.sync()
    if bsp.pid == 1:
        how()
    bsp.sync()
    bsp.sync()


def by_raising():
    raise KeyError("ill")


def by_sys_exit():
    sys.exit(3)


def by_exit():
    os._exit(4)


def by_kill():
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS = {
    by_raising: (KeyError, "'ill'"),
    by_sys_exit: (ProcessDiedError, r"process 1 ended by sys.exit\(3\) in superstep 1"),
    by_exit: (ProcessDiedError, r"process 1 exited with status 4 in superstep 1"),
    by_kill: (ProcessDiedError, r"process 1 was killed by SIGKILL in superstep 1"),
}


@pytest.fixture
def failing(mpi, exchange, nothing_left, tmp_path):
    """Run a program that fails; check that nothing is left of it and that the next run works."""

    def run(error, words, main, *args, **options):
        def noting(bsp):
            (tmp_path / f"{bsp.pid}").write_text("\n".join(mapped_by(os.getpid())))
            return main(bsp, *args)

        with pytest.raises(error, match=words) as caught:
            bsplib.run(noting, nprocs=3, backend="mpi", **options)
        end_kept()  # where the ranks have come back
        nothing_left(2)
        names = {name for pid in range(3) for name in (tmp_path / f"{pid}").read_text().split()}
        assert [name for name in names if os.path.exists(name)] == []
        assert bsplib.run(ordinary, nprocs=2, backend="mpi") == [0, 1]
        return caught.value

    return run


@pytest.mark.parametrize("how", [by_kill])
def test_a_process_that_dies_is_named(failing, how, capfd):
    failing(*FAULTS[how], fail, how)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("how", [by_raising, by_sys_exit, by_exit])
def test_a_process_that_fails_is_named(failing, how, capfd):
    failing(*FAULTS[how], fail, how)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_an_error_says_where_it_was_raised(failing):
    error = failing(KeyError, "ill", fail, by_raising)
    assert [note.partition(", test_faults.py")[0] for note in error.__notes__] == [
        "[process 1, superstep 1"
    ]


@pytest.mark.slow
def test_a_process_that_returns_while_others_sync_is_a_mismatch(failing):
    def main(bsp):
        if bsp.pid:
            bsp.sync()

    failing(SyncMismatchError, "returned from main", main)


@pytest.mark.slow
def test_a_process_that_computes_for_ever_does_not_hold_up_the_end(failing):
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            by_exit()
        while True:
            pass

    failing(ProcessDiedError, "process 1 exited with status 4 in superstep 1", main)


@pytest.mark.slow
def test_of_several_processes_that_fail_the_first_is_raised(failing):
    def main(bsp):
        bsp.sync()
        raise KeyError(bsp.pid)

    error = failing(KeyError, "0", main)
    assert "2 more processes failed" in error.__notes__[0]


@pytest.mark.slow
def test_a_timeout_says_where_every_process_is(failing):
    def main(bsp):
        bsp.sync()
        while bsp.pid == 1:
            pass
        bsp.sync()

    error = failing(RunTimeoutError, "the program took longer than timeout=1 sec", main, timeout=1)
    rows = {tuple(re.split("  +", line)[:2]): line for line in str(error).splitlines()[2:]}
    assert rows.keys() == {("0, 2", "1"), ("1", "1")}
    assert "  waiting in " in rows["0, 2", "1"]
    assert rows["1", "1"].endswith("computing in main")


@pytest.mark.slow
def test_a_process_in_a_long_call_of_c_is_not_taken_for_dead(mpi):
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            ctypes.PyDLL(None).sleep(8)  # it keeps the interpreter's lock
        bsp.sync()
        return bsp.pid

    assert bsplib.run(main, nprocs=2, backend="mpi") == [0, 1]


@pytest.mark.slow
def test_a_process_that_is_stopped_is_named_and_the_run_goes_on_with_it(mpi, capfd):
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            itself = os.getpid()
            if not os.fork():
                time.sleep(5)
                os.kill(itself, signal.SIGCONT)
                os._exit(0)
            os.kill(itself, signal.SIGSTOP)
        bsp.sync()
        return os.getpid()

    pids = bsplib.run(main, nprocs=2, backend="mpi")
    assert capfd.readouterr().err == (
        "bsplib: the run waits for process 1, which is stopped; continue it "
        f"(kill -CONT {pids[1]}) or end the run\n"
    )


@pytest.mark.slow
def test_a_watcher_that_is_killed_takes_its_process_along(failing):
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            os.kill(os.getppid(), signal.SIGKILL)
        bsp.sync()
        bsp.sync()

    failing(ProcessDiedError, "process 1 was lost .* watcher", main)


@pytest.mark.slow
def test_a_stopped_host_is_named(failing):
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            os.kill(os.getppid(), signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
        bsp.sync()
        bsp.sync()

    failing(ProcessDiedError, "process 1 was lost .its host has not answered for 5 s", main)


def test_a_stop_that_comes_when_a_process_has_ended_main_does_not_kill_it(mpi):
    def main(bsp):
        from bsplib.backends.mpi.link import Link  # noqa: PLC0415  # it imports MPI
        from bsplib.backends.mpi.waiting import RankWait  # noqa: PLC0415

        def stop(_):
            raise Stopped

        Link._is_done = lambda link: False  # in the rank: something is never taken
        RankWait.pause = stop

    try:
        assert bsplib.run(main, nprocs=1, backend="mpi") == [None]
    finally:
        end_kept()


@pytest.mark.usefixtures("over_mpi")
@pytest.mark.parametrize("dies", [True, False])
def test_an_error_of_mpi_is_raised_only_where_no_other_process_has_died(mpi, dies):
    def main(bsp):
        from mpi4py import MPI  # noqa: PLC0415  # of the rank

        from bsplib.backends.mpi.link import Link  # noqa: PLC0415

        def pump(_):
            raise MPI.Exception(MPI.ERR_OTHER)

        bsp.sync()
        if bsp.pid == 0:
            Link.pump = pump
            bsp.sync()
        elif dies:
            time.sleep(0.1)  # the other one has its error by now
            os.kill(os.getpid(), signal.SIGKILL)
        bsp.sync()

    if dies:
        with pytest.raises(ProcessDiedError, match="process 1 was killed by SIGKILL"):
            bsplib.run(main, nprocs=2, backend="mpi")
    else:
        with pytest.raises(BspError, match=r"^exchange: MPI has failed: \w"):
            bsplib.run(main, nprocs=2, backend="mpi")
