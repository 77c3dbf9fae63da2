"""Runs on ranks that mpiexec starts: from a script, from a pool, one after the other."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import textwrap
import time

import numpy as np
import pytest

import bsplib
from bsplib.backends.mpi.installations import WHEELS
from bsplib.backends.mpi.launch import end_kept
from bsplib.backends.mpi.watcher import mapped_by
from bsplib.errors import ProcessRangeError, StartError
from tests.bsplib.leftovers import children

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(2 * DEADLINE_S)]


def shift(bsp, n):
    x = bsp.zeros(n)
    bsp.put((bsp.pid + 1) % bsp.nprocs, np.full(n, bsp.pid), x)
    bsp.sync()
    return float(x.sum())


def os_pid(bsp):
    return os.getpid()


# -- runs ----------------------------------------------------------------------------------------


def test_runs_of_a_program_have_the_same_ranks_and_fewer_processes_have_the_first(mpi, capfd):
    first = bsplib.run(os_pid, nprocs=3, backend="mpi")
    assert bsplib.run(os_pid, nprocs=3, backend="mpi") == first
    assert bsplib.run(os_pid, nprocs=2, backend="mpi") == first[:2]
    assert bsplib.run(shift, 5, nprocs=2, backend="mpi") == [5.0, 0.0]
    assert os.getpid() not in first
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_more_processes_than_ranks_get_ranks_of_their_own(mpi, nothing_left):
    first = bsplib.run(os_pid, nprocs=2, backend="mpi")
    second = bsplib.run(os_pid, nprocs=3, backend="mpi")
    assert set(first).isdisjoint(second)
    end_kept()
    nothing_left(2)


NEVER_JOINS = """#!/bin/sh
count=$2; shift 2
exec {start} -n $count sh -c '
    [ ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} = 1 ] && exec sleep 60
    exec "$@"' sh "$@"
"""


@pytest.mark.slow
@pytest.mark.usefixtures("marked")  # nothing may be left
def test_a_rank_that_is_killed_while_it_joins_leaves_no_shared_memory(
    mpi, program, tmp_path, monkeypatch
):
    starter = tmp_path / "starter"
    starter.write_text(NEVER_JOINS.format(start=shlex.join([*mpi.command(), *mpi.options])))
    starter.chmod(0o755)
    monkeypatch.setenv("BSP_MPIEXEC", str(starter))
    process = program("import bsplib\nbsplib.run(len, nprocs=2, backend='mpi')\n")
    names = until_mapped_below(process.pid)
    if not names:
        pytest.skip(f"{mpi.name} maps no file before all ranks have come")
    time.sleep(0.3)  # until the watcher has looked
    ((os_pid, files),) = names.items()
    assert all(map(os.path.exists, files))
    os.kill(os_pid, signal.SIGKILL)
    assert "StartError" in process.communicate(timeout=DEADLINE_S)[1]
    assert not any(map(os.path.exists, files))


def until_mapped_below(parent):
    """Wait until a descendant of a process has mapped files of an MPI; they are by its number."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for os_pid in descendants(parent):
            if files := mapped_by(os_pid):
                return {os_pid: files}
        time.sleep(0.02)
    return {}


def descendants(os_pid):
    found = children(os_pid)
    return found.union(*map(descendants, found))


@pytest.mark.slow
def test_a_rank_that_is_killed_between_two_runs_is_not_missed(mpi):
    pids = bsplib.run(os_pid, nprocs=2, backend="mpi")
    os.kill(pids[1], signal.SIGKILL)
    time.sleep(0.2)  # the watcher has told
    assert set(pids).isdisjoint(bsplib.run(os_pid, nprocs=2, backend="mpi"))


def test_a_large_argument_and_a_large_result_travel(mpi):
    values = np.arange(1_000_000.0)
    results = bsplib.run(lambda bsp, values: values + bsp.pid, values, nprocs=2, backend="mpi")
    assert [result[0] for result in results] == [0, 1]
    assert all((result - result[0] == values).all() for result in results)


def test_what_ranks_print_is_there_when_the_run_has_ended(mpi, capsys):
    def talk(bsp):
        print("x" * 10_000, bsp.pid)
        print("e", bsp.pid, file=sys.stderr)

    bsplib.run(talk, nprocs=3, backend="mpi")
    out, err = capsys.readouterr()
    assert sorted(out.splitlines()) == [f"{'x' * 10_000} {pid}" for pid in range(3)]
    assert sorted(err.splitlines()) == [f"e {pid}" for pid in range(3)]


@pytest.mark.slow
def test_a_rank_has_the_modules_the_arguments_and_the_folder_of_its_driver(
    program, tmp_path, nothing_left
):
    (tmp_path / "beside.py").write_text("def main(bsp): return VALUE\nVALUE = 7\n")
    driver = program(
        textwrap.dedent("""
        import os, sys
        import bsplib, beside
        def where(bsp): return os.getcwd(), sys.argv
        if __name__ == "__main__":
            assert bsplib.run(beside.main, nprocs=2, backend="mpi") == [7, 7]
            assert bsplib.run(where, nprocs=2, backend="mpi") == [(os.getcwd(), sys.argv)] * 2
        """)
    )
    assert driver.communicate(timeout=DEADLINE_S) == ("", "")
    assert driver.returncode == 0
    nothing_left(2)


@pytest.mark.slow
def test_a_process_computes_with_one_blas_thread(mpi):
    def threads(bsp):
        from threadpoolctl import threadpool_info  # noqa: PLC0415  # in the rank

        return {pool["num_threads"] for pool in threadpool_info()}

    assert bsplib.run(threads, nprocs=2, backend="mpi") == [{1}, {1}]


# -- pools ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pool_keeps_its_ranks_and_has_others_after_an_error(mpi, nothing_left):
    def fail(bsp):
        raise KeyError(bsp.pid)

    with bsplib.Pool(2, backend="mpi") as pool:
        first = pool.run(os_pid)
        assert pool.run(os_pid) == first
        with pytest.raises(KeyError):
            pool.run(fail)
        assert set(pool.run(os_pid)).isdisjoint(first)
        assert pool.run(shift, 3) == [3.0, 0.0]
    nothing_left(2)


# -- the end -------------------------------------------------------------------------------------

WAITS = """
import sys, time
import bsplib
def main(bsp):
    bsp.sync()
if __name__ == "__main__":
    bsplib.run(main, nprocs=3, backend="mpi")
    print("ran", flush=True)
    time.sleep(60)
"""
COMPUTES = WAITS.replace("bsp.sync()", "print('ran', flush=True); time.sleep(60)")


@pytest.mark.slow
@pytest.mark.parametrize("text", [WAITS, COMPUTES], ids=["between runs", "in a run"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ranks_end_with_their_driver(program, nothing_left, text, number):
    driver = program(text)
    assert driver.stdout.readline() == "ran\n"
    driver.send_signal(number)
    driver.wait(DEADLINE_S)
    nothing_left(2)


@pytest.mark.slow
def test_ctrl_c_while_the_ranks_start_leaves_nothing(program, nothing_left):
    driver = program("print('begins', flush=True)\n" + WAITS)
    assert driver.stdout.readline() == "begins\n"
    time.sleep(1.0)
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=DEADLINE_S)
    assert err.endswith("KeyboardInterrupt\n")
    nothing_left(2)


FORKS = WAITS.replace("time.sleep(60)", "os.fork(); time.sleep(60)").replace("sys", "os, sys")


@pytest.mark.slow
def test_processes_that_the_driver_forks_do_not_keep_ranks_alive(program, marked):
    driver = program(FORKS)
    assert driver.stdout.readline() == "ran\n"
    until = time.monotonic() + 2
    while sum("program.py" in line for line in marked()) < 2:
        assert time.monotonic() < until
    driver.kill()
    driver.wait(DEADLINE_S)
    until = time.monotonic() + 2
    while len(living := marked()) > 1:
        assert time.monotonic() < until
    assert "program.py" in living[0]
    os.killpg(driver.pid, signal.SIGKILL)


# -- starts that fail ----------------------------------------------------------------------------


def test_a_command_that_is_not_there_is_named(mpi, monkeypatch):
    monkeypatch.setenv("BSP_MPIEXEC", "no-such-mpiexec --fast")
    with pytest.raises(
        StartError, match=r"^run: no-such-mpiexec --fast cannot be started: no such"
    ):
        bsplib.run(shift, 1, nprocs=2, backend="mpi")


def test_the_last_words_of_a_command_that_fails_are_shown(mpi, monkeypatch, tmp_path, capfd):
    command = tmp_path / "mpiexec"
    command.write_text("#!/bin/sh\necho there are not enough slots >&2\nexit 7\n")
    command.chmod(0o755)
    monkeypatch.setenv("BSP_MPIEXEC", f"{command} --x")
    with pytest.raises(StartError) as caught:
        bsplib.run(shift, 1, nprocs=2, backend="mpi")
    assert str(caught.value) == (
        f"run: {command} --x has not started 2 processes: it ended with status 7; its last words: "
        "there are not enough slots"
    )
    assert capfd.readouterr() == ("", "")


REFUSES_ROOT = """#!/bin/sh
cat >&2 <<END
--------------------------------------------------------------------------
prterun has detected an attempt to run as root.

Running as root is *strongly* discouraged as any mistake (e.g., in
defining TMPDIR) or bug can result in catastrophic damage to the OS
file system, leaving your system in an unusable state.
END
exit 1
"""


def test_open_mpi_that_refuses_root_is_told_the_two_variables(mpi, monkeypatch, tmp_path):
    command = tmp_path / "mpiexec"
    command.write_text(REFUSES_ROOT)
    command.chmod(0o755)
    monkeypatch.setenv("BSP_MPIEXEC", str(command))
    with pytest.raises(StartError) as caught:
        bsplib.run(shift, 1, nprocs=2, backend="mpi")
    assert str(caught.value) == (
        "run: Open MPI does not start as root, as in a container: set OMPI_ALLOW_RUN_AS_ROOT=1 "
        "and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment"
    )


@pytest.mark.slow
def test_a_command_that_does_nothing_is_given_up(mpi, monkeypatch, tmp_path, nothing_left):
    command = tmp_path / "mpiexec"
    command.write_text("#!/bin/sh\nexec sleep 60\n")
    command.chmod(0o755)
    monkeypatch.setenv("BSP_MPIEXEC", str(command))
    monkeypatch.setattr("bsplib.backends.mpi.job.START_S", 0.5)
    with pytest.raises(StartError, match=r"2 have not joined within 0\.5 s"):
        bsplib.run(shift, 1, nprocs=2, backend="mpi")
    nothing_left(1)


@pytest.mark.slow
def test_the_library_of_one_mpi_with_the_mpiexec_of_the_other_is_refused(
    mpi, monkeypatch, nothing_left
):
    others = [each for each in WHEELS if each is not mpi and each.is_here()]
    if not others:
        pytest.skip("one MPI is installed only")
    monkeypatch.setenv("BSP_MPIEXEC", " ".join(others[0].command()))
    if others[0].prefix:
        prefix = others[0].variables(crowded=False)[others[0].prefix]
        monkeypatch.setenv(others[0].prefix, prefix)
    with pytest.raises(StartError) as caught:
        bsplib.run(shift, 1, nprocs=2, backend="mpi")
    text = str(caught.value)
    assert text.startswith("run: the MPI library that mpi4py loads (")
    assert "if mpiexec is of another MPI, take that of this one (--mpiexec or BSP_MPIEXEC)" in text
    assert "\n" not in text
    nothing_left(2)


def test_too_many_processes_are_refused(mpi):
    with pytest.raises(ProcessRangeError, match="nprocs is 5000; it may be 1 to 4096 on mpi"):
        bsplib.run(shift, 1, nprocs=5000, backend="mpi")
