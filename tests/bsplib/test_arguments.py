"""What is wrong with a call is found before anything starts, and said in one sentence."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import bsplib


def takes_one(bsp, n):
    return n


def generator(bsp):
    yield 1


async def asynchronous(bsp):
    return 1


class Program:
    def __call__(self, bsp, n=1):
        return n


class GeneratorProgram:
    def __call__(self, bsp):
        yield 1


WRONG_PROGRAMS = [
    (None, (), {}, r"main is None, which is no function; write run\(main\), not run\(main\(\)\)"),
    (5, (), {}, "main is 5, which is no function"),
    (generator, (), {}, "generator is a generator function: its body has a yield"),
    (functools.partial(generator), (), {}, "generator is a generator function"),
    (GeneratorProgram(), (), {}, "a generator function"),
    (asynchronous, (), {}, "asynchronous is an async function, so that a call does not run it"),
    (takes_one, (), {}, r"takes_one\(bsp, n\) cannot take \(bsp\): missing a required argument"),
    (
        takes_one,
        (1, 4),
        {},
        r"takes_one\(bsp, n\) cannot take \(bsp, 1, 4\): too many positional arguments; write "
        r"nprocs=4",
    ),
    (takes_one, (1, "x"), {}, r"too many positional arguments$"),
    (lambda bsp: 1, (4,), {}, r"too many positional arguments; write nprocs=4 if"),
    (takes_one, (1,), {"nproc": 4}, r"unexpected keyword argument 'nproc'; write nprocs= if"),
    (lambda: 1, (), {}, r"its first parameter is the group, as in def main\(bsp\)"),
    (lambda bsp, nprocs: 1, (1,), {}, "has a parameter 'nprocs', a keyword that run takes"),
    (lambda bsp, *, timeout=1: 1, (), {}, "has a parameter 'timeout', a keyword"),
    (Program(), (1, 2), {}, r"cannot take \(bsp, 1, 2\)"),
]


@pytest.mark.procs(2)
@pytest.mark.parametrize(("main", "args", "kwargs", "words"), WRONG_PROGRAMS)
def test_a_program_that_cannot_be_run_is_found_before_the_start(run, main, args, kwargs, words):
    with pytest.raises(bsplib.ArgumentError, match=rf"^run: .*{words}") as raised:
        run(main, *args, **kwargs)
    assert "\n" not in str(raised.value)


def test_a_coroutine_is_no_program():
    made = asynchronous(None)
    with pytest.raises(bsplib.ArgumentError, match="run takes the function itself"):
        bsplib.run(made, nprocs=1)
    made.close()


def test_a_pool_finds_the_same_before_it_starts():
    with pytest.raises(bsplib.ArgumentError, match="cannot take"):
        bsplib.Pool(1).run(takes_one)


def test_a_pool_leaves_the_keywords_of_run_to_main():
    with bsplib.Pool(1) as pool:
        assert pool.run(lambda bsp, nprocs: nprocs, nprocs=7) == [7]


@pytest.mark.procs(2)
@pytest.mark.parametrize("main", [takes_one, functools.partial(takes_one), Program(), max])
def test_whatever_can_be_called_with_the_arguments_is_run(backend, main):
    if main is max:  # it has no signature, and fails in its own words
        with pytest.raises(TypeError):
            bsplib.run(main, 3, nprocs=1, backend=backend)
    else:
        assert bsplib.run(main, 3, nprocs=1, backend=backend) == [3]


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"nprocs": "4"}, bsplib.ArgumentError, "nprocs is '4'; it is an integer, 1 to "),
        ({"nprocs": 2.0}, bsplib.ArgumentError, r"nprocs is 2\.0; it is an integer"),
        ({"machine": 5}, bsplib.ArgumentError, r"machine is 5; it is a bsplib\.Machine, the name"),
        ({"timeout": -1}, bsplib.ArgumentError, "timeout is -1; it is a number of seconds greater"),
        ({"timeout": 0}, bsplib.ArgumentError, "timeout is 0; it is"),
        ({"timeout": "3"}, bsplib.ArgumentError, "timeout is '3'; it is"),
        ({"timeout": [3]}, bsplib.ArgumentError, r"timeout is \[3\]; it is"),
        ({"timeout": float("nan")}, bsplib.ArgumentError, "timeout is nan; it is"),
        ({"sim_seed": "x"}, bsplib.ArgumentError, "sim_seed is 'x'; it is an integer, 0 or more"),
        ({"sim_seed": -1}, bsplib.ArgumentError, "sim_seed is -1; it is"),
    ],
)
def test_a_keyword_of_run_that_cannot_be_is_one_sentence(backend, keywords, error, words):
    with pytest.raises(error, match=rf"^{words}"):
        bsplib.run(takes_one, 1, backend=backend, **keywords)


WRONG_CALLS = [
    (lambda bsp: bsp.oblsync(-1), bsplib.ArgumentError, "oblsync: n is -1; it is the number of"),
    (lambda bsp: bsp.oblsync(None), bsplib.ArgumentError, "oblsync: n is None; it is the number"),
    (lambda bsp: bsp.oblsync(1.0), bsplib.ArgumentError, r"oblsync: n is 1\.0; it is the number"),
    (lambda bsp: bsp.set_tagsize("3"), bsplib.MessageError, "set_tagsize: .* '3' bytes; say an"),
    (lambda bsp: bsp.charge(float("inf")), bsplib.ArgumentError, "charge: inf is no time"),
    (lambda bsp: bsp.charge("1"), bsplib.ArgumentError, "charge: '1' is no time"),
    (lambda bsp: bsp.charge(None), bsplib.ArgumentError, "charge: None is no time"),
    (lambda bsp: bsp.charge(-1), bsplib.ArgumentError, "charge: -1 is no time"),
    (lambda bsp: bsp.push_reg([0.0]), bsplib.RegistrationError, r"push_reg: \[0\.0\] is no array"),
    (lambda bsp: bsp.zeros("3"), bsplib.ShapeError, "zeros: shape is '3'; it is an integer"),
    (lambda bsp: bsp.empty(2.5), bsplib.ShapeError, r"empty: shape is 2\.5"),
    (lambda bsp: bsp.zeros(3, "what"), bsplib.DtypeError, "zeros: 'what' is no dtype"),
    (
        lambda bsp: bsp.zeros(2, 3),
        bsplib.DtypeError,
        r"zeros: 3 is no dtype; a shape of several axes is a tuple, as in zeros",
    ),
]


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize(("call", "error", "words"), WRONG_CALLS)
def test_an_argument_of_the_wrong_kind_is_one_sentence(run, call, error, words):
    place = r"\[process 0, superstep 0, test_arguments"
    with pytest.raises(error, match=rf"^{words}.*{place}") as raised:
        run(call)
    assert "\n" not in str(raised.value).split("\n[")[0]


@pytest.mark.procs(2)
def test_numbers_of_numpy_are_numbers(run):
    def main(bsp):
        bsp.charge(np.float32(0.5))
        bsp.set_tagsize(np.int8(2))
        bsp.sync()
        bsp.oblsync(np.int64(0))

    run(main, timeout=np.float64(30))
