"""Errors of common mistakes are in words of the program, and say what was meant."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import bsplib
from tests.commands import run_bsp


def idle(bsp):
    return bsp.nprocs


SWAPPED = {
    "put x for pid": (lambda bsp, x: bsp.put(x, 0, [1.0]), "an array of shape (3,) is no process"),
    "put src for pid": (lambda bsp, x: bsp.put([1.0], 0, x), "[1.0] is no process"),
    "put src for dst": (lambda bsp, x: bsp.put(0, x, [1.0] * 3), "put: list is no registered"),
    "put array for dst": (lambda bsp, x: bsp.put(0, x, np.ones(3)), "not in a registered array"),
    "hpput": (lambda bsp, x: bsp.hpput(0, x, np.ones(3)), "not in a registered array"),
    "get pid for src": (lambda bsp, x: bsp.get(x, 0), "get: an array of shape (3,) is no process"),
    "get dst for src": (lambda bsp, x: bsp.get(0, np.ones(3), x), "not in a registered array"),
    "send": (lambda bsp, x: bsp.send("text", 0), "send: 'text' is no process"),
    "put_at": (lambda bsp, x: bsp.put_at(0, x, [1.0], [0]), "put_at: the array is not registered"),
    "get_at": (lambda bsp, x: bsp.get_at(0, x, [0]), "get_at: the array is not registered"),
    "on": (lambda bsp, x: bsp.on(x, 0), "on: an array of shape (3,) is no process"),
}


@pytest.mark.procs(2)
@pytest.mark.parametrize("name", SWAPPED)
def test_arguments_that_are_swapped_are_recognised(run, name):
    call, text = SWAPPED[name]

    def main(bsp):
        x = bsp.zeros(3)
        bsp.sync()
        call(bsp, x)

    with pytest.raises(bsplib.BspError) as caught:
        run(main)
    assert text in str(caught.value)
    assert f"rite {name.split()[0]}(" in str(caught.value)


@pytest.mark.procs(2)
def test_an_array_that_is_not_registered_is_not_taken_for_swapped(run):
    def main(bsp):
        bsp.put(0, np.ones(3), np.ones(3))

    with pytest.raises(bsplib.RegistrationError) as caught:
        run(main)
    assert "swapped" not in str(caught.value)


@pytest.mark.procs(3)
@pytest.mark.parametrize(
    ("op", "expected"), [("add", 3), ("sum", 3), ("multiply", 0), ("maximum", 2), ("max", 2)]
)
def test_an_op_has_its_name_here_and_that_of_numpy(run, op, expected):
    def main(bsp):
        x = bsp.zeros(1, int)
        bsp.put_at([0], [0], [bsp.pid], x, op=op)
        bsp.sync()
        return bsp.allreduce(bsp.pid, op=op), int(x[0])

    results = run(main)
    assert [each for each, _ in results] == [expected] * 3
    assert results[0][1] == expected


@pytest.mark.parametrize("word", ["n", "np", "procs", "num_procs", "processes", "ranks"])
def test_another_word_for_the_number_of_processes_is_understood(word):
    with pytest.raises(bsplib.UsageError, match=f"write nprocs= if that is meant by {word}="):
        bsplib.run(idle, **{word: 4})


@pytest.mark.procs(2)
def test_messages_have_a_length_and_say_that_they_have_no_positions(run):
    def main(bsp):
        for other in range(bsp.nprocs):
            bsp.send(other, b"text")
        bsp.sync()
        messages = bsp.messages()
        counts = [len(messages)]
        next(messages)
        counts.append(len(messages))
        try:
            messages[0]
        except TypeError as error:
            return counts, str(error)

    counts, text = run(main)[0]
    assert counts == [2, 1]
    assert text.startswith("messages are read one after the other: for source, tag, payload in")


@pytest.mark.procs(2)
@pytest.mark.parametrize("what", [lambda bsp: bsp, lambda bsp: bsp.messages()])
def test_what_belongs_to_a_process_says_that_it_cannot_be_sent(run, backend, what):
    def give(bsp):
        bsp.send(0, what(bsp))

    with pytest.raises(bsplib.MessageError, match=r"cannot be pickled: .*one process") as caught:
        run(give)
    assert "__reduce__" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: bsplib.run(idle, nprocs=0),
        lambda: bsplib.run(idle, backend="smh"),
        lambda: bsplib.run(idle, 1, 2, 3),
        lambda: bsplib.run(None),
        lambda: bsplib.run(idle, machine="nowhere"),
        lambda: bsplib.run(idle, profile="/nowhere/x.bsp"),
        lambda: bsplib.Pool(nprocs=0),
        lambda: bsplib.Pool(profile="/nowhere/x.bsp"),
        lambda: bsplib.Pool(nprocs=1).run(idle, 1, 2, 3),
    ],
)
def test_a_traceback_before_the_start_has_no_frames_of_bsplib(call):
    with pytest.raises(bsplib.BspError) as caught:
        call()
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}


def test_a_trace_in_place_of_a_script_is_recognised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bsplib.run(idle, nprocs=2, backend="sim", profile="a.bsp")
    done = run_bsp("run", "a.bsp")
    assert done.exit_code == 2
    assert "a.bsp is a trace, not a script; show it by: bsp view a.bsp" in done.output
