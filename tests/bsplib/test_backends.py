"""Backends that somebody registers: what the runtime and a program make of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from types import SimpleNamespace

import pytest

import bsplib
from bsplib.backends import table
from bsplib.backends.base import Stopped
from bsplib.backends.stream import Mail
from tests.commands import run_bsp

from .phases import DEADLINE_S
from .pipes_backend import PIPES

pytestmark = pytest.mark.timeout(DEADLINE_S)


def run(main, nprocs=2, **more):
    return bsplib.run(main, nprocs=nprocs, backend=PIPES.name, **more)


def test_a_registered_backend_is_offered_where_a_name_is_wrong():
    with pytest.raises(bsplib.UsageError, match=rf"choose one of shm, sim, .*\b{PIPES.name}\b"):
        bsplib.run(lambda bsp: None, backend="tubes")


def test_a_backend_says_how_many_processes_it_takes():
    with pytest.raises(
        bsplib.ProcessRangeError, match=rf"nprocs is 65; it may be 1 to 64 on {PIPES.name}"
    ):
        run(lambda bsp: None, nprocs=65)


def test_a_backend_says_how_many_processes_there_are_if_the_caller_does_not(monkeypatch):
    monkeypatch.setattr(table, "_backends", dict(table._backends))
    table.register(PIPES._replace(name="three pipes", usual_processes=lambda: 3))
    assert bsplib.run(lambda bsp: bsp.nprocs, backend="three pipes") == [3, 3, 3]


@pytest.mark.lengthy
def test_a_process_that_computes_for_ever_is_ended_when_another_one_fails():
    def main(bsp):
        if bsp.pid == 1:
            raise KeyError("of process 1")
        while True:
            pass

    with pytest.raises(KeyError, match="of process 1"):
        run(main)


def test_a_mismatch_names_lines_of_the_program_and_none_of_the_backend():
    def main(bsp):
        if bsp.pid == 0:
            bsp.oblsync(0)
        bsp.sync()

    with pytest.raises(bsplib.SyncMismatchError) as raised:
        run(main)
    assert "test_backends.py:" in str(raised.value)
    assert "pipes_backend.py" not in str(raised.value)


def test_a_process_that_is_killed_closes_its_streams_and_is_named():
    def main(bsp):
        if bsp.pid == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        bsp.sync()

    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
        run(main)


@pytest.mark.lengthy
def test_a_run_over_streams_that_takes_too_long_is_ended():
    def main(bsp):
        while bsp.pid == 0:
            bsp.sync()
        while True:
            pass

    with pytest.raises(bsplib.RunTimeoutError, match=r"longer than timeout=0.5 seconds"):
        run(main, timeout=0.5)


def test_a_process_that_outlives_its_caller_stops_where_it_waits():
    caller, ours = multiprocessing.Pipe()
    noted = threading.Event()
    mail = Mail({}, ours, noted.set)
    caller.close()
    with pytest.raises(Stopped):
        mail.wait(lambda: False, lambda: None)
    assert noted.is_set()


@pytest.fixture
def installed(monkeypatch):
    """Let another distribution have PIPES as an entry point, by another name."""
    entry = SimpleNamespace(name="tubes", load=lambda: PIPES)
    monkeypatch.setattr(table, "_backends", dict(table._backends))
    monkeypatch.setattr(table, "others", lambda: {"tubes": entry})


def test_a_backend_of_another_distribution_is_found_by_its_name(installed):
    assert bsplib.run(lambda bsp: bsp.nprocs, nprocs=2, backend="tubes") == [2, 2]


def test_a_command_takes_a_backend_of_another_distribution(installed, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import bsplib\nprint(bsplib.run(lambda bsp: bsp.nprocs))")
    done = run_bsp("run", "--backend", "tubes", "-n", "3", program)
    assert (done.exit_code, done.output) == (0, "[3, 3, 3]\n")


def test_backends_of_other_distributions_are_offered_where_a_name_is_wrong(installed):
    with pytest.raises(bsplib.UsageError, match=r"choose one of shm, sim, .*\btubes\b"):
        bsplib.run(lambda bsp: None, backend="tube")


def test_helps_and_errors_of_commands_list_backends_of_other_distributions(installed):
    shown = run_bsp("run", "--help").output
    assert "--backend [shm|sim|mpi" in shown
    assert "tubes]" in shown
    done = run_bsp("run", "--backend", "tube", __file__)
    assert done.exit_code == 2
    assert "there is no backend 'tube'; choose one of shm, sim, mpi" in done.output
    assert "tubes" in done.output


def test_options_of_a_backend_come_to_it_and_to_no_other(installed, monkeypatch):
    own = []

    def launch(work, options):
        own.append(options.own)
        return PIPES.launch(work, options)

    table._backends["wide"] = PIPES._replace(name="wide", launch=launch, own_options=("hosts",))
    given = {"backend_options": {"hosts": ["a", "b"]}}
    assert bsplib.run(lambda bsp: bsp.nprocs, nprocs=2, backend="wide", **given) == [2, 2]
    assert own == [{"hosts": ["a", "b"]}]
    with pytest.raises(bsplib.UsageError, match=r"backend 'shm' has no option 'hosts'$"):
        bsplib.run(lambda bsp: None, nprocs=2, **given)
    with pytest.raises(bsplib.UsageError, match=r"'wide' has no option 'host'; it has hosts$"):
        bsplib.Pool(2, backend="wide", backend_options={"host": 3})


def test_nobody_looks_for_other_backends_where_a_name_is_known(monkeypatch):
    monkeypatch.setattr(table, "others", lambda: pytest.fail("it takes milliseconds"))
    assert run(lambda bsp: bsp.pid) == [0, 1]
