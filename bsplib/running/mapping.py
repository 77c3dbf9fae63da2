"""``bsplib.map``: a loop in parallel, for programs that need nothing else of BSP."""

from __future__ import annotations

import builtins
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from reprlib import repr as short
from typing import Any, NamedTuple, TypeVar, Unpack

import numpy as np

from bsplib.errors import ArgumentError
from bsplib.group import Group
from bsplib.running.launch import run
from bsplib.running.options import RunOptions
from bsplib.running.program_checks import check_options, check_runs
from bsplib.running.tickets import tickets

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Run = Callable[..., list["_Done"]]
"""Runs a program with arguments in all processes; returns what it returned, by pid."""

MOST_SHARES = 1 << 14
"""Greatest number of times that items are given out."""
_SHARE_S = 1e-3
"""Items that are given out at a time take about so long, where the caller does not say how many: to
give them out takes some 6 us. Towards the end there are fewer at a time, see ``_QUEUES``."""
_CLOCK_S = 1e-9
"""The least time that is told from none."""
_QUEUES = 4
"""A process takes at most this part of its share of the items that are left."""
_DRAW_S = 0.1
"""Seconds from one drawing of the progress bar to the next by the same process."""
_WIDTH = 40
"""Characters of the progress bar."""


class _Loop(NamedTuple):
    """What all processes are told."""

    items: Sequence[Any]
    chunk: int | None
    is_drawn: bool


class _Done(NamedTuple):
    """What a process has done."""

    stretches: list[tuple[int, int]]
    """The first item, and the one after the last, of items that follow each other."""
    results: list[Any]
    """Of the items of these stretches."""


def map(  # noqa: A001  # it does what the builtin does
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
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
        function: is called with one item.
        items: anything that can be iterated over; rows of an array are items.
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
    check_options("map", options, ("chunk", "progress"))
    return mapped(partial(run, **options), function, items, chunk=chunk, progress=progress)


def mapped(
    run_program: _Run,
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    chunk: int | None,
    progress: bool,
) -> list[_Result]:
    """Do as :func:`map`, in processes that the caller has.

    Args:
        run_program: lets them run a program.
        function: as for :func:`map`, and so are all others.
        items: what the function is called with.
        chunk: how many items are taken at a time.
        progress: draw a bar.
    """
    if not callable(function):
        raise ArgumentError(f"map: {function!r} is no function; write map(function, items)")
    check_runs("map", function, "returns its result")
    if chunk is not None and (not isinstance(chunk, int | np.integer) or chunk < 1):
        raise ArgumentError(f"map: chunk is {chunk!r}; it is an integer of at least 1, or None")
    loop = _Loop(_listed(items), chunk, progress and sys.stderr.isatty())
    with _bar_removed(shown=loop.is_drawn):
        parts = run_program(do_items, function, loop)
    return _in_order(parts, len(loop.items))


def _listed(items: Iterable[Any]) -> Sequence[Any]:
    """Return items that can be taken by their numbers."""
    if isinstance(items, Sequence) or (isinstance(items, np.ndarray) and items.ndim):
        return items  # type: ignore[return-value]  # an array has what is needed
    try:
        return list(items)
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


def do_items(bsp: Group, function: Callable[[Any], Any], loop: _Loop) -> _Done:
    """Call a function for items until all are taken; the program of each process.

    Args:
        bsp: the group.
        function: is called with one item.
        loop: the items.
    """
    chunk = loop.chunk or 1
    wanted = -(-len(loop.items) // chunk)
    with ExitStack() as stack:
        count, each, given = tickets(bsp, wanted, MOST_SHARES, stack)
        done = _Done([], [])
        size, now, next_s = 1, bsp.time(), 0.0
        while numbers := given.take(size):
            stretches = _stretches(numbers, each * chunk, len(loop.items))
            _do(function, loop.items, stretches, done)
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
    function: Callable[[Any], Any],
    items: Sequence[Any],
    stretches: Sequence[tuple[int, int]],
    done: _Done,
) -> None:
    """Call the function for the items of some stretches."""
    for first, last in stretches:
        before = len(done.results)
        try:
            _call(function, items, range(first, last), done.results)
        except Exception as error:
            number = first + len(done.results) - before
            with suppress(Exception):  # a foreign __setattr__ may forbid it
                error.add_note(f"[map: item {number}, {short(items[number])}]")
            raise
    done.stretches.extend(stretches)


def _call(
    function: Callable[[Any], Any], items: Sequence[Any], numbers: range, results: list[Any]
) -> None:
    """Append what the function returns for the items of these numbers."""
    count = len(results) + len(numbers)
    results.extend(builtins.map(function, builtins.map(items.__getitem__, numbers)))
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
    fitting = int(count * _SHARE_S / max(seconds, _CLOCK_S))
    return max(1, min(fitting, most))


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
