"""Runs a program that is data, and writes down everything it can see."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import bsplib

from .steps import (
    Allocate,
    Array,
    Change,
    Get,
    GetAt,
    Handle,
    Make,
    Misuse,
    Oblsync,
    Partition,
    Pause,
    Place,
    Pop,
    Program,
    Push,
    Put,
    PutAt,
    Read,
    Ref,
    Scope,
    Send,
    Split,
    Sync,
    TagSize,
    drop_oldest,
    plain,
    values,
)


def main(bsp: bsplib.Group, program: Program) -> list[Any]:
    """Run a program; return the log of this process."""
    return _run(bsp, program)


def charging_main(bsp: bsplib.Group, program: Program) -> list[Any]:
    """Do as :func:`main`, in a time that is the same in every run."""
    bsp.charge(1e-6 * (bsp.pid + 1))
    return _run(bsp, program)


def _run(bsp: bsplib.Group, program: Program) -> list[Any]:
    return Actor().run(bsp, program)


class Actor:
    """One process."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.handles: dict[str, Any] = {}
        self.kept: list[Any] = []
        self.held: defaultdict[str, list[Any]] = defaultdict(list)
        self.log: list[Any] = []

    def run(self, bsp: bsplib.Group, program: Program) -> list[Any]:
        """Take all steps of a program; return the log."""
        self.block(bsp, program.block, "", [])
        self._let_go("")
        self.log.append(("kept", plain(self.kept)))
        return self.log

    def block(self, bsp: bsplib.Group, block: list[Any], path: str, fetched: list[Array]) -> bool:
        """Take the steps of a block; return False where this process is to leave the group.

        Args:
            bsp: group that the block belongs to.
            block: its steps.
            path: to the group, for the log.
            fetched: what gets of the superstep gave.
        """
        for step in block:
            if getattr(step, "pid", None) not in (None, bsp.pid):
                continue
            match step:
                case Sync() | Oblsync():
                    self._let_go(path)
                    if not self._end(bsp, step):
                        return False
                    for name in step.freed if isinstance(step, Sync) else ():
                        del self.arrays[name]
                    self._look(bsp, path, step.hidden, fetched)
                    fetched.clear()
                case Partition():
                    self._partition(bsp, step, path)
                case Split():
                    self._split(bsp, step, path, fetched)
                case Scope():
                    with bsp.scope():
                        stays = self.block(bsp, step.block, path, fetched)
                    if not stays:
                        return False
                case Get() | GetAt():
                    got = self._get(bsp, step)
                    if not isinstance(step.into, Ref):  # that one is seen among the arrays
                        fetched.append(got)
                case Read():
                    for action in step.actions:
                        self._read(bsp, action, path)
                case _:
                    self._do(bsp, step)
        return True

    def _let_go(self, path: str) -> None:
        """Look at the views of messages that end with the superstep."""
        if self.held[path]:
            self.log.append(("held", plain(self.held[path])))
            self.held[path].clear()

    # -- supersteps and groups ----------------------------------------------------------

    def _end(self, bsp: bsplib.Group, step: Sync | Oblsync) -> bool:
        """End the superstep; False if this process does not."""
        other = step.odd[1] if step.odd is not None and step.odd[0] == bsp.pid else None
        if other == "nothing":
            return False
        if other == "oblsync" or (isinstance(step, Oblsync) and other is None):
            bsp.oblsync(step.counts[bsp.pid] if isinstance(step, Oblsync) else 0)
        else:
            bsp.sync()
        return True

    def _look(
        self,
        bsp: bsplib.Group,
        path: str,
        hidden: list[tuple[int, str]],
        fetched: list[Array],
    ) -> None:
        seen = {
            name: plain(array)
            for name, array in self.arrays.items()
            if (bsp.pid, name) not in hidden
        }
        self.log.append((path, bsp.pid, bsp.nprocs, seen, plain(fetched)))

    def _partition(self, bsp: bsplib.Group, step: Partition, path: str) -> None:
        index = next(i for i, end in enumerate(step.ends) if bsp.pid < end)
        with bsp.partition(step.ends) as sub:
            self._inside(sub, step.blocks[index], f"{path}/{index}")
        self._drop(step.blocks[index])

    def _split(self, bsp: bsplib.Group, step: Split, path: str, fetched: list[Array]) -> None:
        self._let_go(path)
        pid = bsp.pid
        with bsp.split(step.colours[pid], step.keys[pid]) as sub:
            for name in step.freed:
                del self.arrays[name]
            self._look(bsp, path, step.hidden, fetched)
            fetched.clear()
            for index, members in enumerate(step.members()):
                if sub is not None and pid in members:
                    self._inside(sub, step.blocks[index], f"{path}/{index}")
        for block in step.blocks:
            self._drop(block)

    def _inside(self, sub: bsplib.Group, block: list[Any], path: str) -> None:
        self.block(sub, block, path, [])
        self._let_go(path)

    def _drop(self, block: list[Any]) -> None:
        """Forget arrays whose memory is free."""
        for step in block:
            if isinstance(step, Allocate):
                self.arrays.pop(step.name, None)
            elif isinstance(step, Scope):
                self._drop(step.block)

    # -- everything else ----------------------------------------------------------------

    def _array(self, ref: Ref) -> Array:
        return ref.of(self.arrays[ref.name])

    def _place(self, place: Place) -> Any:
        return self.handles[place.name] if isinstance(place, Handle) else self._array(place)

    def _value(self, source: Any) -> Any:
        return self._array(source) if isinstance(source, Ref) else source.make()

    def _do(self, bsp: bsplib.Group, step: Any) -> None:
        match step:
            case Allocate():
                self.arrays[step.name] = self.handles[step.name] = self._allocate(bsp, step)
            case Make():
                made = values(step.shapes[bsp.pid], step.dtype, step.seed + bsp.pid)
                self.arrays[step.name] = np.array(made, order=step.order)  # type: ignore[call-overload]
            case Push():
                ref = step.refs[bsp.pid]
                if step.absent != bsp.pid:
                    array = None if ref is None else self._array(ref)
                    self.handles[step.name] = bsp.push_reg(array)
            case Pop():
                bsp.pop_reg(self._place(step.place[bsp.pid]))
            case TagSize():
                self.log.append(("set_tagsize", bsp.set_tagsize(step.size)))
            case Put():
                self._put(bsp, step)
            case PutAt():
                op = None if step.op is None else getattr(np, step.op)
                place, source = self._place(step.place), self._value(step.source)
                bsp.put_at(step.pids, step.indices, source, place, op=op)
            case Send():
                bsp.send(step.to, self._value(step.payload), step.tag)
            case Pause():
                time.sleep(step.milliseconds / 1000)
            case Change():
                self._array(step.ref)[...] = step.value
            case Misuse():
                self._misuse(bsp, step)
            case _:
                raise AssertionError(step)

    def _allocate(self, bsp: bsplib.Group, step: Allocate) -> Array:
        shape = step.shapes[bsp.pid]
        content = values(shape, step.dtype, step.seed + bsp.pid)
        if step.how == "array":
            return bsp.array(content)
        if step.how == "zeros":
            return bsp.zeros(shape, step.dtype)
        made = bsp.empty(shape, step.dtype)
        made[...] = content
        return made

    def _put(self, bsp: bsplib.Group, step: Put) -> None:
        put: Callable[..., None] = bsp.hpput if step.hp else bsp.put
        source, place = self._value(step.source), self._place(step.place)
        put(np.int64(step.to), source, place, offset=step.offset, at=step.at)

    def _get(self, bsp: bsplib.Group, step: Get | GetAt) -> Array:
        into = None if step.into is None else self._value(step.into)
        place = self._place(step.place)
        if isinstance(step, GetAt):
            return bsp.get_at(step.pids, step.indices, place, out=into)
        get = bsp.hpget if step.hp else bsp.get
        got: Array = get(step.of, place, into, offset=step.offset, at=step.at)
        assert into is None or got is into
        return got

    def _read(self, bsp: bsplib.Group, action: str, path: str) -> None:
        match action:
            case "qsize":
                self.log.append(bsp.qsize())
            case "get_tag":
                self.log.append(("get_tag", plain(bsp.get_tag())))
            case "hpmove":
                message = bsp.hpmove()
                self.log.append(("hpmove", plain(message and tuple(message))))
            case "hold":
                message = bsp.hpmove()
                if message is not None:
                    self.held[path].append(tuple(message))
            case "move" if bsp.qsize()[0]:
                self._keep(bsp.move())
            case "first":
                for source, tag, payload in bsp.messages():
                    self.log.append(("message", source, plain(tag)))
                    self._keep(payload)
                    break
            case "rest":
                for source, tag, payload in bsp.messages():
                    self.log.append(("message", source, plain(tag)))
                    self._keep(payload)

    def _keep(self, payload: Any) -> None:
        """Note what came; it is looked at again at the end, for it is the reader's own."""
        assert not isinstance(payload, np.ndarray) or payload.flags.writeable
        self.log.append(plain(payload))
        self.kept.append(payload)
        self.log += drop_oldest(self.kept)

    def _misuse(self, bsp: bsplib.Group, step: Misuse) -> None:
        place = None if step.place is None else self._place(step.place)
        match step.what:
            case "raise":
                raise ZeroDivisionError(step.what)
            case "move":
                bsp.move()
            case "read-only":
                bsp.push_reg(np.frombuffer(b"12345678"))
            case "partition":
                bsp.partition([bsp.nprocs + 1])
            case "partition falls":
                bsp.partition([bsp.nprocs, 0, bsp.nprocs])
            case "parent":
                with bsp.partition([bsp.nprocs]):
                    bsp.qsize()
            case "done":
                sub = bsp.partition([bsp.nprocs])
                sub.send(0, b"pending")
                sub.done()
            case "list":
                bsp.put(bsp.pid, 1, place, at=[0])
            case "both":
                bsp.put(bsp.pid, 1, place, offset=0, at=0)
            case "get both":
                bsp.get(bsp.pid, place, np.zeros(1), offset=0, at=0)
            case "number":
                bsp.put(bsp.pid, 1, 5)
            case "unregistered":
                bsp.put(bsp.pid, 1, np.zeros(3))
            case "pop":
                bsp.pop_reg(np.zeros(3))
            case "get length":
                bsp.get(bsp.pid, place)
            case "object":
                bsp.push_reg(np.array([None]))
            case "negative size":
                bsp.zeros(-1)
            case "lambda":
                bsp.send(bsp.pid, lambda: None)
            case "abort":
                bsp.abort("enough")
            case "exit":
                raise SystemExit(3)
            case _:
                raise AssertionError(step)
