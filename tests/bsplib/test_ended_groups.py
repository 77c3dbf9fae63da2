"""A group is used in its run, by the thread that runs main, and its attributes are read."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import suppress

import numpy as np
import pytest

import bsplib

from .random_programs.lives import PRIMITIVES

kept = []
"""Groups that programs leave behind, by process."""

IN_CORE = (
    *("put", "hpput", "get", "send", "sync", "messages", "move", "hpmove", "qsize"),
    "get_tag",
)
"""Those of the core, and those that only look at the messages of this process."""
OTHERS = ("oblsync", "hpget", "put_at", "get_at", "allreduce", "allgather", "zeros", "partition")


@pytest.fixture(autouse=True)
def nothing_kept():
    """Leave no group behind: a program that finds one cannot be sent to processes."""
    yield
    kept.clear()


def keep(bsp):
    x = bsp.zeros(3)
    bsp.sync()
    bsp.put(0, 1.0, x, offset=0)  # the array is known
    bsp.sync()
    return bsp, x


def use(name, old):
    with pytest.raises(
        bsplib.PartitionError, match=rf"^{name}: this group cannot be used: its run has ended"
    ):
        PRIMITIVES[name](*old)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_the_group_of_a_run_that_has_ended_cannot_be_used_in_the_simulator(name):
    def main(bsp):
        kept[:] = [keep(bsp)]

    bsplib.run(main, nprocs=2, backend="sim")
    use(name, kept[0])
    assert kept[0][0].nprocs == 2  # can be read still


def test_the_group_of_a_run_that_has_ended_cannot_be_used_in_a_pool():
    """The main thread keeps it: globals of a test are copied into each run of a pool."""

    def first(bsp):
        threading.main_thread().kept = keep(bsp)

    def again(bsp):
        for name in PRIMITIVES:
            use(name, threading.main_thread().kept)
        return bsp.allreduce(1)

    with bsplib.Pool(2) as pool:
        pool.run(first)
        assert pool.run(again) == [2, 2]


@pytest.mark.procs(2)
def test_a_sub_group_that_an_exception_left_open_ends_with_the_run():
    def main(bsp):
        kept[:] = [(bsp.partition([2]), None)]
        raise KeyError

    with pytest.raises(KeyError):
        bsplib.run(main, nprocs=2, backend="sim")
    use("sync", kept[0])


def error_in_another_thread(function):
    """Return what a function raises in a thread that does not run main; None if nothing."""
    errors = [None]

    def other():
        try:
            function()
        except bsplib.BspError as error:
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    return errors[-1]


def said_in_another_thread(bsp, name):
    """Raise what a primitive says in a thread that does not run main."""
    error = error_in_another_thread(lambda: PRIMITIVES[name](bsp, np.zeros(3)))
    raise RuntimeError(type(error).__name__, str(error))


@pytest.mark.procs(2)
@pytest.mark.parametrize("name", [*OTHERS, *IN_CORE])
def test_another_thread_than_that_of_main_cannot_use_a_group(run, name):
    with pytest.raises(RuntimeError, match=rf"{name}: this is not the thread that runs main"):
        run(said_in_another_thread, name)


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("name", IN_CORE)
def test_another_thread_cannot_use_the_quick_way_either(bsp, name):
    x = bsp.zeros(3)
    bsp.sync()
    for _ in range(2):  # the first transfers are checked
        bsp.put(0, np.zeros(3), x)
        bsp.hpput(0, np.zeros(3), x)
        bsp.get(0, x)
        bsp.send(0, 1)
        bsp.sync()
    said = error_in_another_thread(lambda: PRIMITIVES[name](bsp, x))
    unread = bsp.qsize()[0]
    bsp.sync()
    assert (type(said), bsp.qsize()[0]) == (bsplib.UsageError, 0)
    assert str(said).startswith(f"{name}: this is not the thread that runs main")
    assert unread == (0 if bsp.pid else bsp.nprocs)  # the messages are still there


def test_another_thread_cannot_leave_a_sub_group(run):
    def leave(sub):
        with suppress(KeyError), sub:
            raise KeyError

    def main(bsp):
        with bsp.partition([bsp.nprocs]) as sub:
            assert error_in_another_thread(lambda: leave(sub)) is None
            return sub.allreduce(1)

    assert set(run(main)) == {len(run(main))}


def test_an_iterator_of_messages_belongs_to_its_thread(bsp):
    bsp.send(bsp.pid, 7)
    bsp.sync()
    found = bsp.messages()
    said = error_in_another_thread(lambda: next(found))
    assert str(said).startswith("messages: this is not the thread that runs main")
    assert next(found)[2] == 7


def refusal(function, *arguments):
    """Return what a call says that cannot be made now."""
    with pytest.raises(bsplib.PartitionError) as caught:
        function(*arguments)
    return str(caught.value)


def test_an_iterator_of_messages_ends_with_its_sub_group(run):
    def main(bsp):
        with bsp.split(0) as sub:
            sub.send(sub.pid, 8.0)
            sub.sync()
            found = sub.messages()
        with bsp.split(0) as other:
            other.send(other.pid, 6.0)
            other.sync()
            return [refusal(use, found) for use in (next, list, len)]

    for said in run(main):
        for text in said:
            assert text.startswith("messages: this group cannot be used: it has been left (done)")


def test_an_iterator_of_messages_rests_with_its_group(bsp):
    bsp.send(bsp.pid, 8.0)
    bsp.sync()
    found = bsp.messages()
    with bsp.partition([*range(1, bsp.nprocs + 1)]):
        said = refusal(next, found)
    assert said.startswith("messages: this group cannot be used: a sub-group of it is open")
    assert next(found)[2] == 8.0


def test_another_virtual_processor_cannot_use_a_group():
    def main(bsp):
        kept.append(bsp)
        bsp.sync()
        kept[0].sync()

    with pytest.raises(
        bsplib.UsageError, match=r"sync: the group of process \d is used by another"
    ):
        bsplib.run(main, nprocs=2, backend="sim")


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("name", ["pid", "nprocs", "machine"])
def test_attributes_can_be_read_only(run, name):
    def main(bsp):
        with pytest.raises(AttributeError, match=name):
            setattr(bsp, name, 3)
        with bsp.partition([bsp.nprocs]) as sub:
            assert getattr(sub, name) == getattr(bsp, name)
        return bsp.pid

    assert run(main) == list(range(len(run(main))))


def test_a_group_is_freed_with_its_arrays_as_soon_as_nobody_has_it():
    groups = []

    def main(bsp):
        bsp.zeros(8)
        bsp.sync()
        with bsp.partition([bsp.nprocs]) as sub:
            sub.put(0, np.ones(3), sub.zeros(3))
            sub.sync()
            groups.append(weakref.ref(sub))
        groups.append(weakref.ref(bsp))

    gc.disable()
    try:
        bsplib.run(main, nprocs=2, backend="sim")
        assert [group() for group in groups] == [None] * 4
    finally:
        gc.enable()
