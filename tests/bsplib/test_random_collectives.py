"""Random collectives in a row give what a loop over the values of all processes gives."""

from __future__ import annotations

import operator
import random

import numpy as np
import pytest

OPS = {
    "sum": operator.add,
    "max": np.maximum,
    "prod": operator.mul,
    np.subtract: operator.sub,
    np.logical_or: np.logical_or,
}
CALLS = 12


def value_of(kind, pid, seed):
    """What a process gives, in a form that others of the same kind have, too."""
    numbers = np.random.default_rng([seed, pid])
    if isinstance(kind, str):
        number = int(numbers.integers(-9, 9))
        return {
            "int": number,
            "large int": number << 70 * (pid % 2),
            "float": number / 2,
            "number": np.float64(number / 2),
            "small number": np.int16(number % 3 - 1),  # no product is too large
        }[kind]
    form, size = kind
    if form == "matrix":
        return numbers.integers(-9, 9, (size, 3)).T  # not in C order
    values = numbers.integers(0, 9, size) / 2
    return values if form == "array" else values.astype([np.int32, np.float64][pid % 2])


NUMERIC = [
    *("int", "float", "number", "small number"),
    *(("array", size) for size in (0, 1, 5, 700, 20_000)),
    *(("matrix", size) for size in (1, 40)),
    ("mixed", 9),
]
ANY = [*NUMERIC, "large int", "of all kinds", "object"]


def any_value(kind, pid, seed):
    """What a process gives to a collective that combines nothing."""
    if kind == "object":
        return {"pid": pid, "array": np.arange(pid)} if pid % 3 else None
    if kind == "of all kinds":
        kind = ANY[: len(NUMERIC) + 1][(seed + pid) % (len(NUMERIC) + 1)]
    return value_of(kind, pid, seed)


def prefixes(values, op):
    """All combinations of the first values: in a tree, or from the left for a difference."""
    if len(values) == 1:
        return [values[0]]
    count = len(values)
    half = count - 1 if op is operator.sub else 1 << (count - 1).bit_length() - 1
    before, after = prefixes(values[:half], op), prefixes(values[half:], op)
    return [*before, *(op(before[-1], each) for each in after)]


def plan(seed):
    """The calls of a program: (collective, kind, op, root, seed of the values)."""
    draw = random.Random(seed)
    calls = []
    for number in range(CALLS):
        combines = draw.random() < 0.5
        name = draw.choice(
            ["reduce", "allreduce", "scan", "exscan"]
            if combines
            else ["broadcast", "gather", "allgather", "scatter", "alltoall"]
        )
        kind = draw.choice(NUMERIC if combines else ANY)
        calls.append((name, kind, draw.choice([*OPS]), draw.random(), 1000 * seed + number))
    return calls


def call(group, name, kind, op, root, seed):
    """Make one call; return its result."""
    root = int(root * group.nprocs)
    match name:
        case "allreduce" | "scan" | "exscan":
            return getattr(group, name)(value_of(kind, group.pid, seed), op)
        case "reduce":
            return group.reduce(value_of(kind, group.pid, seed), op, root)
        case "allgather":
            return group.allgather(any_value(kind, group.pid, seed))
        case "broadcast" | "gather":
            return getattr(group, name)(any_value(kind, group.pid, seed), root)
    parts = [any_value(kind, group.pid + 31 * to, seed) for to in range(group.nprocs)]
    return group.alltoall(parts) if name == "alltoall" else group.scatter(parts, root)


def expected(pid, nprocs, name, kind, op, root, seed):
    """The result of one call by a loop; ... where it is not looked at."""
    root, everyone = int(root * nprocs), range(nprocs)
    if name in ("reduce", "gather") and pid != root:
        return None
    if name in ("reduce", "allreduce", "scan", "exscan"):
        every = prefixes([value_of(kind, each, seed) for each in everyone], OPS[op])
        # What process 0 gets from exscan has tests of its own.
        return {"scan": every[pid], "exscan": every[pid - 1] if pid else ...}.get(name, every[-1])
    if name in ("allgather", "gather"):
        return [any_value(kind, each, seed) for each in everyone]
    if name == "alltoall":
        return [any_value(kind, each + 31 * pid, seed) for each in everyone]
    return any_value(kind, root + (31 * pid if name == "scatter" else 0), seed)


def described(value):
    """What has to be the same of two values."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return "array", value.shape, value.dtype.kind, value.tolist()
    if isinstance(value, list | tuple):
        return [described(each) for each in value]
    if isinstance(value, dict):
        return {name: described(each) for name, each in value.items()}
    if isinstance(value, int | float | np.generic):
        return np.asarray(value).dtype.kind, value
    return type(value), value


def assert_right(pid, nprocs, results, calls):
    for result, each in zip(results, calls, strict=True):
        right = expected(pid, nprocs, *each)
        if right is not ...:
            assert described(result) == described(right), (pid, each)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_random_collectives_follow_each_other(run, nprocs, seed, check):
    calls = plan(seed)

    def main(bsp):
        whole = [call(bsp, *each) for each in calls]
        with bsp.split(bsp.pid % 2, key=-bsp.pid) as half:
            parts = [call(half, *each) for each in calls]
            return whole, half.pid, half.nprocs, parts

    for pid, (whole, inner, count, parts) in enumerate(run(main, check=check)):
        assert_right(pid, nprocs, whole, calls)
        assert_right(inner, count, parts, calls)
