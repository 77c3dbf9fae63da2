"""Random events in programs: a group is used after its life, or by whom it does not belong to.

Every process draws the same events from a seed. Whatever is used wrongly has to say why it cannot
be used, and the program that goes on after that has to find everything as if nothing had happened.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import greenlet
import numpy as np

import bsplib

PRIMITIVES: dict[str, Callable[[Any, Any], Any]] = {
    "sync": lambda bsp, x: bsp.sync(),
    "oblsync": lambda bsp, x: bsp.oblsync(0),
    "put": lambda bsp, x: bsp.put(0, 1.0, x, offset=0),
    "hpput": lambda bsp, x: bsp.hpput(0, np.zeros(3), x),
    "get": lambda bsp, x: bsp.get(0, x),
    "hpget": lambda bsp, x: bsp.hpget(0, x),
    "put_at": lambda bsp, x: bsp.put_at(0, 0, 1, x),
    "get_at": lambda bsp, x: bsp.get_at(0, 0, x),
    "on": lambda bsp, x: bsp.on(0, x),
    "send": lambda bsp, x: bsp.send(0, 1),
    "move": lambda bsp, x: bsp.move(),
    "hpmove": lambda bsp, x: bsp.hpmove(),
    "qsize": lambda bsp, x: bsp.qsize(),
    "get_tag": lambda bsp, x: bsp.get_tag(),
    "messages": lambda bsp, x: list(bsp.messages()),
    "set_tagsize": lambda bsp, x: bsp.set_tagsize(1),
    "zeros": lambda bsp, x: bsp.zeros(1),
    "push_reg": lambda bsp, x: bsp.push_reg(np.zeros(1)),
    "pop_reg": lambda bsp, x: bsp.pop_reg(x),
    "partition": lambda bsp, x: bsp.partition([bsp.nprocs]),
    "split": lambda bsp, x: bsp.split(0),
    "allreduce": lambda bsp, x: bsp.allreduce(1),
    "broadcast": lambda bsp, x: bsp.broadcast(1),
    "reduce": lambda bsp, x: bsp.reduce(1),
    "scan": lambda bsp, x: bsp.scan(1),
    "exscan": lambda bsp, x: bsp.exscan(1),
    "gather": lambda bsp, x: bsp.gather(1),
    "allgather": lambda bsp, x: bsp.allgather(1),
    "scatter": lambda bsp, x: bsp.scatter([1] * bsp.nprocs),
    "alltoall": lambda bsp, x: bsp.alltoall([1] * bsp.nprocs),
    "charge": lambda bsp, x: bsp.charge(1),
    "time": lambda bsp, x: bsp.time(),
    "abort": lambda bsp, x: bsp.abort("why"),
    "done": lambda bsp, x: bsp.done(),
}
UNTIL_THE_END = ("charge", "time", "abort")
"""Those that are refused only after the run."""
WAYS: dict[str, list[Callable[[Any, Any], Any]]] = {
    "put": [
        lambda bsp, x: bsp.put(0, [1.0, 2.0, 3.0], x),
        lambda bsp, x: bsp.put(0, np.ones(2), x[::2]),
        lambda bsp, x: bsp.put(0, np.ones(1), x[1:2]),
    ],
    "get": [lambda bsp, x: bsp.get(0, x[::2], np.zeros(2)), lambda bsp, x: bsp.get(0, x[1:])],
    "send": [lambda bsp, x: bsp.send(0, np.ones(3)), lambda bsp, x: bsp.send(0, b"abc")],
    "allreduce": [lambda bsp, x: bsp.allreduce(np.ones(3)), lambda bsp, x: bsp.allreduce(1.5)],
    "broadcast": [lambda bsp, x: bsp.broadcast(np.ones(3))],
    "gather": [lambda bsp, x: bsp.gather(np.ones(3), axis=0)],
    "allgather": [lambda bsp, x: bsp.allgather(np.ones(3), axis=0)],
    "alltoall": [lambda bsp, x: bsp.alltoall(np.ones(bsp.nprocs), axis=0)],
    "messages": [lambda bsp, x: bsp.messages()],
    "scope": [lambda bsp, x: bsp.scope().__enter__()],
}
"""Other ways of the core, and other checks."""
CALLS = [(name, call) for name, call in PRIMITIVES.items() if name not in UNTIL_THE_END]
CALLS += [(name, call) for name, calls in WAYS.items() for call in calls]

FORKED = "this group cannot be used: this process was forked from the one that runs main"
LEFT = "this group cannot be used: it has been left (done)"
OPEN = "this group cannot be used: a sub-group of it is open"
IN_NONE = "this group cannot be used: this process is in no sub-group of a split"
ENDED = "this group cannot be used: its run has ended"
FAILED = "this group cannot be used: it has failed ("
INTERRUPTED = "this group cannot be used: its superstep "
THREAD = "this is not the thread that runs main"


class Over(Exception):  # noqa: N818  # it is no error
    """What a timer of the program raises."""


def in_child(function: Callable[[], Any]) -> str:
    """Return what a function returns, or raises, in a forked process, as text."""
    reads, writes = os.pipe()
    os_pid = os.fork()
    if not os_pid:
        try:
            said = str(function())
        except BaseException as error:  # noqa: BLE001  # told to the parent
            said = f"{type(error).__name__}: {error}"
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        said = pipe.read()
    os.waitpid(os_pid, 0)
    return said


def in_thread(function: Callable[[], Any]) -> str:
    """Return what a function raises in another thread, as text."""
    said = ["nothing"]

    def other() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001  # told to the caller
            said[0] = f"{type(error).__name__}: {error}"

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    return said[0]


def here(function: Callable[[], Any]) -> str:
    """Return what a function raises, as text."""
    try:
        function()
    except bsplib.BspError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


@contextmanager
def interruption(name: str) -> Iterator[None]:
    """Raise as soon as the block calls a function of this name inside bsplib, as a signal might."""
    block = sys._getframe(2)

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == name:
            while frame is not None and frame is not block:
                frame = frame.f_back
            if frame is block:  # and not another virtual processor
                sys.setprofile(None)
                raise Over("time is up")

    sys.setprofile(look)
    try:
        with suppress(Over):
            yield
            raise AssertionError(f"{name} was not called")
    finally:
        sys.setprofile(None)


def fails(*_: Any) -> Any:
    """Raise, as an operation or in place of a payload that cannot be read."""
    raise Over("op")


class Unreadable:
    """A payload that only its sender can read, and only once: before it meets the others."""

    def __reduce__(self) -> Any:
        return _read_once, (_here(), next(_numbers))


_numbers = itertools.count()
_read: set[int] = set()


def _here() -> tuple[int, int]:
    """Name the process that executes this; virtual processors share one of the system."""
    return os.getpid(), id(greenlet.getcurrent())


def _read_once(sender: tuple[int, int], number: int) -> int:
    if sender != _here() or number in _read:
        fails()
    _read.add(number)
    return 0


INTERRUPTED_COLLECTIVES: dict[str, Callable[[Any, Any], Any]] = {
    "allreduce": lambda bsp, x: bsp.allreduce(1, op=fails),
    "reduce": lambda bsp, x: bsp.reduce(1, op=fails),
    "scan": lambda bsp, x: bsp.scan(1, op=fails),
    "exscan": lambda bsp, x: bsp.exscan(1, op=fails),
    "broadcast": lambda bsp, x: bsp.broadcast(x, root=bsp.nprocs - 1),
    "gather": lambda bsp, x: bsp.gather(x),
    "allgather": lambda bsp, x: bsp.allgather(x),
    "scatter": lambda bsp, x: bsp.scatter([x] * bsp.nprocs, root=bsp.nprocs - 1),
    "alltoall": lambda bsp, x: bsp.alltoall([x] * bsp.nprocs),
    "split": lambda bsp, x: bsp.split(0, x),
}


def kept() -> dict[int, Any]:
    """Return what the last run of a pool has left in this process, by the pid there.

    The main thread has it: globals of a program are copied into each run of a pool.
    """
    found: dict[int, Any] = threading.main_thread().__dict__.setdefault("kept_of_last_run", {})
    return found


def _leave(sub: Any) -> None:
    """Leave a sub-group by an exception."""
    with suppress(KeyError), sub:
        raise KeyError


def _leave_in_scope(sub: Any) -> None:
    said = here(lambda: _end_scope_late(sub))
    assert LEFT in said, said


def _end_scope_late(sub: Any) -> None:
    with sub.scope():
        sub.done()


def _returns_after_an_interruption(bsp: bsplib.Group) -> None:
    bsp.zeros(1)
    with interruption("prepare"):
        bsp.sync()


class Lives:
    """The events in one process of a program.

    Args:
        bsp: the group of the run.
        draw: the same on all processes.
        forks: this process may be forked.
    """

    def __init__(self, bsp: bsplib.Group, draw: random.Random, forks: bool) -> None:
        self.bsp = bsp
        self.draw = draw
        self._own = random.Random(draw.random())
        """For what one process draws alone."""
        self._forks = forks
        self.x = bsp.zeros(3)
        bsp.sync()
        self._use_all(bsp, self.x)
        self._use_what_the_last_run_left()
        kept()[bsp.pid] = bsp, self.x, bsp.messages(), bsp.on(0, self.x)

    def happen(self) -> None:
        """Let something happen, and see that all goes on."""
        draw, bsp = self.draw, self.bsp
        events = [self._thread, self._left, self._open, self._failed, self._none, self._nested]
        events += [self._interrupted] * 2
        if self._forks and draw.random() < 0.2:
            events = [self._fork]
        draw.choice(events)()
        self._use_all(bsp, self.x)

    def _use_all(self, bsp: bsplib.Group, x: Any) -> None:
        """Use the quick ways of a group, and compare what comes."""
        right, left, number = (bsp.pid + 1) % bsp.nprocs, (bsp.pid - 1) % bsp.nprocs, bsp.pid + 0.5
        for again in range(2):  # what was sent once is sent quickly
            bsp.put(right, np.full(3, number), x)
            bsp.put(right, number + 1, x, offset=1)
            for payload in (np.full(3, number), b"abc", 1):
                bsp.send(right, payload)
            got = bsp.hpget(right, x[:0])
            bsp.sync()
            assert x.tolist() == [left + 0.5, left + 1.5, left + 0.5], (again, x)
            assert got.size == 0
            bsp.get(right, x, got := np.empty(3))
            bsp.sync()
            assert got.tolist() == [number, number + 1, number]
            assert not bsp.qsize()[0]
            assert bsp.allreduce(1) == bsp.nprocs
            assert bsp.allreduce(np.ones(3)).tolist() == [bsp.nprocs] * 3
            assert bsp.broadcast(2.5) == 2.5
            assert bsp.allgather(1) == [1] * bsp.nprocs

    def _refused(
        self, bsp: bsplib.Group, x: Any, why: str, by: Callable[[Callable[[], Any]], str] = here
    ) -> None:
        """Let someone make some calls, which all have to be refused for a reason."""
        for _ in range(self._own.randint(2, 6)):
            name, call = self._own.choice(CALLS)
            said = by(lambda call=call: call(bsp, x))
            assert re.match(rf"\w+Error: {name}: {re.escape(why)}", said), (name, why, said)

    def _reading_refused(self, reading: Any, why: str, by: Any = here) -> None:
        use = self._own.choice([next, list, len])
        said = by(lambda: use(reading))
        assert re.match(rf"\w+Error: messages: {re.escape(why)}", said), said

    def _sub_group(self) -> Any:
        """Return a sub-group of some processes, with messages that can be read, and an array."""
        bsp, draw = self.bsp, self.draw
        if draw.random() < 0.5:
            sub = bsp.split(bsp.pid % 2)
        else:
            sub = bsp.partition(sorted([draw.randint(0, bsp.nprocs), bsp.nprocs]))
        y = sub.zeros(3)
        sub.sync()
        self._use_all(sub, y)
        for number in range(3):
            sub.send(sub.pid, number)
        sub.sync()
        return sub, y

    def _nested(self) -> None:
        said = here(lambda: bsplib.run(_returns_after_an_interruption, nprocs=1, backend="sim"))
        assert said.startswith(f"PartitionError: main: {INTERRUPTED}"), said

    # -- events -----------------------------------------------------------------------------------

    def _thread(self) -> None:
        bsp = self.bsp
        bsp.send(bsp.pid, 7)
        bsp.sync()
        reading = bsp.messages()
        self._refused(bsp, self.x, THREAD, in_thread)
        self._reading_refused(reading, THREAD, in_thread)
        sub, y = self._sub_group_without_supersteps()
        assert in_thread(lambda: _leave(sub)) == "nothing"
        self._use_all(sub, y)
        sub.done()
        assert next(reading)[2] == 7

    def _fork(self) -> None:
        bsp = self.bsp
        bsp.send(bsp.pid, 7)
        bsp.sync()
        reading = bsp.messages()
        self._reading_refused(reading, FORKED, in_child)
        self._refused(bsp, self.x, FORKED, in_child)
        assert next(reading)[2] == 7
        sub, y = self._sub_group()
        self._refused(sub, y, FORKED, in_child)
        assert in_child(lambda: _leave(sub)) == "None"
        sub.sync()
        self._use_all(sub, y)
        sub.done()
        none = bsp.split(None)
        self._refused(bsp, self.x, FORKED, lambda call: in_child(lambda: (none.done(), call())))
        none.done()

    def _open(self) -> None:
        bsp = self.bsp
        bsp.send(bsp.pid, 7)
        bsp.sync()
        reading = bsp.messages()
        sub, y = self._sub_group_without_supersteps()
        self._refused(bsp, self.x, OPEN)
        self._reading_refused(reading, OPEN)
        self._use_all(sub, y)
        sub.done()
        assert next(reading)[2] == 7

    def _sub_group_without_supersteps(self) -> Any:
        sub = self.bsp.partition([*range(1, self.bsp.nprocs + 1)])
        y = sub.zeros(3)
        sub.sync()
        return sub, y

    def _none(self) -> None:
        bsp = self.bsp
        with bsp.split(0 if bsp.pid == 0 else None) as sub:
            self._refused(bsp, self.x, IN_NONE if sub is None else OPEN)

    def _left(self) -> None:
        sub, y = self._sub_group()
        reading = sub.messages()
        there = sub.on(sub.pid, y)
        if self.draw.random() < 0.5:
            self.draw.choice([sub.done, lambda: _leave(sub), lambda: _leave_in_scope(sub)])()
        else:
            self._leave_with_an_inner_one(sub)
        with self.bsp.split(self.bsp.pid % 2) as other:
            other.send(other.pid, 6.0)
            other.sync()
            self._refused(sub, y, LEFT)
            self._reading_refused(reading, LEFT)
            said = here(lambda: there[:])
            assert LEFT in said, said
            assert [payload for _, _, payload in other.messages()] == [6.0]
        with sub:
            z = sub.zeros(3)
            sub.sync()
            self._use_all(sub, z)
            self._reading_refused(reading, LEFT)

    def _leave_with_an_inner_one(self, sub: Any) -> None:
        """Leave a sub-group in which another one is open, and then that one."""
        if self.draw.random() < 0.5:
            inner = sub.split(None)
            _leave(sub)
            inner.done()
            return
        inner = sub.split(0)
        z = inner.zeros(3)
        inner.sync()
        self._use_all(inner, z)
        _leave(sub)
        self._refused(inner, z, LEFT)
        assert LEFT in here(inner.done)

    def _interrupted(self) -> None:
        sub, y = self._sub_group()
        reading = sub.messages()
        name = self.draw.choice(["sync", "oblsync", *INTERRUPTED_COLLECTIVES])
        if sub.nprocs == 1:  # a collective would fail before it does anything
            name = "sync"
        victim, is_interrupted = self.draw.randrange(self.bsp.nprocs), True
        if name in ("sync", "oblsync"):
            is_interrupted = self.bsp.pid == victim  # alone: others may be in the same thread
            sub.zeros(1)  # so that all have to prepare it at the sync
            inside = "prepare" if name == "sync" else "exchange_oblivious"
            with interruption(inside) if is_interrupted else nullcontext():
                sub.sync() if name == "sync" else sub.oblsync(0)
        else:
            try:
                INTERRUPTED_COLLECTIVES[name](sub, Unreadable() if sub.pid else 0)
            except Over:
                pass
            else:  # nothing has come that is read or combined here
                is_interrupted = False
        if is_interrupted:
            self._refused(sub, y, INTERRUPTED)
            self._reading_refused(reading, INTERRUPTED)
        _leave(sub)
        self._refused(sub, y, INTERRUPTED if is_interrupted else LEFT)

    def _failed(self) -> None:
        sub, y = self._sub_group()
        if sub.nprocs > 1:
            if sub.pid == 0:
                sub.push_reg(np.zeros(1))
            said = here(sub.sync)
            assert said.startswith("SyncMismatchError"), said
        _leave(sub)
        self._refused(sub, y, FAILED if sub.nprocs > 1 else LEFT)

    def _use_what_the_last_run_left(self) -> None:
        if self.bsp.pid not in kept():
            return
        group, x, reading, there = kept()[self.bsp.pid]
        self._refused(group, x, ENDED)
        self._reading_refused(reading, ENDED)
        assert ENDED in here(lambda: there[:])
        name = self._own.choice(UNTIL_THE_END)
        said = here(lambda: PRIMITIVES[name](group, x))
        assert re.match(rf"\w+Error: {name}: {re.escape(ENDED)}", said), said
        said = here(lambda: self.bsp.put(0, 1.0, x, offset=0))
        assert said.startswith("RegistrationError"), said
