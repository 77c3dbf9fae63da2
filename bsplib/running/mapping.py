"""``bsplib.map``: a loop in parallel, for programs that need nothing else of BSP."""

from __future__ import annotations

import builtins
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import starmap
from reprlib import repr as short
from typing import Any, NamedTuple, TypeVar, Unpack

import numpy as np

from bsplib.backends.proc_visibility import same_system
from bsplib.errors import ArgumentError
from bsplib.group import Group
from bsplib.running.launch import run
from bsplib.running.options import RunOptions
from bsplib.running.program_checks import KEYWORDS, check_options, check_runs

_Result = TypeVar("_Result")
_Run = Callable[..., list["_Done"]]
"""Runs a program with arguments in all processes; returns what it returned, by pid."""

MOST_SHARES = 1 << 14
"""Greatest number of times that items are given out."""
_SHARE_S = 1e-3
"""Items that are given out at a time take about so long, where the caller does not say how many: to
give them out takes some 6 us. Towards the end there are fewer at a time, see ``_QUEUES``."""
_QUEUES = 4
"""A process takes at most this part of its share of the items that are left."""
_DRAW_S = 0.1
"""Seconds from one drawing of the progress bar to the next by the same process."""
_WIDTH = 40
"""Characters of the progress bar."""


class _Loop(NamedTuple):
    """What all processes are told."""

    items: Sequence[Any]
    are_arguments: bool
    """An item is a tuple of arguments."""
    chunk: int | None
    is_drawn: bool


class _Done(NamedTuple):
    """What a process has done."""

    stretches: list[tuple[int, int]]
    """The first item, and the one after the last, of items that follow each other."""
    results: list[Any]
    """Results for the items of these stretches."""


def map(  # noqa: A001  # it does what the builtin does
    function: Callable[..., _Result],
    items: Iterable[Any],
    *more: Iterable[Any],
    chunk: int | None = None,
    progress: bool = False,
    **options: Unpack[RunOptions],
) -> list[_Result]:
    """Call a function for each item, on several processes; return the results in order.

    Each process takes the next items when it has done those before, so that no process waits while
    there are items that nobody has taken. Function and items reach the processes once, at the
    start. The calls should not depend on each other, or on which process does them: there is no
    group in which they could communicate. For random numbers, let the item contain the seed.

    Args:
        function: is called with one item, or with one of each.
        items: anything that can be iterated over; rows of an array are items.
        *more: further items, for further arguments of the function; the shortest of all counts.
        chunk: how many items a process takes at a time. If None, it is one, or as many as take
            about 1 ms. Items are given out at most some 16,000 times, so that more of
            them are taken at a time where there are many.
        progress: draw a bar, if standard error is a terminal. It shows how many items processes
            have taken.
        **options: as for :func:`bsplib.run`. A trace (``profile=``) shows who waited.

    Returns:
        What ``function`` returned, in the order of the items.

    Raises:
        ArgumentError: ``function`` cannot be called, or would not run when called, ``items``
            cannot be iterated over, ``chunk`` is no integer of at least 1, or there is no such
            option.
        Exception: what ``function`` raised, in its own type, with a note that names the item. If
            several calls fail, it is the error of one of them.
        BspError: as :func:`bsplib.run`.

    Cost: an allgather and an allreduce of a few bytes before the loop, and a superstep that ends
    after it, in which those wait who have no more items. On several hosts each host is given its
    part of the items at the start.
    """
    check_options("map", options, ("chunk", "progress", *KEYWORDS))
    return mapped(partial(run, **options), function, (items, *more), chunk, progress=progress)


def mapped(
    run_program: _Run,
    function: Callable[..., _Result],
    items: Sequence[Iterable[Any]],
    chunk: int | None,
    *,
    progress: bool,
) -> list[_Result]:
    """Do as :func:`map`, in processes that the caller has.

    Args:
        run_program: lets them run a program.
        function: as for :func:`map`, and so are all others.
        items: what the function is called with, for each of its arguments.
        chunk: how many items are taken at a time.
        progress: draw a bar.
    """
    if not callable(function):
        raise ArgumentError(f"map: {function!r} is no function; write map(function, items)")
    check_runs("map", function, "returns its result")
    if chunk is not None and (not isinstance(chunk, int | np.integer) or chunk < 1):
        raise ArgumentError(f"map: chunk is {chunk!r}; it is an integer of at least 1, or None")
    loop = _Loop(_listed(items), len(items) > 1, chunk, progress and sys.stderr.isatty())
    with _bar_removed(shown=loop.is_drawn):
        parts = run_program(do_items, function, loop)
    return _in_order(parts, len(loop.items))


def _listed(items: Sequence[Iterable[Any]]) -> Sequence[Any]:
    """Return items that can be taken by their numbers; tuples where there are several of each."""
    if len(items) > 1:
        return [*zip(*builtins.map(_iterator, items), strict=False)]
    (only,) = items
    if isinstance(only, Sequence) or (isinstance(only, np.ndarray) and only.ndim):
        return only  # type: ignore[return-value]  # an array has what is needed
    return [*_iterator(only)]


def _iterator(items: Iterable[Any]) -> Iterator[Any]:
    try:
        return iter(items)
    except TypeError:
        if hasattr(type(items), "__iter__") and not isinstance(items, np.ndarray):
            raise
        raise ArgumentError(
            f"map: items are {short(items)}, of type {type(items).__name__}, over which nobody can "
            f"iterate; give a list"
        ) from None


def _in_order(parts: Iterable[_Done], count: int) -> list[Any]:
    results: list[Any] = [None] * count
    for stretches, mine in parts:
        at = 0
        for first, last in stretches:
            results[first:last] = mine[at : at + last - first]
            at += last - first
    return results


# -- in every process ---------------------------------------------------------------------------


def do_items(bsp: Group, function: Callable[..., Any], loop: _Loop) -> _Done:
    """Call a function for items until all are taken; the program of each process.

    Args:
        bsp: the group.
        function: is called for each item.
        loop: the items.
    """
    chunk = loop.chunk or 1
    unit = chunk * max(1, -(-len(loop.items) // (chunk * MOST_SHARES)))
    count = -(-len(loop.items) // unit)
    with ExitStack() as stack:
        given = tickets(bsp, count, stack)
        done = _Done([], [])
        size, now, next_s = 1, bsp.time(), 0.0
        while numbers := given.take(size):
            stretches = _stretches(numbers, unit, len(loop.items))
            _do(function, loop, stretches, done)
            began, now = now, bsp.time()
            if loop.chunk is None:
                most = (count - numbers[-1]) // (_QUEUES * bsp.nprocs)
                size = _fitting(len(numbers), now - began, most)
            if loop.is_drawn and time.monotonic() > next_s:
                next_s = time.monotonic() + _DRAW_S
                _draw((numbers[-1] + 1) / count)
        bsp.sync()  # where those wait who have no more items
    return done


def _do(
    function: Callable[..., Any],
    loop: _Loop,
    stretches: Sequence[tuple[int, int]],
    done: _Done,
) -> None:
    """Call the function for the items of some stretches."""
    for first, last in stretches:
        before = len(done.results)
        try:
            _call_function(function, loop, range(first, last), done.results)
        except Exception as error:
            number = first + len(done.results) - before
            with suppress(Exception):  # a foreign __setattr__ may forbid it
                error.add_note(f"[map: item {number}, {short(loop.items[number])}]")
            raise
    done.stretches.extend(stretches)


def _call_function(
    function: Callable[..., Any], loop: _Loop, numbers: range, results: list[Any]
) -> None:
    """Append what the function returns for the items of these numbers."""
    count = len(results) + len(numbers)
    call = starmap if loop.are_arguments else builtins.map
    results.extend(call(function, builtins.map(loop.items.__getitem__, numbers)))
    if len(results) < count:
        raise RuntimeError("map: the function raised StopIteration")


def _stretches(numbers: Sequence[int], unit: int, count: int) -> list[tuple[int, int]]:
    """Return the stretches of items of some tickets.

    Args:
        numbers: of the tickets.
        unit: items of a ticket; the last one may have fewer.
        count: number of all items.
    """
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return [(numbers[0] * unit, min(count, (numbers[-1] + 1) * unit))]
    return [(number * unit, min(count, (number + 1) * unit)) for number in numbers]


def _fitting(count: int, seconds: float, most: int) -> int:
    """Return how many tickets are to be taken next, after some that took a time."""
    fitting = most if seconds <= 0 else int(min(most, count * _SHARE_S / seconds))
    return max(1, fitting)


# -- the progress bar -----------------------------------------------------------------------------


def _draw(part: float) -> None:
    """Draw the bar; any process does, since each may be in a long call."""
    full = round(part * _WIDTH)
    bar = "#" * full + "." * (_WIDTH - full)
    print(f"\r[{bar}] {part:4.0%}", end="", file=sys.stderr, flush=True)


@contextmanager
def _bar_removed(*, shown: bool) -> Iterator[None]:
    """Remove the bar after the block."""
    try:
        yield
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# -- numbers from 0 on, each of which is taken by one process of a group, whenever it wants one ---
# Processes that share a loop take its next iterations when they have done those before. This needs
# something that all of them can change at any time, which no superstep gives. Here it is the length
# of a file in memory: the system lets one process after the other append to it, and no process
# waits for another one that computes. Processes open it by its place in ``/proc``, however they
# were started.
#
# Processes on several hosts have a file on each host. Number k is for the host of process k mod p:
# it gets as many numbers for each of its processes as the others. Where a process cannot open its
# file, each process takes the numbers k for which k mod p is its pid.


class Tickets:
    """The numbers that a process can take.

    Args:
        bsp: the group.
        numbers: those of this host; of this process alone where it has no file.
        file: descriptor of a file whose length is how many were taken; None where there is none.
    """

    def __init__(self, bsp: Group, numbers: Sequence[int], file: int | None) -> None:
        self._bsp = bsp
        self._numbers = numbers
        self._file = file
        self._taken = 0

    def take(self, most: int) -> Sequence[int]:
        """Return the next numbers, rising; none once all are taken.

        In virtual time they are given out in the order in which processes ask.

        Args:
            most: how many at most, at least 1.
        """
        self._bsp._check_usable("map")
        self._bsp._port.in_turn()
        if self._file is None:
            self._taken += most
        else:
            os.write(self._file, bytes(most))
            self._taken = os.lseek(self._file, 0, os.SEEK_CUR)  # behind what this process wrote
        return self._numbers[self._taken - most : self._taken]


def tickets(bsp: Group, count: int, stack: ExitStack) -> Tickets:
    """Make the tickets of a group; all its processes call this.

    Args:
        bsp: the group.
        count: how many tickets there are.
        stack: closes the file; before it does, all processes have to sync.
    """
    file = _made(bsp, stack)
    places = bsp.allgather((same_system() or b"%d" % bsp.pid, os.getpid(), file))
    systems = [system for system, _, _ in places]
    _, os_pid, first = places[systems.index(systems[bsp.pid])]
    opened = first if os_pid == os.getpid() else _opened(os_pid, first, stack)
    if not bsp.allreduce(opened is not None, "min"):
        return Tickets(bsp, range(bsp.pid, count, bsp.nprocs), None)
    here = [system == systems[bsp.pid] for system in systems]
    numbers = [number for number in range(count) if here[number % bsp.nprocs]]
    return Tickets(bsp, numbers, opened)


def _made(bsp: Group, stack: ExitStack) -> int | None:
    """Make a file to which this process, and others that open it, append.

    Virtual processors, which are in one process, need only one.
    """
    if bsp.pid and bsp._port.clock is not None:
        return None
    with suppress(OSError, AttributeError):  # too many are open; such files are of Linux
        memory = os.memfd_create("bsplib-map")
        try:
            return _opened(os.getpid(), memory, stack)
        finally:
            os.close(memory)
    return None


def _opened(os_pid: int, file: int | None, stack: ExitStack) -> int | None:
    """Return a descriptor for appending to a file of a process; None if it cannot be opened."""
    with suppress(OSError):
        opened = os.open(f"/proc/{os_pid}/fd/{file}", os.O_WRONLY | os.O_APPEND)
        stack.callback(os.close, opened)
        return opened
    return None
