"""How a program ends that does not return everywhere: abort, exceptions, sys.exit."""

from __future__ import annotations

import re
import sys
import threading
import traceback

import numpy as np
import pytest

import bsplib


class OwnError(Exception):
    """An error of the program, with something more than its text."""

    def __init__(self, text, number):
        super().__init__(text, number)
        self.number = number


class TwoPartsError(Exception):
    """Cannot be pickled: it has to be made of two parts and remembers one."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class LockedError(Exception):
    """Cannot be pickled for what it holds."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


# -- abort ------------------------------------------------------------------------------------


def test_abort_stops_every_process_and_run_raises_pid_and_message(run, nprocs):
    def main(bsp):
        bsp.sync()
        if bsp.pid == bsp.nprocs - 1:
            bsp.abort("the matrix is singular")
        while True:
            bsp.sync()

    with pytest.raises(
        bsplib.AbortError,
        match=rf"the matrix is singular \[process {nprocs - 1}, superstep 1, "
        r"test_abort_and_exit.py:\d+\]",
    ) as raised:
        run(main)
    assert (raised.value.pid, raised.value.superstep) == (nprocs - 1, 1)


def test_abort_hands_a_result_to_the_caller_of_the_run(run):
    def main(bsp):
        best = {"process": bsp.pid, "values": np.arange(3)}
        if bsp.pid == bsp.nprocs - 1:
            bsp.abort("found one", result=best)
        bsp.sync()

    with pytest.raises(bsplib.AbortError, match="found one") as raised:
        run(main)
    assert raised.value.result["process"] == raised.value.pid
    assert raised.value.result["values"].tolist() == [0, 1, 2]


# -- exceptions -------------------------------------------------------------------------------


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("by zero"),
        KeyError("missing"),
        FileNotFoundError(2, "No such file", "data.csv"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
        ExceptionGroup("several", [ValueError("a"), TypeError("b")]),
        StopIteration(3),
        OwnError("wrong", 17),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_arrive_whole(run, error):
    def main(bsp):
        raise error

    with pytest.raises(type(error)) as raised:
        run(main)
    assert repr(raised.value) == repr(error)
    assert str(raised.value) == str(error)
    assert vars(error).items() <= vars(raised.value).items()


def test_the_traceback_of_the_process_is_shown(run, backend):
    def helper():
        return 1 // 0

    def main(bsp):
        return helper()

    with pytest.raises(ZeroDivisionError) as raised:
        run(main)
    text = "".join(traceback.format_exception(raised.value))
    assert re.search(r"test_abort_and_exit.py\", line \d+, in helper\n +return 1 // 0", text)
    assert ("direct cause" in text) == (backend != "sim")  # elsewhere it is the error's own


@pytest.mark.not_on_mpi("mpi/test_faults.py has the tests of ranks")
@pytest.mark.real_processes
@pytest.mark.procs(least=2)
@pytest.mark.raises(OwnError, match=r"alone")
def test_an_exception_while_others_compute_stops_them(bsp):
    if bsp.pid == 1:
        raise OwnError("alone", 1)
    while True:
        np.sort(np.random.default_rng(1).random(100))


@pytest.mark.procs(least=2)
@pytest.mark.raises(OwnError, match=r"earlier")
def test_of_several_errors_that_of_the_lowest_superstep_is_raised(bsp):
    if bsp.pid == 0:  # ahead of all others by oblivious supersteps
        for _ in range(5):
            bsp.oblsync(0)
        raise OwnError("later", 5)
    raise OwnError("earlier", 0)


@pytest.mark.raises(OwnError, match=r"seen")
def test_an_exception_is_not_lost_when_transfers_are_pending(bsp):
    bsp.send(0, 1)
    bsp.put(0, 1, bsp.zeros(1))
    raise OwnError("seen", 1)


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("make", [lambda: TwoPartsError("this", "that"), lambda: LockedError("x")])
def test_an_exception_that_cannot_be_pickled_is_reported_with_its_own_text(run, make):
    def main(bsp):
        raise make()

    with pytest.raises(bsplib.BspError, match=rf"{type(make()).__name__}: {make()}") as raised:
        run(main)
    assert "in main" in "".join(traceback.format_exception(raised.value))


@pytest.mark.raises(KeyboardInterrupt, match=r"from inside")
def test_a_keyboard_interrupt_in_a_process_is_raised(bsp):
    raise KeyboardInterrupt("from inside")


# -- results -----------------------------------------------------------------------------------


@pytest.mark.procs(1, 4)
def test_a_large_result_arrives(run, nprocs):
    results = run(lambda bsp: np.full(400_000, bsp.pid))
    assert [set(result.tolist()) for result in results] == [{pid} for pid in range(nprocs)]


def test_an_array_in_shared_memory_can_be_returned(run, nprocs):
    def main(bsp):
        x = bsp.zeros(3, int)
        x[:] = bsp.pid
        return x

    results = run(main)
    assert [result.tolist() for result in results] == [[pid] * 3 for pid in range(nprocs)]
    results[0][0] = 5  # and belongs to the caller


@pytest.mark.parametrize("who", ["first", "last"])
def test_a_result_that_cannot_be_pickled_is_an_error_that_says_so(run, nprocs, who):
    pid = 0 if who == "first" else nprocs - 1

    def main(bsp):
        return threading.Lock() if bsp.pid == pid else bsp.pid

    with pytest.raises(
        bsplib.MessageError,
        match=rf"^what main returned on process {pid} cannot be pickled: cannot pickle '_thread.l",
    ):
        run(main)


# -- sys.exit ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "shown"), [(0, "0"), (3, "3"), (None, "0"), ("a text", "'a text'"), (-1, "-1")]
)
@pytest.mark.procs(1, 3)
def test_sys_exit_is_a_death_with_its_status(run, nprocs, code, shown):
    def main(bsp):
        bsp.sync()
        if bsp.pid == bsp.nprocs - 1:
            sys.exit(code)
        bsp.sync()

    with pytest.raises(
        bsplib.ProcessDiedError, match=rf"process {nprocs - 1} .*{shown}.* in superstep 1"
    ) as raised:
        run(main)
    assert (raised.value.pid, raised.value.superstep) == (nprocs - 1, 1)


# -- the same after it --------------------------------------------------------------------------
