"""Solutions of the twenty exercises; students hand in a file ``exercises.py`` with these names."""

from __future__ import annotations

import numpy as np


def greet(bsp):
    """1: say who this process is."""
    return f"process {bsp.pid} of {bsp.nprocs}"


def shift(bsp, value):
    """2: give a number to the next process in a ring."""
    x = bsp.zeros(1)
    bsp.put((bsp.pid + 1) % bsp.nprocs, value, x)
    bsp.sync()
    return x[0]


def mirror(bsp, x):
    """3: read the array of the process at the other end."""
    mine = bsp.array(x)
    theirs = bsp.get(bsp.nprocs - 1 - bsp.pid, mine)
    bsp.sync()
    return theirs


def collect(bsp, value):
    """4: gather numbers on process 0."""
    x = bsp.zeros(bsp.nprocs)
    bsp.put(0, value, x[bsp.pid : bsp.pid + 1])
    bsp.sync()
    return x.tolist() if bsp.pid == 0 else None


def total(bsp, value):
    """5: add numbers up, on all processes."""
    x = bsp.zeros(bsp.nprocs)
    for pid in range(bsp.nprocs):
        bsp.put(pid, value, x[bsp.pid : bsp.pid + 1])
    bsp.sync()
    return x.sum()


def spread(bsp, x):
    """6: broadcast in one stage."""
    copy = bsp.array(x)
    if bsp.pid == 0:
        for pid in range(1, bsp.nprocs):
            bsp.put(pid, x, copy)
    bsp.sync()
    return copy


def spread_in_two(bsp, x):
    """7: broadcast in two stages."""
    copy = bsp.array(x)
    pieces = np.array_split(np.arange(x.size), bsp.nprocs)
    if bsp.pid == 0:
        for pid in range(1, bsp.nprocs):
            bsp.put(pid, x[pieces[pid]], copy[pieces[pid][0] : pieces[pid][-1] + 1])
    bsp.sync()
    mine = slice(pieces[bsp.pid][0], pieces[bsp.pid][-1] + 1)
    for pid in range(bsp.nprocs):
        if pid != bsp.pid:
            bsp.put(pid, copy[mine], copy[mine])
    bsp.sync()
    return copy


def total_by_tree(bsp, value):
    """8: add numbers up on process 0, two at a time."""
    x = bsp.zeros(1)
    step = 1
    while step < bsp.nprocs:
        if bsp.pid % (2 * step) == step:
            bsp.put(bsp.pid - step, value, x)
        x[0] = 0
        bsp.sync()
        value = value + x[0]
        step *= 2
    return value if bsp.pid == 0 else None


def prefix(bsp, value):
    """9: add up the numbers of this process and those before it, in one superstep."""
    x = bsp.zeros(bsp.nprocs)
    for pid in range(bsp.pid, bsp.nprocs):
        bsp.put(pid, value, x[bsp.pid : bsp.pid + 1])
    bsp.sync()
    return x.sum()


def prefix_by_doubling(bsp, value):
    """10: the same with little communication, in more supersteps."""
    x = bsp.zeros(1)
    step = 1
    while step < bsp.nprocs:
        if bsp.pid + step < bsp.nprocs:
            bsp.put(bsp.pid + step, value, x)
        bsp.sync()
        if bsp.pid >= step:
            value = value + x[0]
        step *= 2
    return value


def largest(bsp, x):
    """11: find the largest element of all, and the process that has it."""
    found = bsp.zeros((bsp.nprocs, 2))
    for pid in range(bsp.nprocs):
        bsp.put(pid, [x.max(), bsp.pid], found[bsp.pid])
    bsp.sync()
    value, pid = max(found.tolist())
    return value, int(pid)


def dot(bsp, x, y):
    """12: the inner product of two vectors."""
    return total(bsp, x @ y)


def transpose(bsp, rows):
    """13: the rows of the transpose of a matrix."""
    count = len(rows)
    mine = bsp.zeros(rows.shape)
    for pid in range(bsp.nprocs):
        block = rows[:, pid * count : (pid + 1) * count]
        bsp.put(pid, block.T, mine[:, bsp.pid * count : (bsp.pid + 1) * count])
    bsp.sync()
    return mine


def product(bsp, rows, x):
    """14: a matrix times a vector."""
    whole = bsp.zeros(rows.shape[1])
    mine = slice(bsp.pid * x.size, (bsp.pid + 1) * x.size)
    for pid in range(bsp.nprocs):
        bsp.put(pid, x, whole[mine])
    bsp.sync()
    return rows @ whole


def heat(bsp, x, steps):
    """15: steps in which each element becomes the mean of its neighbours."""
    return _heat(bsp, x, steps, 1)


def heat_by_two(bsp, x, steps):
    """16: the same with half the supersteps."""
    return _heat(bsp, x, steps, 2)


def _heat(bsp, x, steps, width):
    left, right = (bsp.pid - 1) % bsp.nprocs, (bsp.pid + 1) % bsp.nprocs
    ghost = bsp.zeros(x.size + 2 * width)
    for _ in range(0, steps, width):
        ghost[width:-width] = x
        bsp.put(left, x[:width], ghost[-width:])
        bsp.put(right, x[-width:], ghost[:width])
        bsp.sync()
        x = ghost
        for _ in range(width):
            x = (x[:-2] + x[2:]) / 2
    return x


def histogram(bsp, x, bins):
    """17: how often each number occurs, with the counters distributed."""
    counters = bsp.zeros(bins // bsp.nprocs, int)
    counts = np.bincount(x, minlength=bins)
    numbers = np.arange(bins)
    bsp.put_at(numbers // counters.size, numbers % counters.size, counts, counters, op=np.add)
    bsp.sync()
    return counters


def look_up(bsp, part, indices):
    """18: elements of a distributed array."""
    table = bsp.array(part)
    found = bsp.get_at(indices // part.size, indices % part.size, table)
    bsp.sync()
    return found


def sort(bsp, keys):
    """19: sort by regular samples."""
    keys = np.sort(keys)
    sample = keys[np.arange(bsp.nprocs) * keys.size // bsp.nprocs]
    samples = np.sort(bsp.allgather(sample, axis=0))
    bounds = samples[bsp.nprocs :: bsp.nprocs]
    pieces = bsp.alltoall(np.split(keys, np.searchsorted(keys, bounds)))
    return np.sort(np.concatenate(pieces))


def rank(bsp, following):
    """20: how far each element of a linked list is from its end, by doubling."""
    first = bsp.pid * following.size
    end = following == first + np.arange(following.size)
    state = bsp.array(np.column_stack([following, ~end]))
    for _ in range((following.size * bsp.nprocs - 1).bit_length()):
        goal = state[:, 0].copy()
        where, row = goal // following.size, goal % following.size
        found = bsp.get_at(where[:, None], row[:, None] * 2 + [0, 1], state)
        bsp.sync()
        state[:, 0] = found[:, 0]
        state[:, 1] += found[:, 1]
    return state[:, 1].copy()
