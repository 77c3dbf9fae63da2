"""The sorts: in memory, compared with other libraries; of files, compared with reading and writing.

In memory, the time is measured from a sync at which every process has a block of the keys in
its own array to a sync at which it has another array with its block of the sorted keys. The
peers have all keys in one array before and after.

For files, the sort is compared with reading and writing as many bytes, in pieces of the same
length, by as many processes, with the same overlap, and without the page cache as in the sort.
With ``BENCH_LARGE=1`` in the environment the file has 2 GiB.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

import bsplib
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_of
from bsplib.apps.progress import ProgressSteps
from bsplib.apps.sorting import external_sort, keycheck, keyfile, sample_sort
from bsplib.apps.sorting.blocks import BlockTable
from bsplib.apps.sorting.blockwork import BlockWork, Files
from bsplib.apps.sorting.overlapped_io import Buffer, make_buffers, stream
from bsplib.apps.sorting.workspace import workspace

NPROCS = 2
SIZE = 20_000_000
_WARM_UP = 1
_SORTS = 3
"""Number of sorts for a sample, which is their median."""
_OVERSAMPLING = 2048
"""At p = 2 this many are needed for blocks within 2% of n/p; the sample of 8192 is cheap."""
_NUMPY, _POLARS, _DUCKDB = "numpy.sort(x)", "polars, 2 threads", "DuckDB, 2 threads"


# -- in memory ------------------------------------------------------------------------------


def random_keys(seed: int, size: int, dtype: str) -> NDArray[Any]:
    """Return random keys from the full range of integers, or between 0 and 1."""
    numbers = np.random.default_rng(seed)
    if dtype == "int64":
        return numbers.integers(-(2**63), 2**63 - 1, size, np.int64)
    return numbers.random(size)


def sorts(bsp: bsplib.Group, size: int, dtype: str, how: dict[str, Any]) -> float:
    """Return the seconds of a sample sort of keys that are distributed already."""
    block = random_keys(bsp.pid, size // bsp.nprocs, dtype)

    def sort() -> None:
        sample_sort.sort_blocks(bsp, block, oversampling=_OVERSAMPLING, **how)
        bsp.sync()

    return _median(sort)


def _median(sort: Callable[[], object]) -> float:
    seconds = [seconds_of(sort) for _ in range(_WARM_UP + _SORTS)]
    return float(np.median(seconds[_WARM_UP:]))


def _in_memory(dtype: str, stack: ExitStack) -> Sequence[Case]:
    """Compare our sorts with those of the peers."""
    pool = stack.enter_context(bsplib.Pool(NPROCS))

    def ours(**how: Any) -> float:
        seconds: float = pool.run(sorts, SIZE, dtype, how)[0]
        return seconds

    keys = random_keys(0, SIZE, dtype)
    goals = (Goal.times(1 / 1.4, _NUMPY), Goal.times(1 / 4, _POLARS), Goal.times(1 / 6, _DUCKDB))
    return [
        Case(_NUMPY, partial(_median, partial(np.sort, keys))),
        *_others(keys, stack),
        Case("sample sort, partition first", partial(ours, partition_first=True), goals=goals),
        Case("sample sort, seven stages", ours, goals=goals),
    ]


def _others(keys: NDArray[Any], stack: ExitStack) -> list[Case]:
    """Return a case for each peer that is installed."""
    found = []
    for name, prepare in ((_POLARS, _polars), (_DUCKDB, _duckdb)):
        try:
            found.append(Case(name, partial(_median, prepare(keys, stack))))
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
            Section(f"Sort of 2 x 10^7 {dtype}, p = {NPROCS}", "sort", partial(_in_memory, dtype))
            for dtype in ("int64", "float64")
        ),
        Section(
            f"External sort of {words}, p = {NPROCS}",
            "sort",
            partial(_on_files, nbytes // 8, memory),
            repeats=3,
            warm_up=0 if large else 1,
        ),
    ]
