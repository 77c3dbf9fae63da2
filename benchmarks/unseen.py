"""Six small programs that differ in how they communicate and compute.

Each is a ``main(bsp, n, seed)`` that computes with numpy and exchanges with the primitives of the
library. Those of ``DATA`` depend on their random data; the others do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bsplib import Group

Main = Callable[[Group, int, int], Any]


class WorkOf:
    """What processes are charged for: operations with noise, or nothing, so that they are timed."""

    is_charged = True
    noise = 0.05
    """Standard deviation of the logarithm of each charge."""
    operation_s, part_s = 2e-9, 5e-6
    """Seconds of an operation, and of a part of a superstep however small it is."""


def charge(bsp: Group, operations: float) -> None:
    """Charge a process for operations, with noise that is the same in every recording."""
    if WorkOf.is_charged:
        bsp.charge(0.0)  # from here on, nothing is timed
        seed = (bsp.nprocs, round(operations), round(bsp.time() * 1e9))
        noise = np.random.default_rng(seed).normal(0, WorkOf.noise)
        bsp.charge(float((WorkOf.part_s + WorkOf.operation_s * operations) * np.exp(noise)))


def share(n: int, pid: int, nprocs: int) -> range:
    """Return the elements of a process, where the first blocks are longer by one."""
    short, longer = divmod(n, nprocs)
    first = pid * short + min(pid, longer)
    return range(first, first + short + (pid < longer))


def rows_of(nprocs: int) -> int:
    """Return the greatest divisor of a number that is at most its square root."""
    rows = int(nprocs**0.5)
    while nprocs % rows:
        rows -= 1
    return rows


def jacobi(bsp: Group, n: int, _seed: int) -> float:
    """Relax an n x n grid, in blocks of a grid of processes, with a halo of one row and column."""
    charge(bsp, 1)
    rows = rows_of(bsp.nprocs)
    columns = bsp.nprocs // rows
    row, column = divmod(bsp.pid, columns)
    high, wide = len(share(n, row, rows)), len(share(n, column, columns))
    grid = np.zeros((high + 2, wide + 2))
    grid[1:-1, 1:-1] = bsp.pid + 1.0
    edges = {"up": np.zeros(wide), "down": np.zeros(wide)}
    edges |= {"left": np.zeros(high), "right": np.zeros(high)}
    for edge in edges.values():
        bsp.push_reg(edge)
    charge(bsp, high * wide)
    bsp.sync()
    for _ in range(5):
        if row > 0:
            bsp.put(bsp.pid - columns, grid[1, 1:-1], edges["down"])
        if row < rows - 1:
            bsp.put(bsp.pid + columns, grid[-2, 1:-1], edges["up"])
        if column > 0:
            bsp.put(bsp.pid - 1, grid[1:-1, 1], edges["right"])
        if column < columns - 1:
            bsp.put(bsp.pid + 1, grid[1:-1, -2], edges["left"])
        bsp.sync()
        grid[0, 1:-1], grid[-1, 1:-1] = edges["up"], edges["down"]
        grid[1:-1, 0], grid[1:-1, -1] = edges["left"], edges["right"]
        inner = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
        grid[1:-1, 1:-1] = 0.25 * inner
        charge(bsp, 6 * high * wide)
    return float(bsp.allreduce(float(np.abs(grid).max()), "max"))


def sparse(bsp: Group, n: int, seed: int) -> float:
    """Multiply a sparse matrix with random columns by a vector, of which parts are fetched."""
    charge(bsp, 1)
    generator = np.random.default_rng((seed, bsp.pid))
    mine = share(n, bsp.pid, bsp.nprocs)
    columns = generator.integers(0, n, size=(len(mine), 6))
    owners = np.searchsorted(
        [share(n, pid, bsp.nprocs).stop for pid in range(bsp.nprocs)], columns, side="right"
    )
    needed = [np.unique(columns[owners == pid]) for pid in range(bsp.nprocs)]
    charge(bsp, 6 * len(mine) * np.log2(6 * len(mine)))
    asked = bsp.alltoall(needed)
    x = np.ones(len(mine))
    for _ in range(3):
        parts = bsp.alltoall([x[each - mine.start] for each in asked])
        whole = np.zeros(n)
        for each, part in zip(needed, parts, strict=True):
            whole[each] = part
        x = whole[columns].sum(axis=1)
        charge(bsp, 8 * len(mine) + n)
        x /= bsp.allreduce(float(x @ x)) ** 0.5
    return float(x.sum())


def quicksort(bsp: Group, n: int, seed: int) -> int:
    """Sort keys by pivots, each of which divides a group of processes in two."""
    charge(bsp, 1)
    keys = np.random.default_rng((seed, bsp.pid)).random(len(share(n, bsp.pid, bsp.nprocs)))
    charge(bsp, len(keys) * np.log2(len(keys)))
    return len(_sorted(bsp, np.sort(keys)))


def _sorted(group: Group, keys: Any) -> Any:
    if group.nprocs == 1:
        return keys
    half = group.nprocs // 2
    pivot = np.median(np.concatenate(group.allgather(_middle(keys))))
    at = int(np.searchsorted(keys, pivot))
    low = group.pid < half
    partner = group.pid + half if low else (group.pid - half) % half
    group.send(partner, (keys[at:] if low else keys[:at]).copy())
    group.sync()
    parts = [keys[:at] if low else keys[at:], *(part for _, _, part in group.messages())]
    charge(group, 3 * sum(map(len, parts)))
    with group.split(0 if low else 1) as part:
        return _sorted(part, np.sort(np.concatenate(parts)))


def _middle(keys: Any) -> Any:
    return keys[len(keys) // 2 : len(keys) // 2 + 1] if len(keys) else np.array([0.5])


def ring(bsp: Group, n: int, seed: int) -> float:
    """Sum forces of n bodies on each other; blocks of bodies go round a ring of processes."""
    charge(bsp, 1)
    own = np.random.default_rng((seed, bsp.pid)).random((len(share(n, bsp.pid, bsp.nprocs)), 3))
    block, force = own.copy(), np.zeros_like(own)
    for _ in range(bsp.nprocs):
        for start in range(0, len(own), 64):
            apart = own[start : start + 64, None, :] - block[None, :, :]
            scale = ((apart**2).sum(axis=2) + 1e-3) ** -1.5
            force[start : start + 64] += (apart * scale[:, :, None]).sum(axis=1)
        charge(bsp, 12 * len(own) * len(block))
        bsp.send((bsp.pid + 1) % bsp.nprocs, block)
        bsp.sync()
        ((_, _, block),) = bsp.messages()
    return float(bsp.reduce(float(force.sum())) or 0.0)


def butterfly(bsp: Group, n: int, seed: int) -> float:
    """Exchange halves of an array with the neighbours of a hypercube, one dimension at a time."""
    charge(bsp, 1)
    data = np.random.default_rng((seed, bsp.pid)).random(len(share(n, bsp.pid, bsp.nprocs)))
    data = np.sort(data)
    charge(bsp, len(data) * np.log2(max(len(data), 2)))
    distance = 1
    while distance < bsp.nprocs:
        partner = bsp.pid ^ distance
        if partner < bsp.nprocs:
            bsp.send(partner, data)
        bsp.sync()
        for _, _, other in bsp.messages():
            both = np.sort(np.concatenate([data, other]))
            charge(bsp, 2 * len(data))
            data = both[: len(data)] if bsp.pid < partner else both[len(both) - len(data) :]
        distance *= 2
    return float(data.sum())


def power(bsp: Group, n: int, seed: int) -> float:
    """Iterate with a dense matrix in blocks of rows: the vector by allgather, its norm by scan."""
    charge(bsp, 1)
    mine = share(n, bsp.pid, bsp.nprocs)
    matrix = np.random.default_rng((seed, bsp.pid)).random((len(mine), n))
    charge(bsp, 4 * len(mine) * n)
    x: Any = bsp.scatter(np.ones(n) if bsp.pid == 0 else None, axis=0)
    for _ in range(4):
        whole = bsp.allgather(x, axis=0)
        x = matrix @ whole
        charge(bsp, len(mine) * n)
        x /= bsp.allreduce(float(x.max()), "max")
    found = bsp.gather(x, axis=0)
    history = bsp.scan(np.full(n // 8, float(bsp.pid)))
    return float(history.sum()) + (0.0 if found is None else float(found.sum()))


PROGRAMS: dict[str, Main] = {
    main.__name__: main for main in (jacobi, sparse, quicksort, ring, butterfly, power)
}
DATA = ("sparse", "quicksort")
"""Programs whose h-relations depend on their data: they are recorded with several seeds."""

SIZES: dict[str, tuple[int, ...]] = {
    "jacobi": (64, 128, 256),
    "sparse": (2000, 4000, 8000),
    "quicksort": (4096, 8192, 16384),
    "ring": (128, 256, 512),
    "butterfly": (4096, 8192, 16384),
    "power": (100, 200, 400),
}
"""The sizes that are recorded, with each number of processes."""
PROCESSES: dict[str, tuple[int, ...]] = {
    "jacobi": (1, 2, 4, 8),
    "sparse": (2, 4, 8, 16),
    "quicksort": (2, 4, 8, 16),
    "ring": (1, 2, 4, 8),
    "butterfly": (1, 2, 4, 8),
    "power": (2, 3, 4, 8),
}
FAR: tuple[tuple[int, int], ...] = ((8, 8), (8, 32), (16, 16), (16, 64))
"""Where they are predicted: the largest size times the first number, on the second of processes."""
SEEDS = (1, 2, 3)
