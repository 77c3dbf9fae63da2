"""Programs with mistakes: type checkers must report each line that ends with ``# wrong``.

Of the arguments of ``main`` they know the first one by position, and all that are given by keyword
alone. ``run`` itself checks the number and the names of the others before anything starts.
"""

from __future__ import annotations

import numpy as np

import bsplib
from bsplib import Group


def one(bsp: Group, n: int) -> float:
    return n / bsp.nprocs


def two(bsp: Group, n: int, name: str = "x", *, verbose: bool = False) -> str:
    return name * n if verbose else ""


def three(bsp: Group, a: int, b: int, c: int, *, verbose: bool) -> int:
    return a + b + c


def no_group() -> int:
    return 3


bsplib.run(one, "3")  # wrong
bsplib.run(two, "a")  # wrong
bsplib.run(two, "a", verbose=True)  # wrong
bsplib.run(two, n="1", verbose=True)  # wrong
bsplib.run(three, "1", 2, c=3, verbose=True)  # wrong
bsplib.run(one)  # wrong
bsplib.run(one, nprocs=4)  # wrong
bsplib.run(one, m=3, nprocs=4)  # wrong
bsplib.run(one, n="3", nprocs=4)  # wrong
bsplib.run(two, nprocs=4, verbose=True)  # wrong
bsplib.run(three, 1, 2, 3, verbose=True, nprocs="2")  # wrong
bsplib.run(no_group)  # wrong
bsplib.run(no_group())  # wrong
bsplib.run(one, 3, backend="smh")  # wrong
bsplib.run(one, 3, nprocs="2")  # wrong
bsplib.run(one, 3, wait="sleep")  # wrong
bsplib.run(one, 3, start_method="thread")  # wrong
bsplib.run(one, 3, timeout="5 s")  # wrong
bsplib.run(one, 3).sum()  # wrong
bsplib.run(one, 3)[0].upper()  # wrong
bsplib.Pool(backend="cloud")  # wrong

with bsplib.Pool(nprocs=2) as pool:
    pool.run(one, "3")  # wrong
    pool.run(one, 3, timeout="5 s")  # wrong
    pool.run(one)  # wrong
    pool.run(one, timeout=3)  # wrong
    pool.run(one, m=3, timeout=3)  # wrong
    pool.run(three, "1", 2, c=3, verbose=True)  # wrong
    pool.run(no_group)  # wrong


def main(bsp: Group) -> None:
    x = bsp.zeros(3)
    bsp.zeros("3")  # wrong
    bsp.zeros(3.5)  # wrong
    bsp.zeros(3, dtyp=int)  # wrong
    bsp.put("1", 1.0, x)  # wrong
    bsp.put(1, 1.0)  # wrong
    bsp.put(1, 1.0, x, 3)  # wrong
    bsp.put(0, 1.0, [1, 2])  # wrong
    bsp.put(0, x, 1.0)  # wrong
    bsp.hpput(0, x, [1, 2])  # wrong
    bsp.get(0, [1, 2])  # wrong
    bsp.hpget(0, [1, 2])  # wrong
    bsp.get(0, x, [1, 2])  # wrong
    bsp.put_at(0, 0, 1.0, [1, 2])  # wrong
    bsp.get_at(0, 0, [1, 2])  # wrong
    bsp.on(0, [1, 2])  # wrong
    bsp.push_reg([1, 2])  # wrong
    bsp.pop_reg([1, 2])  # wrong
    bsp.put(1, 1.0, x, offset="3")  # wrong
    bsp.get(1.5, x)  # wrong
    bsp.get(0, x, offset=1, count="3")  # wrong
    bsp.send(0)  # wrong
    bsp.sync(3)  # wrong
    bsp.on("2", x)  # wrong
    bsp.pid = 3  # wrong
    print(bsp.nproc)  # wrong
    bsp.gather(3)[0]  # wrong
    bsp.gather(x, axis="0")  # wrong
    bsp.allreduce(3).upper()  # wrong
    bsp.allreduce(3, 4)  # wrong
    bsp.allreduce(x, out="text")  # wrong
    bsp.broadcast("a") + 3  # wrong
    bsp.exscan(3) + 1  # wrong
    bsp.oblsync("3")  # wrong
    bsp.charge("1 s")  # wrong
    bsp.put_at(0, 0, 1.0, x, op=3)  # wrong
    print(bsp.array([1, 2], np.int16).foo)  # wrong
