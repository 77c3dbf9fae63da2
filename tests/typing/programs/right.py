"""Programs that type checkers must accept, with the types that they must find."""

from __future__ import annotations

import functools
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib import Group


def one(bsp: Group, n: int) -> float:
    return n / bsp.nprocs


def two(bsp: Group, n: int, name: str = "x", *, verbose: bool = False) -> str:
    return name * n if verbose else ""


def three(bsp: Group, a: int, b: int, c: int, *, verbose: bool) -> int:
    return a + b + c


def five(bsp: Group, a: int, b: str, c: float, d: bytes, e: bool, *, verbose: bool = False) -> int:
    return a if verbose else len(b) + int(c) + len(d) + e


def seven(bsp: Group, a: int, b: int, c: int, d: int, e: int, f: int, g: str, *, h: int) -> int:
    return a + b + c + d + e + f + h + len(g)


def nothing(bsp: Group) -> None:
    bsp.sync()


def untyped(bsp, a, b=3):  # type: ignore[no-untyped-def]
    return a + b


class Solver:
    def solve(self, bsp: Group, n: int) -> list[int]:
        return [n] * bsp.pid


assert_type(bsplib.run(one, 3), list[float])
assert_type(bsplib.run(one, 3, nprocs=4, backend="sim", machine="ideal", timeout=5), list[float])
assert_type(bsplib.run(one, 3, profile="run.bsp", check=True, wait="spin"), list[float])
assert_type(bsplib.run(one, 3, start_method="spawn", sim_seed=3), list[float])
assert_type(bsplib.run(one, n=3, nprocs=2), list[float])
assert_type(bsplib.run(two, n=3, verbose=True, backend="sim", machine="ideal"), list[str])
assert_type(bsplib.run(three, 1, 2, 3, verbose=True, nprocs=2), list[int])
assert_type(bsplib.run(three, 1, 2, c=3, verbose=True, nprocs=2), list[int])
assert_type(bsplib.run(five, 1, "2", 3.0, d=b"4", e=True, nprocs=2), list[int])
assert_type(bsplib.run(five, 1, "2", 3.0, b"4", e=True, verbose=True, check=True), list[int])
assert_type(bsplib.run(five, 1, "2", 3.0, b"4", True, verbose=True, nprocs=2), list[int])
assert_type(bsplib.run(five, 1, "2", 3.0, b"4", True, nprocs=2), list[int])
assert_type(bsplib.run(seven, 1, 2, 3, 4, 5, 6, "7", h=8, nprocs=2), list[int])
assert_type(bsplib.run(two, 3), list[str])
assert_type(bsplib.run(two, 3, "a"), list[str])
assert_type(bsplib.run(two, 3, verbose=True, nprocs=2), list[str])
assert_type(bsplib.run(two, 3, "a", verbose=True, backend="mpi"), list[str])
assert_type(bsplib.run(nothing), list[None])
assert_type(bsplib.run(untyped, 1), list[Any])
assert_type(bsplib.run(untyped, 1, b=2, nprocs=3), list[Any])
assert_type(bsplib.run(Solver().solve, 3), list[list[int]])
assert_type(bsplib.run(functools.partial(two, name="x"), 3), list[str])
assert_type(bsplib.run(lambda bsp: bsp.pid), list[int])

with bsplib.Pool(4, backend="shm") as pool:
    assert_type(pool.run(one, 3), list[float])
    assert_type(pool.run(one, n=3, timeout=3), list[float])
    assert_type(pool.run(two, 3, verbose=True, timeout=3), list[str])
    assert_type(pool.run(three, 1, 2, c=3, verbose=True), list[int])
    assert_type(pool.run(five, 1, "2", 3.0, b"4", True, verbose=True, timeout=3), list[int])
    assert_type(pool.run(seven, 1, 2, 3, 4, 5, 6, "7", h=8, timeout=3), list[int])


def arrays(bsp: Group) -> None:
    assert_type(bsp.zeros(3), NDArray[np.float64])
    assert_type(bsp.zeros((3, 4), np.int32), NDArray[np.int32])
    assert_type(bsp.zeros(np.int64(3), np.dtype(np.int8)), NDArray[np.int8])
    assert_type(bsp.zeros(3, bool), NDArray[np.bool_])
    assert_type(bsp.zeros(3, int), NDArray[np.int_])
    assert_type(bsp.empty(3, complex), NDArray[np.complex128])
    assert_type(bsp.zeros(3, "U3"), NDArray[Any])
    assert_type(bsp.zeros(3, [("key", int), ("value", float)]), NDArray[Any])
    x = bsp.zeros(3, np.float32)
    assert_type(bsp.zeros_like(x), NDArray[np.float32])
    assert_type(bsp.zeros_like(x, np.int8), NDArray[np.int8])
    assert_type(bsp.full(3, 1, np.uint8), NDArray[np.uint8])
    assert_type(bsp.array(x), NDArray[np.float32])
    assert_type(bsp.array([1, 2], np.int16), NDArray[np.int16])


def transfers(bsp: Group) -> None:
    x = bsp.zeros((3, 4), np.float32)
    right = np.int64(bsp.pid + 1) % bsp.nprocs
    bsp.put(right, [1, 2, 3, 4], x[0])
    bsp.put(right, 1.5, x, at=np.s_[:, -1])
    bsp.put(0, x[0], x, offset=np.int32(4))
    bsp.hpput(right, x[1], x[2])
    here = bsp.push_reg(x if bsp.pid else None)
    bsp.put(0, 1.5, here, offset=3)
    assert_type(bsp.push_reg(x), NDArray[np.float32])
    bsp.pop_reg(bsp.push_reg(None))
    assert_type(bsp.get(right, x, offset=2, count=3), NDArray[np.float32])
    out = np.empty(3, np.int16)
    assert_type(bsp.get(right, x[:, 0], out).dtype, np.dtype[np.int16])
    bsp.on(right, x)[1:, 0] = [1, 2]
    bsp.on(right, x)[-1] += 0
    got = bsp.on(right, x)[0]
    bsp.put_at([0, 1], [3, 4], 1.5, x, op="sum")
    bsp.put_at(0, ([0, 1], [2, 3]), [1.5, 2.5], x, op=np.maximum)
    bsp.get_at(np.arange(2), (1,), x)
    bsp.send(right, {"any": "object"}, tag=3)
    bsp.sync()
    for source, tag, payload in bsp.messages():
        assert_type(source, int)
        print(tag, payload, got.sum())


def outs(bsp: Group, floats: NDArray[np.float64]) -> None:
    x = np.arange(3.0)
    assert_type(bsp.allreduce(x, out=floats), NDArray[np.float64])
    assert_type(bsp.broadcast(x if bsp.pid == 0 else None, out=floats), NDArray[np.float64])
    assert_type(bsp.reduce(x, out=floats), NDArray[np.float64] | None)
    assert_type(bsp.exscan(x, "max", out=floats), NDArray[np.float64] | None)
    assert_type(bsp.scatter(x, axis=0, out=floats), NDArray[np.float64])
    assert_type(bsp.allgather(x, out=[floats, floats]), list[NDArray[np.float64]])
    assert_type(bsp.alltoall(x, axis=0, out=floats), NDArray[np.float64])


def collectives(bsp: Group, pair: tuple[int, str]) -> None:
    x = np.arange(3.0)
    assert_type(bsp.broadcast("text" if bsp.pid == 0 else None), str)
    assert_type(bsp.gather(bsp.pid), list[int] | None)
    assert_type(bsp.gather(x, axis=0), NDArray[Any] | None)
    assert_type(bsp.allgather("text"), list[str])
    assert_type(bsp.allgather([x], axis=0), NDArray[Any])
    assert_type(bsp.scatter(["a", "b"]), str)
    assert_type(bsp.scatter(x if bsp.pid == 0 else None, axis=0), NDArray[Any])
    assert_type(bsp.alltoall([1, 2]), list[int])
    assert_type(bsp.alltoall(x, axis=(0, -1)), NDArray[Any])
    assert_type(bsp.allreduce(bsp.pid), int)
    assert_type(bsp.allreduce(1.5, "max"), float)
    assert_type(bsp.allreduce([1, 2]), NDArray[Any])
    assert_type(bsp.reduce("text", max), str | None)
    assert_type(bsp.scan(bsp.pid, op=np.multiply), int)
    assert_type(bsp.exscan(bsp.pid), int | None)
    assert_type(bsp.allreduce(pair, max), tuple[int, str])


def groups(bsp: Group) -> None:
    with bsp.partition([1, bsp.nprocs]) as sub:
        sub.sync()
    with bsp.split(bsp.pid % 2, key=-bsp.pid) as row:
        if row is not None:
            row.sync()
    bsp.rng(3).normal(size=4)
    x = bsplib.shared([1, 2, 3])
    print(x.sum(), bsp.time() + bsp.pid, bsp.machine.name)
