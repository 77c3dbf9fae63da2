"""Makes files of keys, and checks whether sorted keys are the same as before and in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from bsplib.apps.progress import Tell
from bsplib.apps.sorting.blocks import not_greater
from bsplib.apps.sorting.keyfile import PAGE, KeyFile, find_keys, header
from bsplib.apps.sorting.keys import Keys, all_keys, block_of

CHUNK = 1 << 20
"""Number of keys that are in memory at the same time."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def make_keys(path: Path, size: int, tell: Tell, **how: Any) -> KeyFile:
    """Write a file of keys; ``how`` as for :func:`bsplib.apps.sorting.keys.block_of`."""
    chunks = max(-(-size // CHUNK), 1)
    dtype = block_of(1, 0, 1, **how).dtype  # for strings it includes their length
    keys = KeyFile(str(path), dtype, size, PAGE)
    with open(path, "wb") as file:
        file.write(header(keys))
        for number in range(chunks):
            block_of(size, number, chunks, **how).astype(dtype, copy=False).tofile(file)
            tell((number + 1) / chunks)
    return find_keys(path)


def fingerprint(keys: KeyFile, tell: Tell) -> tuple[int, int]:
    """Return the number of a file's keys and a sum of all their bits, in whatever order."""
    total = 0
    for number, block in enumerate(_chunks(keys)):
        total = (total + int(_mixed(block).sum(dtype=np.uint64))) % 2**64
        tell(min((number + 1) * CHUNK / keys.count, 1))
    return keys.count, total


def in_order(keys: KeyFile, tell: Tell, *, descending: bool) -> bool:
    """Tell whether the keys of a file are sorted."""
    last: Any = None
    for number, block in enumerate(_chunks(keys)):
        rising = block[::-1] if descending else block
        bounds = (rising[-1], last) if descending else (last, rising[0])
        if not np.array_equal(np.sort(rising), rising, equal_nan=block.dtype.kind in "fc"):
            return False
        if last is not None and not not_greater(*bounds):
            return False
        last = block[-1]
        tell(min((number + 1) * CHUNK / keys.count, 1))
    return True


def report(blocks: Sequence[Keys], size: int, **made: Any) -> None:
    """Compare sorted keys with numpy's, and say how evenly they are divided.

    Raises:
        click.ClickException: the keys are not in order.
    """
    expected = np.sort(all_keys(size, len(blocks), **made), kind="stable")
    if not np.array_equal(np.concatenate(blocks), expected):
        raise click.ClickException("the keys are not in order")
    most = f"the most on one are {balance(blocks):.3f} n/p"
    click.echo(f"{len(blocks)} processes sorted {size} keys; {most}")


def balance(blocks: Sequence[Keys]) -> float:
    """Return the length of the longest block divided by n/p; 1 if there are no keys."""
    lengths = [len(block) for block in blocks]
    return max(lengths) * len(lengths) / sum(lengths) if sum(lengths) else 1.0


def _chunks(keys: KeyFile) -> Iterator[Keys]:
    for first in range(0, keys.count, CHUNK):
        count = min(CHUNK, keys.count - first)
        yield np.fromfile(keys.path, keys.dtype, count, offset=keys.start_of(first))


def _mixed(block: Keys) -> Any:
    """Return a number for each key that depends on all its bits."""
    columns = block.view(np.uint8).reshape(len(block), -1)
    mixed = np.zeros(len(block), np.uint64)
    for column in columns.T:
        mixed = (mixed + column) * _FACTOR
        mixed ^= mixed >> _SHIFT
    return mixed
