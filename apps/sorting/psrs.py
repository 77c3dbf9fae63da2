"""Parallel sorting by regular sampling (PSRS) of n keys on p processes.

Each process sorts its block and takes a regular sample: every w-th key, w = n/p^2, in total
p keys. Process 0 sorts the samples, and every p-th of all is a pivot. Each process cuts its
block at the pivots; part i of each block goes to process i, which merges them.

Nothing is random. If the blocks are equal and n >= p^3, no process gets more than 2 n/p
keys, whatever the keys are: between two pivots there are p samples, each with the w - 1 keys
that follow it in its block, and, from each of p - 1 blocks, up to w - 1 keys after its last
sample before the first of the two pivots. This is p w + (p - 1)(w - 1) < 2 n/p. With unequal
blocks it may be w more. Equal keys are distinguished by their origin, and count like others.

Cost, with m = n/p and records of c bytes, keys of d bytes and eight more for their
origin. M-steps are those of Roda et al., who also count the distribution of the keys from
process 0 (their step 1) and their collection there (7). The length of a message is known on
arrival, so that no sizes need be exchanged in step 4:

====== ========== ======================= =====================================
M-step supersteps h in bytes              w
====== ========== ======================= =====================================
       1          a few words x p         exchange of lengths and dtypes
2      1          p (p - 1) (d + 8)       O(m log m + p)
3      1          (p - 1)^2 (d + 8)       O(p^2 log p) on process 0
4      0          0                       O(p log m)
5      1          up to 2 m c             O(m)
6      0          0                       O(m log p): merged
====== ========== ======================= =====================================

The stages are those of :mod:`bsplib.apps.sorting.sample_sort`, of which 1 and 2 are M-step 2,
3 and 4 are M-step 3, and 5 to 7 are 4 to 6. This is the sort to use: for records of any dtype,
blocks of any lengths and any p. The program of Roda et al., Figure 8, to the letter of their
equations 19 to 25, is :mod:`bsplib.apps.papers.msteps`.

Source: Shi and Schaeffer 1992 (the bound, for n >= p^3); Roda et al. 1999, section 4.2.
"""

from __future__ import annotations

from typing import Any

import click
from numpy.typing import ArrayLike

import bsplib
from bsplib.apps.command import ProgramRun, place_options
from bsplib.apps.progress import Step, steps, unseen
from bsplib.apps.sorting.keycheck import report
from bsplib.apps.sorting.keys import block_of, keys_options
from bsplib.apps.sorting.order import Records, order_of
from bsplib.apps.sorting.sample_sort import Method, sort_in_stages


def main(
    bsp: bsplib.Group,
    values: ArrayLike | int,
    *,
    progress: bool = False,
    key: str | None = None,
    stable: bool = False,
    **made: Any,
) -> Records:
    """Sort keys, and return this process's block of them.

    Args:
        bsp: the group.
        values: the keys in one dimension, or records with a key, the same on all
            processes; each takes its block of them. Or how many keys to make.
        progress: whether to show a progress bar.
        key: as for :func:`sort_blocks`.
        stable: as for :func:`sort_blocks`.
        **made: ``distribution``, ``dtype`` and ``seed`` of keys that are made, as
            :func:`bsplib.apps.sorting.keys.block_of`.

    Returns:
        The block; keys are in order by pid and then by position.

    Raises:
        ValueError: as :func:`bsplib.apps.sorting.keys.block_of` and :func:`sort_blocks`.

    Cost: 4 supersteps.
    Source: Roda et al. 1999, section 4.2.
    """
    block = block_of(values, bsp.pid, bsp.nprocs, **made)
    with steps(bsp, 7, shown=progress) as begin:
        return sort_blocks(bsp, block, key=key, stable=stable, begin=begin)


def sort_blocks(
    bsp: bsplib.Group,
    block: Records,
    *,
    key: str | None = None,
    stable: bool = False,
    begin: Step = unseen,
) -> Records:
    """Sort records that are distributed already, in blocks of any lengths.

    Collective.

    Args:
        bsp: the group.
        block: the records of this process, in one dimension, of a dtype that numpy
            sorts and that is the same on all processes; not changed.
        key: field by which records are sorted; default: the whole record.
        stable: records of equal keys stay in the order (process, position).
        begin: is called with the name of each stage as it begins.

    Returns:
        The records that are due on this process, in order; no part of ``block``.

    Raises:
        ValueError: a field does not exist, ``block`` has not one dimension, or the
            blocks have different dtypes.

    Cost: as the module says: 4 supersteps.
    Source: Roda et al. 1999, section 4.2.
    """
    method = Method(order_of(block.dtype, key, stable=stable), regular=True)
    return sort_in_stages(bsp, block, method, begin=begin)


@click.command()
@keys_options
@click.option("--stable", is_flag=True, help="Equal keys stay in their order.")
@place_options
def command(size: int, place: ProgramRun, *, stable: bool, **made: Any) -> None:
    """Sort keys by regular sampling, and compare the result with numpy's."""
    blocks = place.run(main, size, stable=stable, progress=True, **made)
    report(blocks, size, **made)


if __name__ == "__main__":
    command()
