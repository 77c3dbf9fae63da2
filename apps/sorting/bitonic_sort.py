"""Bitonic merge sort of n keys on p processes, any number of either.

Every process holds a sorted block of ``m = ceil(n / p)`` keys; at the end block i of the
sorted keys is on process i. Sorted lists of blocks are merged in pairs into lists of twice
the length. A merge is a sequence of splits: two processes exchange their blocks, and one
keeps the lower half of the keys of both, the other the upper half. With one key on each
process this is sorting by compare and exchange.

The network is that of Chittor (1995), chapter 3, in another form. There every second list
is sorted in descending order, so that two adjacent lists are bitonic. Here all lists are
sorted in the same order, and the first split of a merge pairs each block with its mirror
image in the other list. The comparisons are the same, and the lower half always goes to the
lower process. If n is no multiple of p, or p no power of two, the missing keys and processes
count as greater than all others. They would never move, and so need not exist.

Cost, with k = log2 p rounded up and keys of c bytes:

============== ============ ============ ===================================
part           supersteps   h of each    w
============== ============ ============ ===================================
sort a block   0            0            O(m log m)
splits         k (k + 1)/2  m c, at most O(m) each: a merge of two blocks
============== ============ ============ ===================================

Each process sends and receives one block in a superstep, so that h is balanced if all
processes have partners and p divides n.
"""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from numpy.typing import ArrayLike

import bsplib
from bsplib.apps.command import ProgramRun, place_options
from bsplib.apps.progress import Step, steps, unseen
from bsplib.apps.sorting.blocks import levels
from bsplib.apps.sorting.keycheck import report
from bsplib.apps.sorting.keys import Keys, block_of, keys_options, number_of_keys
from bsplib.apps.work import charge_sort


def main(
    bsp: bsplib.Group,
    values: ArrayLike | int,
    *,
    descending: bool = False,
    progress: bool = False,
    **made: Any,
) -> Keys:
    """Sort keys, and return this process's block of the sorted keys.

    Args:
        bsp: the group.
        values: the keys in one dimension, of any dtype that numpy sorts, the same on
            all processes; each takes its block of them. Or how many keys to sort, of
            which each process makes its own.
        descending: the greatest key comes first, NaN before it.
        progress: whether to show a progress bar.
        **made: ``distribution``, ``dtype`` and ``seed`` of keys that are made, as
            :func:`bsplib.apps.sorting.keys.block_of`.

    Returns:
        The keys from ``pid * m`` on, at most ``m = ceil(n / p)`` of them, in order;
        the last processes may have fewer or none.

    Raises:
        ValueError: as :func:`bsplib.apps.sorting.keys.block_of`.

    Cost: ``k (k + 1) / 2`` supersteps with k = ceil(log2 p), h at most the bytes of m
        keys each (of their pickle where keys are Python objects).
    Source: Chittor 1995, sections 3.1 (n = p) and 3.2 (n > p), Figures 1 and 4 to 8.
    """
    bsp.charge(0.0)  # virtual time counts comparisons, and not how keys are made
    length = -(-number_of_keys(values) // bsp.nprocs)
    keys = block_of(values, bsp.pid, bsp.nprocs, **made)
    k = (bsp.nprocs - 1).bit_length()
    with steps(bsp, 1 + k * (k + 1) // 2, shown=progress) as begin:
        begin("sort")
        charge_sort(bsp, len(keys))
        block = merge_sort(
            bsp, np.sort(keys), length, descending=descending, charged=True, begin=begin
        )
    return block[::-1].copy() if descending else block


def merge_sort(
    bsp: bsplib.Group,
    block: Keys,
    length: int,
    *,
    descending: bool,
    charged: bool = False,
    begin: Step = unseen,
) -> Keys:
    """Merge lists of blocks until there is one: k (k + 1)/2 supersteps, h = m c each.

    Args:
        bsp: the group.
        block: keys of this process, ascending, whatever the order of the list.
        length: most keys of a block; processes that come after one with fewer may
            have any number up to it.
        descending: the first process is to get the greatest keys.
        charged: whether virtual processors count the work by :mod:`bsplib.apps.work`; otherwise
            they measure it.
        begin: is called with the name of each split as it begins.
    """
    for level in levels(bsp.nprocs, 1):
        begin(f"merge {level.span} blocks")
        block = split(bsp, block, level.partner(bsp.pid), length, descending=descending)
        if charged:
            charge_sort(bsp, len(block), 2)
    return block


def split(bsp: bsplib.Group, block: Keys, partner: int, length: int, *, descending: bool) -> Keys:
    """Exchange blocks with a partner and keep the half of this process: 1 superstep.

    If the partner does not exist, nothing changes.
    """
    if partner < bsp.nprocs:
        bsp.send(partner, block)
    bsp.sync()
    message = bsp.hpmove()
    if message is None:
        return block
    _, other = message
    is_lower = bsp.pid < partner
    first, second = (block, other) if is_lower else (other, block)
    total = len(first) + len(second)
    count = max(total - length, 0) if descending else min(length, total)
    return half(first, second, count, least=is_lower != descending)


def half(first: Keys, second: Keys, count: int, *, least: bool) -> Keys:
    """Merge the least ``count`` keys of two ascending blocks, or the others.

    Both partners cut at the same position, so that no key is lost where keys are equal but
    distinguishable (0.0 and -0.0). The stable sort recognises the two runs and merges them.
    """
    cut = merge_path(first, second, count)
    one = slice(cut) if least else slice(cut, None)
    other = slice(count - cut) if least else slice(count - cut, None)
    both = np.concatenate((first[one], second[other]), dtype=first.dtype)
    return np.sort(both, kind="stable")


def merge_path(first: Keys, second: Keys, count: int) -> int:
    """Return how many of the least ``count`` keys of two ascending blocks are in the first.

    Among equal keys, those of the first block count as less. Keys are compared as numpy
    sorts them, NaN last.
    """
    low, high = max(count - len(second), 0), min(count, len(first))
    while low < high:
        middle = (low + high) // 2
        opposite = count - 1 - middle
        if second[opposite : opposite + 1].searchsorted(first[middle]) == 0:
            low = middle + 1  # it is not greater than its opposite
        else:
            high = middle
    return low


@click.command()
@keys_options
@click.option("--descending", is_flag=True, help="The greatest key comes first.")
@place_options
def command(size: int, descending: bool, place: ProgramRun, **made: Any) -> None:
    """Sort keys by bitonic merge sort, and compare the result with numpy's."""
    blocks = place.run(main, size, descending=descending, progress=True, **made)
    report([block[::-1] for block in blocks[::-1]] if descending else blocks, size, **made)


if __name__ == "__main__":
    command()
