"""Which situations a program enters: way x duty x next event x kind of sync.

The transfers of a process are plain records and gets, which the core makes and delivers, or some of
them are described by the primitives. It has had some duties in a superstep, and then comes an event
that may let it use memory again while others still read.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

import bsplib

from .program import Actor
from .steps import (
    Allocate,
    Get,
    GetAt,
    Oblsync,
    Partition,
    Program,
    Put,
    PutAt,
    Send,
    Split,
    Sync,
    is_large,
    plain,
)

WAYS = ("plain", "described")
"""``described``: the process has a put_at, asks for the values of a get, which their owner sends in
a second meeting, or announces registrations to all."""
DUTIES = ("put", "get", "get_at", "message", "nothing", "serves")
"""``serves``: it only answers a ``get_at`` of another process, and sends nothing."""
EVENTS = ("same group", "leave", "next sub-group", "root and allocate", "split", "next run")
KINDS = ("sync", "oblsync")


class Cell(NamedTuple):
    way: str
    duty: str
    event: str
    kind: str


def _can_be(cell: Cell) -> bool:
    if cell.kind == "oblsync":  # no gets are pending, and nothing is announced
        nothing = cell.way == "described" and cell.duty == "nothing"
        return cell.duty in ("put", "message", "nothing") and not nothing
    return (cell.way, cell.duty) != ("plain", "get_at")  # a get_at asks


CELLS = tuple(filter(_can_be, map(Cell._make, itertools.product(WAYS, DUTIES, EVENTS, KINDS))))
"""All that a program can enter."""


_LEFT: list[tuple[Any, Any]] = []
"""Large arrays of messages that the last run in this process of a pool has left, and what they
had: their memory is this process's own for as long as they live."""


def tracing_main(bsp: bsplib.Group, program: Program) -> tuple[list[Any], set[Cell]]:
    """Run a program; return the log of this process, and the cells that it has entered."""
    tracer = _Tracer()
    log = tracer.run(bsp, program)
    for array, before in _LEFT:
        assert plain(array) == before, "an array that a run has left is not as it was"
    _LEFT[:] = [(each, plain(each)) for each in tracer.kept if is_large(each)]
    return log, tracer.cells()


class _End(NamedTuple):
    """A superstep of this process has ended."""

    way: str
    duties: frozenset[str]
    kind: str


class _Tracer(Actor):
    """One process, which writes down how its supersteps end, and what comes between them."""

    def __init__(self) -> None:
        super().__init__()
        self._events: list[_End | str] = []
        self._duties: set[str] = set()
        self._served: dict[int, set[int]] = {}
        self._depth = 0
        self._has_put_at = False

    def cells(self) -> set[Cell]:
        """Return the cells entered: each end of a superstep, with all events up to the next."""
        entered = set()
        ends = [number for number, event in enumerate(self._events) if isinstance(event, _End)]
        for number, following in itertools.zip_longest(ends, ends[1:]):
            end = self._events[number]
            assert isinstance(end, _End)
            between = {str(event) for event in self._events[number + 1 : following]}
            if following is None:
                between.add("next run")
            elif not between:
                between.add("same group")
            for duty, event in itertools.product(end.duties, between.intersection(EVENTS)):
                entered.add(Cell(end.way, duty, event, end.kind))
        return entered

    def block(self, bsp: bsplib.Group, block: list[Any], path: str, fetched: list[Any]) -> bool:
        served: set[int] = set()
        for step in block:
            if isinstance(step, GetAt):
                served |= {int(pid) for pid in np.ravel(step.pids)} - {step.pid}
            elif isinstance(step, Sync | Oblsync | Split):
                self._served[id(step)] = served
                served = set()
        return super().block(bsp, block, path, fetched)

    def _end(self, bsp: bsplib.Group, step: Sync | Oblsync) -> bool:
        kind = "oblsync" if isinstance(step, Oblsync) else "sync"
        announces_or_asks: Any = kind == "sync" and (bsp._engine.changes or bsp._engine.asks)
        way = "described" if announces_or_asks or self._has_put_at else "plain"
        self._has_put_at = False
        nothing = "serves" if bsp.pid in self._served[id(step)] else "nothing"
        end = _End(way, frozenset(self._duties) or frozenset({nothing}), kind)
        self._duties.clear()
        stays = super()._end(bsp, step)
        self._events.append(end)
        return stays

    def _partition(self, bsp: bsplib.Group, step: Partition, path: str) -> None:
        self._events.append("next sub-group")
        super()._partition(bsp, step, path)
        self._events.append("leave")

    def _split(self, bsp: bsplib.Group, step: Split, path: str, fetched: list[Any]) -> None:
        self._events.append("split")
        self._duties.clear()
        self._has_put_at = False
        super()._split(bsp, step, path, fetched)
        self._events.append("leave")

    def _inside(self, sub: bsplib.Group, block: list[Any], path: str) -> None:
        self._depth += 1
        super()._inside(sub, block, path)
        self._depth -= 1

    def _get(self, bsp: bsplib.Group, step: Get | GetAt) -> Any:
        self._duties.add("get" if isinstance(step, Get) else "get_at")
        return super()._get(bsp, step)

    def _do(self, bsp: bsplib.Group, step: Any) -> None:
        if isinstance(step, Put | PutAt):
            self._duties.add("put")
            self._has_put_at |= isinstance(step, PutAt)
        elif isinstance(step, Send):
            self._duties.add("message")
        elif isinstance(step, Allocate) and not self._depth and self._events[-1:] == ["leave"]:
            self._events.append("root and allocate")
        super()._do(bsp, step)
