"""A loop in parallel: who does which item, the results in order, and errors with their item."""

from __future__ import annotations

import itertools
import os
import time
from functools import partial

import numpy as np
import pytest

import bsplib
from bsplib import call_site
from bsplib.backends.sim import port
from bsplib.core.clock import Clock
from bsplib.recording.trace import read_trace
from bsplib.running import mapping, process

MS = 10**6


@pytest.fixture
def mapped(backend, nprocs):
    """Map a function as ``bsplib.map`` does, on the backend and the number of processes at hand."""
    return partial(bsplib.map, nprocs=nprocs, backend=backend)


def square(item):
    return item * item


def test_results_come_in_the_order_of_the_items(mapped):
    assert mapped(square, range(100)) == [item * item for item in range(100)]


@pytest.mark.procs(1, 3)
def test_any_iterables_give_the_arguments_of_any_function(mapped):
    factor = 3
    assert mapped(str.upper, (letter for letter in "bsp")) == ["B", "S", "P"]
    assert mapped(np.sum, np.arange(12).reshape(4, 3)) == [3, 12, 21, 30]
    assert mapped(lambda item: factor * item, range(5)) == [0, 3, 6, 9, 12]
    assert mapped(pow, range(5), itertools.repeat(2)) == [0, 1, 4, 9, 16]
    assert mapped(lambda a, b, c: (a, b, c), "xyz", [1, 2], np.eye(2, dtype=int)[0]) == [
        ("x", 1, 1),
        ("y", 2, 0),
    ]
    assert mapped(square, []) == []


@pytest.mark.parametrize("chunk", [None, 1, 3, 10**6])
@pytest.mark.procs(1, 3)
def test_many_items_are_given_out_several_at_a_time(mapped, chunk):
    count = 3 * mapping.MOST_SHARES + 1
    assert mapped(square, range(count), chunk=chunk) == [item * item for item in range(count)]


@pytest.mark.procs(3)
def test_each_item_is_done_once(mapped, tmp_path):
    def do(item):
        with open(tmp_path / str(item), "xb"):
            return item

    assert mapped(do, range(200)) == [*range(200)]


# -- who does which item --------------------------------------------------------------------------


@pytest.mark.real_processes
@pytest.mark.procs(3)
def test_while_one_process_is_busy_the_others_do_all_else(mapped, tmp_path):
    done = tmp_path / "done"
    done.touch()

    def do(item):
        if item == 0:
            while done.stat().st_size < 99:
                os.sched_yield()
        else:
            with open(done, "ab") as file:
                file.write(b".")
        return item

    assert mapped(do, range(100), chunk=1, timeout=30) == [*range(100)]


@pytest.mark.real_processes
@pytest.mark.procs(3)
@pytest.mark.parametrize("hosts", [2, 3])
def test_processes_that_do_not_find_each_other_share_the_items(mapped, monkeypatch, hosts):
    monkeypatch.setattr(mapping, "same_system", lambda: b"%d" % (os.getpid() % hosts))
    assert mapped(square, range(100)) == [item * item for item in range(100)]


@pytest.mark.procs(3)
def test_processes_that_cannot_open_the_file_share_the_items(mapped, monkeypatch):
    monkeypatch.setattr(mapping, "_opened", lambda *_: None)
    assert mapped(square, range(100)) == [item * item for item in range(100)]


class Thread:
    """The CPU time of the thread of virtual processors, which passes only where a test says so."""

    now_ns = 0


def compute(ms):
    Thread.now_ns += ms * MS
    return ms


@pytest.fixture
def waited(monkeypatch, tmp_path):
    """Map items that are times on virtual processors; return for how many ms each one waited."""
    monkeypatch.setattr(port, "Clock", partial(Clock, read=lambda: Thread.now_ns))
    monkeypatch.setattr(process, "empty_stretch_ns", lambda: 0)

    def map_it(items, nprocs, **options):
        path = tmp_path / "mapped.bsp"
        bsplib.map(compute, items, nprocs=nprocs, backend="sim", profile=path, **options)
        run = read_trace(path).runs[-1]
        last = run.records[run.records["superstep"] == run.records["superstep"].max() - 1]
        return [*((last["released"] - last["arrive"]) // MS)]

    return map_it


def test_in_virtual_time_the_earliest_process_takes_the_next_item(waited):
    assert waited([10, *[1] * 10], 2) == [0, 0]
    assert waited([10, 2, 3, 4], 2) == [0, 1]
    assert waited([5, 4, 3, 2, 1, 6], 3) == [0, 6, 6]


def test_a_trace_shows_who_waited(waited):
    assert waited([1, 9, 1], 3) == [8, 0, 8]
    assert waited([1, 9, 1], 3, chunk=2) == [0, 9, 10]


def test_a_trace_names_the_function_of_the_program_and_not_the_loop(waited, tmp_path):
    waited([1, 9, 1], 3)
    (run,) = read_trace(tmp_path / "mapped.bsp").runs
    outermost = {(os.path.basename(stack[0].file), stack[0].function) for stack in run.stacks}
    assert outermost == {("test_map.py", "compute")}
    frames = [frame for stack in run.stacks for frame in stack]
    assert "contextlib.py" not in {os.path.basename(frame.file) for frame in frames}


def test_a_trace_of_a_function_without_code_of_python_names_the_loop(tmp_path):
    path = tmp_path / "mapped.bsp"
    bsplib.map(abs, [-1, 2], nprocs=2, backend="sim", profile=path)
    (run,) = read_trace(path).runs
    assert {stack[0].function for stack in run.stacks} == {"do_items"}


def busy(ms):
    end = time.perf_counter() + ms * 1e-3
    while time.perf_counter() < end:
        pass


def test_samples_between_two_items_have_a_place(tmp_path):
    path = tmp_path / "mapped.bsp"
    bsplib.map(busy, [1] * 50, nprocs=2, chunk=1, profile=path)
    (run,) = read_trace(path).runs
    sampled = {run.stacks[number][-1].function for number in run.samples["stack"]}
    assert sampled <= {"busy", call_site.IN_MAP, call_site.END}
    assert "busy" in sampled


# -- errors ---------------------------------------------------------------------------------------


def test_an_error_of_the_function_names_the_item(mapped):
    def fail(item):
        raise ValueError(f"{item} is wrong")

    with pytest.raises(ValueError, match="is wrong") as caught:
        mapped(fail, ["one"])
    assert "[map: item 0, 'one']" in caught.value.__notes__


@pytest.mark.procs(3)
def test_the_number_of_the_item_is_right_in_the_middle(mapped):
    def fail(item):
        if item == "x37":
            raise KeyError(item)

    with pytest.raises(KeyError) as caught:
        mapped(fail, [f"x{number}" for number in range(50)], chunk=5)
    assert "[map: item 37, 'x37']" in caught.value.__notes__


@pytest.mark.procs(3)
def test_an_error_that_cannot_be_pickled_still_names_the_item(mapped):
    def fail(item):
        class OwnError(Exception):
            def __reduce__(self):
                raise TypeError("not this one")

        raise OwnError("wrong")

    with pytest.raises(bsplib.BspError, match="wrong") as caught:
        mapped(fail, [1])
    assert "[map: item 0, 1]" in caught.value.__notes__


def test_an_error_of_a_builtin_function_is_said_to_be_in_the_loop(mapped):
    with pytest.raises(TypeError) as caught:
        mapped(float, [[]])
    assert any(note.endswith(", in map]") for note in caught.value.__notes__)


@pytest.mark.real_processes
@pytest.mark.not_on_mpi("a deadline ends all ranks, and each tells where it is")
@pytest.mark.procs(2)
def test_where_processes_are_in_the_loop_is_told_where_no_line_of_the_program_is(mapped):
    with pytest.raises(bsplib.RunTimeoutError, match=r"2 +in map +computing$"):
        mapped(time.sleep, [30, 30], timeout=1)


def test_a_function_that_raises_stop_iteration_does_not_end_the_loop_in_silence():
    with pytest.raises(RuntimeError, match="the function raised StopIteration") as caught:
        bsplib.map(next, [iter("a"), iter("")], nprocs=1)
    assert caught.value.__notes__[0].startswith("[map: item 1, ")


def pieces(item):
    yield item


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        *(
            ((square, [1]), {"chunk": chunk}, f"chunk is {chunk!r}; it is an integer")
            for chunk in (0, -1, 1.5, "2")
        ),
        ((3, [1]), {}, "3 is no function; write map"),
        ((pieces, [1]), {}, "map: pieces is a generator function: .*; write"),
        ((square, [1]), {"workers": 2}, "^map: there is no option workers=; write nprocs="),
        ((square, [1]), {"chunks": 2}, "^map: there is no option chunks=; write chunk="),
        ((square, [1]), {"colour": 2}, "no option colour=; there are chunk, progress, nprocs, b"),
        ((pow, [1, 2], 5), {}, "map: items are 5, of type int"),
        ((square, 5), {}, "over which nobody can iterate; give a list"),
        ((square, np.array(5)), {}, "over which nobody can iterate; give a list"),
    ],
)
def test_a_wrong_call_is_refused_in_words_of_the_caller(arguments, options, words):
    with pytest.raises(bsplib.ArgumentError, match=words):
        bsplib.map(*arguments, **options)


def test_an_error_of_the_iterable_is_not_hidden():
    def items():
        yield 1
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        bsplib.map(square, items())


# -- pools, options, the progress bar -----------------------------------------------------------


@pytest.mark.fresh
@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_a_pool_maps_again_and_again(kind):
    with bsplib.Pool(2, backend=kind) as pool:
        for count in (10, 0, 1000):
            assert pool.map(square, range(count)) == [item * item for item in range(count)]
        assert pool.run(lambda bsp: bsp.pid) == [0, 1]


def test_a_pool_can_be_used_after_an_error():
    def invert(item):
        return 1 / item

    with bsplib.Pool(2) as pool:
        with pytest.raises(ZeroDivisionError):
            pool.map(invert, [1, 0])
        assert pool.map(invert, [1, 2]) == [1, 0.5]


@pytest.mark.lengthy
@pytest.mark.fresh
def test_nothing_stays_open(nothing_is_left):
    for backend in ("shm", "sim"):
        assert bsplib.map(square, range(10), nprocs=2, backend=backend)[-1] == 81


@pytest.mark.lengthy
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_classes_and_functions_of_a_script_reach_the_processes(execute, method):
    done = execute(
        f"""
        import bsplib

        class Point:
            def __init__(self, x):
                self.x = x

        def point(x):
            return Point(x)

        if __name__ == "__main__":
            points = bsplib.map(point, range(3), nprocs=2, start_method={method!r})
            print([each.x for each in points], isinstance(points[0], Point))
        """
    )
    assert done.stdout == "[0, 1, 2] True\n", done.stderr


@pytest.fixture
def terminal():
    """Both ends of a terminal: what is written to the second can be read from the first."""
    ends = os.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_a_progress_bar_is_drawn_on_a_terminal_and_removed(terminal, monkeypatch):
    reading, writing = terminal
    with open(writing, "w", encoding="utf-8", closefd=False) as stream:
        monkeypatch.setattr("sys.stderr", stream)
        assert bsplib.map(square, range(4), nprocs=2, chunk=4, progress=True) == [0, 1, 4, 9]
    shown = ""
    while not shown.endswith("\r\x1b[K"):  # a terminal may bring it in parts
        shown += os.read(reading, 10_000).decode()
    assert f"\r[{'#' * 40}] 100%" in shown


def test_no_progress_bar_is_drawn_elsewhere(capfd):
    bsplib.map(square, range(4), nprocs=2, progress=True)
    assert capfd.readouterr().err == ""
