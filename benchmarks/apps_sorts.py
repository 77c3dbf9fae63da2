"""The sorts: in memory, compared with other libraries; of files, compared with reading and writing.

In memory, the time is measured from a sync at which every process has a block of the keys in
its own array to a sync at which it has another array with its block of the sorted keys. The
peers have all keys in one array before and after. How fast numpy sorts depends on the vector
instructions that it uses, and so does how we sort: both are measured with all of those that numpy
finds, without those of 512 bits, and without any, in an interpreter of their own. Keys in
difficult orders are compared with random ones.

For files, the sort is compared with reading and writing as many bytes, in pieces of the same
length, by as many processes, with the same overlap, and without the page cache as in the sort.
With ``BENCH_LARGE=1`` in the environment the file has 2 GiB.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy._core import _multiarray_umath as of_numpy
from numpy.typing import NDArray

import bsplib
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.mpi import Peers
from benchmarks.timing import seconds_of
from bsplib.apps.progress import ProgressSteps
from bsplib.apps.sorting import external_sort, keycheck, keyfile, sample_sort
from bsplib.apps.sorting.blocks import BlockTable
from bsplib.apps.sorting.blockwork import BlockWork, Files
from bsplib.apps.sorting.overlapped_io import Buffer, make_buffers, stream
from bsplib.apps.sorting.workspace import workspace

NPROCS = 2
SIZE = 2**24
_WARM_UP = 1
_SORTS = 3
"""Number of sorts for a sample, which is their median."""
_TURNS = 5
_SLOW_TURNS = 2
"""Turns in which DuckDB is measured, which takes longer."""
_OVERSAMPLING = 2048
"""At p = 2 this many are needed for blocks within 2% of n/p; the sample of 8192 is cheap."""
_NUMPY, _POLARS, _DUCKDB = "numpy.sort(x)", "polars, 2 threads", "DuckDB, 2 threads"
_WAYS: dict[str, dict[str, Any]] = {
    "partition first": {"partition_first": True},
    "seven stages": {},
}
"""Options of our sort, by their names."""


# -- keys in memory -------------------------------------------------------------------------


def random_keys(seed: int, size: int, dtype: str) -> NDArray[Any]:
    """Return random keys from the full range of integers, or between 0 and 1."""
    numbers = np.random.default_rng(seed)
    if dtype == "int64":
        return numbers.integers(-(2**63), 2**63 - 1, size, np.int64)
    return numbers.random(size)


def _with_nan(pid: int, places: NDArray[np.int64], _: int) -> NDArray[Any]:
    keys = random_keys(pid, len(places), "float64")
    keys[keys < 1 / 2] = np.nan
    return keys


_RANDOM = "random"
_ORDERS: dict[str, Callable[[int, NDArray[np.int64], int], NDArray[Any]]] = {
    _RANDOM: lambda pid, places, _: random_keys(pid, len(places), "float64"),
    "organ pipe": lambda _, places, size: np.minimum(places, size - places) / 1.0,
    "one value": lambda _, places, __: np.full(len(places), 0.5),
    "three values": lambda pid, places, _: np.floor(3 * random_keys(pid, len(places), "float64")),
    "sorted": lambda _, places, __: places / 1.0,
    "reversed": lambda _, places, size: (size - places) / 1.0,
    "every second one NaN": _with_nan,
}
"""How keys are made from the process, their places among all keys, and the number of all keys."""


def keys_in_order(order: str, pid: int, nprocs: int, size: int) -> NDArray[Any]:
    """Return a process's keys, which are floats in one of the orders."""
    return _ORDERS[order](pid, np.arange(size * pid // nprocs, size * (pid + 1) // nprocs), size)


# -- in memory ------------------------------------------------------------------------------


def sorts(bsp: bsplib.Group, size: int, dtype: str, how: dict[str, Any]) -> float:
    """Return the seconds of a sample sort of keys that are distributed already."""
    return _sorted_s(bsp, random_keys(bsp.pid, size // bsp.nprocs, dtype), how)


def sorts_in_order(bsp: bsplib.Group, size: int, order: str, how: dict[str, Any]) -> float:
    """Return the seconds of a sample sort of keys in one of the orders."""
    return _sorted_s(bsp, keys_in_order(order, bsp.pid, bsp.nprocs, size), how)


def _sorted_s(bsp: bsplib.Group, block: NDArray[Any], how: dict[str, Any]) -> float:
    found = [block]

    def sort() -> None:
        found[0] = sample_sort.sort_blocks(bsp, block, oversampling=_OVERSAMPLING, **how)
        bsp.sync()

    bsp.sync()
    seconds = _median(sort)
    _check(bsp, block, found[0])
    return seconds


def _check(bsp: bsplib.Group, given: NDArray[Any], found: NDArray[Any]) -> None:
    """Raise unless as many keys as were given are in order, those that are no number last."""
    keys = found[: len(found) - np.count_nonzero(np.isnan(found))]
    in_order = bool((keys[:-1] <= keys[1:]).all()) and not np.isnan(keys).any()
    ends = bsp.allgather(np.array([found[0], found[-1]]))
    firsts = np.sort(np.concatenate(ends))
    in_order = in_order and np.array_equal(np.concatenate(ends), firsts, equal_nan=True)
    if not in_order or bsp.allreduce(len(given)) != bsp.allreduce(len(found)):
        raise AssertionError("the keys are not in order")


def sorts_of_numpy(bsp: bsplib.Group, size: int, dtype: str) -> float:
    """Return the seconds in which numpy sorts all keys, on process 0."""
    return _median(partial(np.sort, random_keys(0, size, dtype))) if bsp.pid == 0 else 0.0


def _median(sort: Callable[[], object]) -> float:
    seconds = [seconds_of(sort) for _ in range(_WARM_UP + _SORTS)]
    return float(np.median(seconds[_WARM_UP:]))


def _features() -> dict[str, tuple[str, ...]]:
    """Return the instructions that numpy is not to use, by a name for what remains."""
    found = tuple(each for each in of_numpy.__cpu_dispatch__ if of_numpy.__cpu_features__[each])
    wide = tuple(each for each in found if each.startswith(("AVX512", "X86_V4")))
    without = {", numpy without AVX-512": wide, ", numpy without vector instructions": found}
    return {"": ()} | {name: features for name, features in without.items() if features}


def _in_memory(dtype: str, without: tuple[str, ...], stack: ExitStack) -> Sequence[Case]:
    """Compare our sorts with those of the peers.

    Args:
        dtype: of the keys.
        without: features of the processor that numpy is not to use.
        stack: ends what is started.
    """
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(without)}
    pool = stack.enter_context(Peers("a pool", _pool, 1, environment))

    def ours(how: dict[str, Any]) -> float:
        return pool.sample("apps_sorts:sorts", size=SIZE, dtype=dtype, how=how)

    goals = [Goal.times(0.55, _NUMPY), Goal.times(0.9, _POLARS)]
    if not without:
        goals.append(Goal.times(1 / 6, _DUCKDB))
    return [
        Case(_NUMPY, partial(pool.sample, "apps_sorts:sorts_of_numpy", size=SIZE, dtype=dtype)),
        *_others(random_keys(0, SIZE, dtype), [goal.of for goal in goals], stack),
        *(
            Case(f"sample sort, {name}", partial(ours, how), goals=tuple(goals))
            for name, how in _WAYS.items()
        ),
    ]


def _pool(address: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.pool_peer", "shm", str(NPROCS), address]


def _in_orders(name: str, stack: ExitStack) -> Sequence[Case]:
    """Compare the sort of keys in difficult orders with that of random ones."""
    pool = stack.enter_context(bsplib.Pool(NPROCS))

    def ours(order: str) -> float:
        seconds: float = pool.run(sorts_in_order, SIZE, order, _WAYS[name])[0]
        return seconds

    goal = Goal.times(1.3, _RANDOM)
    return [
        Case(order, partial(ours, order), goals=() if order == _RANDOM else (goal,))
        for order in _ORDERS
    ]


def _others(keys: NDArray[Any], wanted: Sequence[str | None], stack: ExitStack) -> list[Case]:
    """Return a case for each peer that is wanted and installed."""
    found = []
    for name, prepare, turns in ((_POLARS, _polars, None), (_DUCKDB, _duckdb, _SLOW_TURNS)):
        if name not in wanted:
            continue
        try:
            found.append(Case(name, partial(_median, prepare(keys, stack)), repeats=turns))
        except ModuleNotFoundError as error:
            print(f"without {error.name}: pip install -e '.[bench]'")
    return found


def _polars(keys: NDArray[Any], _: ExitStack) -> Callable[[], object]:
    import polars  # noqa: PLC0415  # may not be installed

    return polars.Series(keys).sort


def _duckdb(keys: NDArray[Any], stack: ExitStack) -> Callable[[], object]:
    import duckdb  # noqa: PLC0415  # may not be installed

    connection = stack.enter_context(duckdb.connect())
    connection.execute(f"SET threads = {NPROCS}")
    connection.register("given", pyarrow.table({"x": keys}))
    connection.execute("CREATE TABLE keys AS SELECT x FROM given")
    return lambda: connection.sql("SELECT x FROM keys ORDER BY x").to_arrow_table()


# -- on files ---------------------------------------------------------------------------------


def moves(bsp: bsplib.Group, files: Files, memory: int, read_bytes: int) -> None:
    """Read a number of bytes of a file of keys, and write them, in pieces as long as the sort's.

    Args:
        bsp: the group.
        files: the keys are read from the source and then from the result, and written
            into the result.
        memory: bytes of memory that the sort may use.
        read_bytes: number of bytes that all processes read together.
    """
    keys = files.source
    length = external_sort.block_length(memory, bsp.nprocs, keys.dtype.itemsize)
    buffers = make_buffers(2 * length * keys.dtype.itemsize)
    with ExitStack() as stack:
        channels = {
            file: stack.enter_context(
                keyfile.channel(file.path, write=file is not keys, direct=True)
            )
            for file in files
        }
        table = BlockTable.of(keys.count, length, keys.dtype)
        work = BlockWork(files, table, channels, buffers, ProgressSteps())
        left, source = read_bytes // keys.dtype.itemsize, keys
        while left > 0:
            _move(bsp, work, source, min(left, keys.count))
            bsp.sync()
            left, source = left - keys.count, files.scratch


def _move(bsp: bsplib.Group, work: BlockWork, source: keyfile.KeyFile, count: int) -> None:
    """Copy every p-th piece of keys from one file to the other."""
    span = 2 * work.table.length

    def read(first: int, buffer: Buffer) -> None:
        work.read(source, first, work.keys(buffer, min(span, count - first)))

    def write(first: int, buffer: Buffer) -> None:
        work.write(work.files.scratch, first, work.keys(buffer, min(span, count - first)))

    pieces = range(bsp.pid * span, count, bsp.nprocs * span)
    stream(pieces, work.buffers, read, lambda *_: None, write)


def _on_files(size: int, memory: int, stack: ExitStack) -> Sequence[Case]:
    """Compare the sort of a file with reading and writing the same number of bytes."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    keys = keycheck.make_keys(folder / "keys.npy", size, lambda _: None)
    target = folder / "sorted.npy"
    read_bytes: list[int] = []

    def sort() -> float:
        reports: list[external_sort.SortReport] = []
        seconds = seconds_of(
            lambda: reports.extend(
                external_sort.sort_file(keys.path, target, memory=memory, force=True, nprocs=NPROCS)
            )
        )
        read_bytes[:] = [sum(report.read_bytes for report in reports)]
        return seconds

    def move() -> float:
        return seconds_of(lambda: _moved(Path(keys.path), target, memory, read_bytes[0]))

    limit = "reading and writing as often"
    return [
        Case("external sort", sort, goals=(Goal.times(1.5, limit),)),
        Case(limit, move),
    ]


def _moved(source: Path, target: Path, memory: int, read_bytes: int) -> None:
    with workspace(keyfile.find_keys(source), target) as files:
        bsplib.run(moves, files, memory, read_bytes, nprocs=NPROCS)


def sections() -> list[Section]:
    """Return what is to be measured."""
    large = bool(os.environ.get("BENCH_LARGE"))
    nbytes, memory, words = (
        (2 << 30, 256 << 20, "2 GiB with 256 MiB")
        if large
        else (256 << 20, 32 << 20, "256 MiB with 32 MiB")
    )
    return [
        *(
            Section(
                f"Sort of 2^24 {dtype}, p = {NPROCS}{name}",
                "sort",
                partial(_in_memory, dtype, without),
                repeats=_TURNS,
            )
            for dtype in ("int64", "float64")
            for name, without in _features().items()
        ),
        *(
            Section(
                f"Sort of 2^24 float64 in difficult orders, {name}, p = {NPROCS}",
                "sort",
                partial(_in_orders, name),
                repeats=_TURNS,
            )
            for name in _WAYS
        ),
        Section(
            f"External sort of {words}, p = {NPROCS}",
            "sort",
            partial(_on_files, nbytes // 8, memory),
            repeats=3,
            warm_up=0 if large else 1,
        ),
    ]
