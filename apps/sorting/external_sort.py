"""Sort of the keys of a file that is far larger than the memory of the sort.

Bitonic merge sort of n keys on p processes, in blocks of B keys, L = n/B of them. A
process has memory for seven blocks: the pair that it splits, the pair that is being
read, the pair that is being written, and one to merge in. First it sorts runs of two
blocks. Then the runs, which are sorted lists of two blocks, are merged into longer and
longer lists by the network of :mod:`bsplib.apps.sorting.bitonic_sort`: in a split one block
receives the lower keys of two, the other the upper keys. The pairs of a level of the network
are distributed cyclically to the processes, and each level ends with a sync.

Two blocks need not be read if all keys of one come before those of the other. So sorted keys
are read twice; random keys are read about twice for each merge of lists, 2 k times with
k = log2 L rounded up; and no key is read more often than there are levels, at most
k (k + 1)/2. The last level writes the result to a temporary file beside the target, which
is renamed when it is complete.

Cost, with keys of c bytes; a level without pairs to read costs nothing:

========== ===================== =============== ===============================
part       supersteps            h in bytes      w, and keys read and written
========== ===================== =============== ===============================
sort runs  1                     L (2 c + 8)     O(n/p log B), n/p each way
splits     1 a level, at most    L (2 c + 8)     O(n/p), n/p each way, at most
           k (k + 1)/2 - 2
last level 0                     0               the same
========== ===================== =============== ===============================

Source: Chittor 1995, section 3.3, Figures 9 to 13.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import DTypeLike
from rich.filesize import decimal

import bsplib
from bsplib.apps.command import ProgramRun, place_options
from bsplib.apps.progress import drawn, steps
from bsplib.apps.sorting.blocks import BlockTable, Pair, levels
from bsplib.apps.sorting.blockwork import BlockWork, ChangedKeys, Files, merge, reverse
from bsplib.apps.sorting.keycheck import fingerprint, in_order, make_keys
from bsplib.apps.sorting.keyfile import PAGE, FileChannel, find_keys
from bsplib.apps.sorting.keys import made_options
from bsplib.apps.sorting.overlapped_io import Buffer, make_buffers, stream
from bsplib.apps.sorting.workspace import scratch_folder, workspace
from bsplib.command_options import force_option
from bsplib.visible import visible_lines

MEMORY = 256 << 20
SHARES = 7
"""Number of blocks for which a process needs memory."""


class SortReport(NamedTuple):
    """The work that a process has done."""

    levels: int
    """Number of levels of the network, including the sort of the runs."""
    levels_read: int
    """Number of levels at which some process read a block."""
    read_bytes: int
    written_bytes: int


def main(
    bsp: bsplib.Group,
    files: Files,
    *,
    memory: int = MEMORY,
    descending: bool = False,
    direct: bool = True,
    progress: bool = False,
) -> SortReport:
    """Sort the keys of one file into another.

    Args:
        bsp: the group.
        files: the files; scratch and result exist and have space for all keys of the source.
        memory: total bytes of the buffers of all processes.
        descending: whether the greatest key comes first, NaN before it.
        direct: whether to avoid the page cache, if the file system allows it.
        progress: whether to show a progress bar.

    Raises:
        ValueError: the memory is too small for blocks of one key.
        OSError: a file cannot be read or written.

    Cost: see the module.
    Source: Chittor 1995, Figure 13.
    """
    dtype = files.source.dtype
    length = block_length(memory, bsp.nprocs, dtype.itemsize)
    direct = direct and length * dtype.itemsize % PAGE == 0
    table = BlockTable.of(files.source.count, length, dtype)
    todo = levels(len(table), 2)
    with ExitStack() as stack:
        channels = {
            file: stack.enter_context(
                closing(FileChannel(file.path, write=number > 0, direct=direct))
            )
            for number, file in enumerate(files)
        }
        show = stack.enter_context(steps(bsp, len(todo) + 1, shown=progress))
        buffers = make_buffers(2 * length * dtype.itemsize)
        work = BlockWork(files, table, channels, buffers, show)
        show("sort runs")
        sort_runs(bsp, work, last=not todo, descending=descending)
        read = 1
        for level in todo[:-1]:
            show(f"merge lists of {level.span} blocks")
            read += split_pairs(bsp, work, table.to_split(level))
        if todo:
            show(f"merge lists of {todo[-1].span} blocks")
            write_result(bsp, work, table.to_split(todo[-1]), descending=descending)
        return SortReport(len(todo) + 1, read + bool(todo), work.read_bytes, work.written_bytes)


def block_length(memory: int, nprocs: int, itemsize: int) -> int:
    """Return B, the number of keys of a block; if possible, a block is a number of whole pages.

    Raises:
        ValueError: the memory is too small for blocks of one key.
    """
    length = memory // (SHARES * nprocs * itemsize)
    if not length:
        raise ValueError(
            f"memory: {memory} bytes are too few; {nprocs} processes that sort keys of {itemsize} "
            f"bytes need {SHARES * nprocs * itemsize} at least"
        )
    unit = PAGE // gcd(PAGE, itemsize)
    return length - length % unit if length > unit else length


# -- the parts ------------------------------------------------------------------------------


def sort_runs(bsp: bsplib.Group, work: BlockWork, *, last: bool, descending: bool) -> None:
    """Sort runs of two blocks: 1 superstep; none if the runs are the result.

    Source: Chittor 1995, Figure 10.
    """
    files, table = work.files, work.table
    span = 2 * table.length
    runs = [(start, min(span, table.size - start)) for start in range(0, table.size, span)]
    news = ChangedKeys(table)

    def read(run: tuple[int, int], buffer: Buffer) -> None:
        work.read(files.source, run[0], work.keys(buffer, run[1]))

    def sort(run: tuple[int, int], buffer: Buffer) -> None:
        keys = work.keys(buffer, run[1])
        keys.sort()
        news.note(run[0] // table.length, keys)
        if last and descending:
            reverse(keys)

    def write(run: tuple[int, int], buffer: Buffer) -> None:
        keys = work.keys(buffer, run[1])
        work.write(files.result if last else files.scratch, run[0], keys)

    stream_dealt(bsp, work, runs, read, sort, write)
    if not last:
        tell(bsp, work, news)


def split_pairs(bsp: bsplib.Group, work: BlockWork, pairs: Sequence[Pair]) -> bool:
    """Split pairs of blocks: 1 superstep, or none without pairs. Return whether there are pairs.

    Source: Chittor 1995, Figure 12.
    """
    if not pairs:
        return False
    table = work.table
    news = ChangedKeys(table)

    def split(pair: Pair, buffer: Buffer) -> None:
        keys = work.keys(buffer, table.keys_of_pair(pair))
        merge(keys)
        news.note(pair.first, keys[: table.length])
        news.note(pair.second, keys[table.length :])

    stream_dealt(bsp, work, pairs, work.read_pair, split, work.write_pair)
    tell(bsp, work, news)
    return True


def write_result(
    bsp: bsplib.Group, work: BlockWork, pairs: Sequence[Pair], *, descending: bool
) -> None:
    """Do the splits of the last level, between adjacent blocks, and write all blocks in order."""
    table, result = work.table, work.files.result
    to_split = set(pairs)
    everything = [Pair(first, min(first + 1, len(table) - 1)) for first in range(0, len(table), 2)]

    def split(pair: Pair, buffer: Buffer) -> None:
        keys = work.keys(buffer, table.keys_of_pair(pair))
        if pair in to_split:
            merge(keys)
        if descending:
            reverse(keys)

    def write(pair: Pair, buffer: Buffer) -> None:
        keys = work.keys(buffer, table.keys_of_pair(pair))
        first = pair.first * table.length
        work.write(result, table.size - first - len(keys) if descending else first, keys)

    stream_dealt(bsp, work, everything, work.read_pair, split, write)


def tell(bsp: bsplib.Group, work: BlockWork, news: ChangedKeys) -> None:
    """Send the news of changed blocks to all: 1 superstep, after which all blocks may be read."""
    for pid in range(bsp.nprocs):
        bsp.send(pid, news.rows())
    bsp.sync()
    for _, _, rows in bsp.messages():
        work.table.learn(rows)


def stream_dealt(
    bsp: bsplib.Group,
    work: BlockWork,
    jobs: Sequence[Any],
    read: Callable[[Any, Any], None],
    do: Callable[[Any, Any], None],
    write: Callable[[Any, Any], None],
) -> None:
    """Do every p-th job, while the keys of the next are read and those of the last written."""
    mine = jobs[bsp.pid :: bsp.nprocs]
    done = iter(range(1, len(mine) + 1))

    def do_one(job: Any, buffer: Buffer) -> None:
        do(job, buffer)
        work.show.within(next(done) / len(mine))

    stream(mine, work.buffers, read, do_one, write)


# -- from file to file ----------------------------------------------------------------------


def sort_file(  # noqa: PLR0913  # each is an option
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    dtype: DTypeLike | None = None,
    memory: int = MEMORY,
    descending: bool = False,
    direct: bool = True,
    progress: bool = False,
    force: bool = False,
    run: Callable[..., list[Any]] = bsplib.run,
    **place: Any,
) -> list[SortReport]:
    """Sort the keys of a file.

    Source and target are not changed until the result is complete, nor if the sort fails.
    Twice the size of the keys is needed as free space beside the target.

    Args:
        source: ``.npy`` file with keys in one dimension, or a file of keys without header.
        target: file for the result, in the format of the source; default: the source.
        dtype: dtype of keys without header; any dtype of fixed size that numpy sorts.
        memory: total bytes of the buffers of all processes.
        descending: whether the greatest key comes first, NaN before it.
        direct: whether to avoid the page cache, if the file system allows it.
        progress: whether to show a progress bar.
        force: replace the target if it exists; the source, without a target, always is.
        run: function that runs the program, such as ``run`` of a pool.
        **place: further arguments of ``run``, such as ``nprocs``.

    Returns:
        The work that each process has done.

    Raises:
        OSError: a file cannot be read or written, or the disk is full.
        ValueError: the file has no keys that can be sorted, or the memory is too small.
    """
    keys = find_keys(source, dtype)
    place_of_result = Path(os.path.realpath(source if target is None else target))
    with workspace(keys, place_of_result, force=force) as files:
        return run(
            main,
            files,
            memory=memory,
            descending=descending,
            direct=direct,
            progress=progress,
            **place,
        )


# -- types of values on a command line ------------------------------------------------------------


_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def _bytes(value: str) -> int:
    """Return a number of bytes, such as ``256MiB``."""
    found = re.fullmatch(r"(\d+) ?([a-z]*)", value.lower())
    if found is None or found[2] not in _UNITS:
        raise click.BadParameter(f"{value!r} is no number of bytes, such as 4096, 64KiB or 1GiB")
    return int(found[1]) * _UNITS[found[2]]


def _dtype(value: str) -> np.dtype[Any]:
    """Return a dtype of numpy."""
    try:
        return np.dtype(value)
    except TypeError:
        raise click.BadParameter(f"{value!r} is no dtype of numpy, such as int64 or S10") from None


# -- command line ---------------------------------------------------------------------------


@click.command()
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.argument("target", required=False, type=click.Path(path_type=Path))
@click.option(
    "--memory",
    default="256MiB",
    show_default=True,
    type=_bytes,
    metavar="BYTES",
    help="Total memory of the buffers of all processes.",
)
@click.option(
    "--dtype",
    type=_dtype,
    metavar="DTYPE",
    help="Type of the keys of a SOURCE that is no .npy file.",
)
@click.option("--descending", is_flag=True, help="The greatest key comes first.")
@click.option("--cached", is_flag=True, help="Read and write through the page cache.")
@force_option
@click.option(
    *("--verify", "check"),
    is_flag=True,
    help="Read the result and compare it with SOURCE.",
)
@made_options
@place_options
def command(source: Path | None, target: Path | None, place: ProgramRun, **how: Any) -> None:
    """Sort the keys of the file SOURCE: in place, or into the file TARGET.

    A .npy file contains the dtype of its keys. Without SOURCE, a file is made in the
    folder for temporary files ($TMPDIR), sorted, checked and removed.
    """
    made = {name: how.pop(name) for name in ("size", "seed", "distribution")}
    try:
        if source is not None:
            _sort_and_report(source, target, place, **how)
            return
        made["dtype"] = how.pop("dtype") or np.dtype(float)
        temporary = Path(tempfile.gettempdir())
        with scratch_folder(temporary) as folder, drawn("make keys") as tell:
            path = make_keys(folder / "keys.npy", tell=tell, **made).path
            _sort_and_report(path, None, place, **{**how, "dtype": None, "check": True})
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(f"{name}{error.strerror}") from error
    except ValueError as error:
        raise click.ClickException(visible_lines(str(error))) from error


def _sort_and_report(
    source: Path | str,
    target: Path | None,
    place: ProgramRun,
    *,
    dtype: np.dtype[Any] | None,
    check: bool,
    cached: bool,
    **how: Any,
) -> None:
    """Sort a file, compare the result if requested, and print a summary."""
    before = None
    if check:
        with drawn("read the keys") as tell:
            before = fingerprint(find_keys(source, dtype), tell)
    began = time.perf_counter()
    reports = sort_file(
        source, target, dtype=dtype, direct=not cached, progress=True, run=place.run, **how
    )
    seconds = time.perf_counter() - began
    keys = find_keys(target or source, dtype)
    if before is not None:
        with drawn("check the result") as tell:
            same = fingerprint(keys, tell) == before
        with drawn("check their order") as tell:
            if not same or not in_order(keys, tell, descending=how["descending"]):
                raise click.ClickException(f"{keys.path} has other keys, or not in order")
    levels, levels_read = reports[0][:2]
    read, written = (sum(report[part] for report in reports) for part in (2, 3))
    click.echo(
        f"{len(reports)} processes sorted {keys.count} keys in {seconds:.3g} s: {levels_read} of "
        f"{levels} levels, {decimal(read)} read and {decimal(written)} written"
        f"{', checked' if check else ''}"
    )


if __name__ == "__main__":
    command()
