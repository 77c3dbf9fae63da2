"""Backends that somebody registers: what the runtime and a program make of them."""

from __future__ import annotations

import os
import signal

import pytest

import bsplib
from bsplib.backends import table

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


def test_a_process_that_raises_stops_the_others_and_is_named():
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            raise KeyError("of process 1")
        bsp.sync()

    with pytest.raises(KeyError, match="of process 1") as raised:
        run(main, nprocs=3)
    assert raised.value.__notes__[0].startswith("[process 1, superstep 1, test_backends.py:")


@pytest.mark.lengthy
def test_a_process_that_computes_for_ever_is_ended_when_another_one_fails():
    def main(bsp):
        if bsp.pid == 1:
            raise KeyError("of process 1")
        while True:
            pass

    with pytest.raises(KeyError, match="of process 1"):
        run(main)


def test_a_process_that_is_killed_is_a_death_on_every_backend():
    def main(bsp):
        if bsp.pid == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        bsp.sync()

    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
        run(main)


def test_a_run_that_takes_too_long_is_ended():
    def main(bsp):
        if bsp.pid == 0:
            bsp.sync()
        while True:
            pass

    with pytest.raises(bsplib.RunTimeoutError, match=r"longer than timeout=0.5 seconds"):
        run(main, timeout=0.5)


def test_a_mismatch_names_lines_of_the_program_and_none_of_the_backend():
    def main(bsp):
        if bsp.pid == 0:
            bsp.oblsync(0)
        bsp.sync()

    with pytest.raises(bsplib.SyncMismatchError) as raised:
        run(main)
    assert "test_backends.py:" in str(raised.value)
    assert "pipes_backend.py" not in str(raised.value)
