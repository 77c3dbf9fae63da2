"""Sample sort of n keys on p processes: the seven stages of ``bspsort``.

A random sample determines where to cut, so that every process gets about the same number of
keys: (1) each process sorts its block; (2) it draws a sample of s p of its keys, and the
samples are collected on process 0; (3) the sample is sorted, and p - 1 pivots at regular
distances are chosen; (4) these are broadcast; (5) each process cuts its block at the pivots;
(6) part i of each block goes to process i, (7) which merges the parts.

The greater the oversampling factor s, the better is the balance of stages 6 and 7, but the
longer process 0 works in stages 2 and 3. To avoid this, all processes can sort the sample
together, by the bitonic network.

Equal keys are distinguished by the process and the position where they were, so that they
are divided as evenly as others. Therefore equal records keep their order if the sorts of
stages 1 and 7 are stable.

Cost, with k = log2 p rounded up, records of c bytes, keys of d bytes and eight more
for their origin, and blocks of m = n/p records before and m' after:

===== =========== ====================== =======================================
stage supersteps  h in bytes             w
===== =========== ====================== =======================================
0     1           a few words x p        exchange of lengths and dtypes
1     0           0                      O(m log m)
2     1           s p (p - 1) (d + 8)    O(s p)
3     0           0                      O(s p^2 log p) on process 0
2, 3  k (k + 1)/2 s p (d + 8)            O(s p) each: all sort the sample
4     1           (p - 1)^2 (d + 8)      O(p)
5     0           0                      O(p log m)
6     1           max(m, m') c           O(m'): parts are made adjacent
7     0           0                      O(m' log p)
===== =========== ====================== =======================================

On virtual processors the stages charge this w, by :mod:`bsplib.apps.work`.

Source: Jarvis et al. 2002, sections 4.2 and 4.3, after Gerbessiotis and Siniolakis 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import click
import numpy as np
from numpy.typing import ArrayLike

import bsplib
from bsplib.apps.command import ProgramRun, place_options
from bsplib.apps.progress import Step, steps, unseen
from bsplib.apps.sorting.bitonic_sort import merge_sort
from bsplib.apps.sorting.keycheck import report
from bsplib.apps.sorting.keys import block_of, keys_options, number_of_keys
from bsplib.apps.sorting.order import Order, Records, order_of
from bsplib.apps.sorting.oversampling import (
    expected_balance,
    factor,
    factor_of,
    regular_distance,
    sample_sizes,
    theoretical_oversampling,
)
from bsplib.apps.sorting.pivots import (
    Sample,
    cut,
    in_order,
    regular,
    sample_at,
)
from bsplib.apps.sorting.spare_block import SpareBlock
from bsplib.apps.work import charge_search, charge_sort, charge_values

OVERSAMPLING = 64
SAMPLE_SORTS = ("one", "bitonic")


def theory(
    values: float, nprocs: int, oversampling: float = OVERSAMPLING, **_: object
) -> dict[str, float]:
    """Return what theory says of a sort, for ``bsp sweep``.

    Args:
        values: number of keys.
        nprocs: number of processes.
        oversampling: s.

    Returns:
        max/avg of the keys that processes get, if all are distinct; and the s from which on the
        chance that any gets more than 1.1 times its share is at most one in a million, whatever the
        samples cost.
    """
    size = int(values)
    return {
        "max/avg": expected_balance(oversampling, size, nprocs),
        "s for 1.1": theoretical_oversampling(size, nprocs),
    }


@dataclass(frozen=True)
class Method:
    """The options of a sort; fields are arguments of :func:`sort_blocks`."""

    order: Order
    sample_sort: str = "one"
    seed: int = 0
    charged: bool = False
    """Whether virtual processors count the work instead of measuring it."""
    regular: bool = False
    """Whether samples are at regular distances (:mod:`bsplib.apps.sorting.psrs`), not at random."""


def main(
    bsp: bsplib.Group, values: ArrayLike | int, *, progress: bool = False, **how: Any
) -> Records:
    """Sort keys, and return this process's block of them.

    Args:
        bsp: the group.
        values: the keys in one dimension, or records with a key, the same on all
            processes; each takes its block of them. Or the number of keys to make.
        progress: whether to show a progress bar.
        **how: ``distribution`` and ``dtype`` of keys that are made, as for
            :func:`bsplib.apps.sorting.keys.block_of`; ``seed`` of these and of the sample; the
            others as for :func:`sort_blocks`.

    Returns:
        The block; keys are in order by pid and then by position.

    Raises:
        ValueError: as :func:`bsplib.apps.sorting.keys.block_of` and :func:`sort_blocks`.

    Cost: of :func:`sort_blocks`.
    Source: Jarvis et al. 2002, section 4.2.
    """
    made = {name: how.pop(name) for name in ("distribution", "dtype") if name in how}
    if how.get("charged", True):
        charge_values(bsp, -(-number_of_keys(values) // bsp.nprocs))
    block = block_of(values, bsp.pid, bsp.nprocs, seed=how.get("seed", 0), **made)
    with steps(bsp, 7, shown=progress) as begin:
        return sort_blocks(bsp, block, begin=begin, **how)


def sort_blocks(  # noqa: PLR0913  # each has a name at the call
    bsp: bsplib.Group,
    block: Records,
    *,
    key: str | None = None,
    stable: bool = False,
    oversampling: float | str = OVERSAMPLING,
    sample_sort: str = "one",
    seed: int = 0,
    charged: bool = True,
    begin: Step = unseen,
) -> Records:
    """Sort records that are distributed already, in blocks of any lengths.

    Collective.

    Args:
        bsp: the group.
        block: the records of this process, in one dimension, of a dtype that numpy
            sorts and that is the same on all processes; not changed.
        key: field by which records are sorted; default: the whole record.
        stable: whether records of equal keys keep the order (process, position).
        oversampling: s: each process samples s p records if blocks are equal, otherwise
            in proportion to its block, and at most all its records.
            ``"theory"`` for :func:`bsplib.apps.sorting.oversampling.theoretical_oversampling`.
        sample_sort: ``"one"`` if process 0 sorts the sample, or ``"bitonic"`` if all
            processes do, by the bitonic network.
        seed: seed of the sample.
        charged: whether virtual processors count the work by :mod:`bsplib.apps.work`; otherwise
            they measure it. Without effect on real processes.
        begin: is called with the name of each stage as it begins.

    Returns:
        This process's block of the sorted records; it shares no memory with ``block``.

    Raises:
        ValueError: an argument is not valid, ``block`` does not have one dimension, or
            the blocks have different dtypes.

    Cost: see the module: 4 supersteps, or 3 + k (k + 1)/2 with the bitonic network.
    Source: Jarvis et al. 2002, sections 4.2 and 4.3.
    """
    method = Method(order_of(block.dtype, key, stable=stable), sample_sort, seed, charged)
    return sort_in_stages(bsp, block, method, oversampling, begin)


def sort_in_stages(
    bsp: bsplib.Group,
    block: Records,
    method: Method,
    oversampling: float | str = OVERSAMPLING,
    begin: Step = unseen,
) -> Records:
    """Sort records; arguments and result are those of :func:`sort_blocks`."""
    check(block, method)
    sizes = agree(bsp, block)
    if not sum(sizes):
        return block.copy()
    if method.regular:
        counts = [-(-length // regular_distance(sizes)) for length in sizes]
    else:
        counts = sample_sizes(sizes, factor_of(oversampling, sum(sizes), bsp.nprocs), bsp.nprocs)
    begin("1 sort")
    spare = SpareBlock.like(block)
    work = sort_locally(bsp, block, spare, method)
    begin("2 sample")
    every = regular_distance(sizes) if method.regular else None
    sample = collect_sample(bsp, work, counts, method, every)
    begin("3 sort the sample")
    pivots = sort_sample(bsp, sample, counts, method)
    begin("4 broadcast the pivots")
    pivots = broadcast_pivots(bsp, pivots)
    begin("5 partition")
    parts = partition(bsp, work, pivots, method)
    begin("6 exchange")
    gathered = exchange(bsp, spare, parts, method)
    begin("7 merge")
    return merge(bsp, gathered, method)


# -- before the stages ----------------------------------------------------------------------


def check(block: Records, method: Method) -> None:
    """Check that the options are valid.

    Raises:
        ValueError: an option is not valid.
    """
    number_of_keys(block)
    if method.sample_sort not in SAMPLE_SORTS:
        raise ValueError(
            f"sample_sort is {method.sample_sort!r}; choose one of {', '.join(SAMPLE_SORTS)}"
        )


def agree(bsp: bsplib.Group, block: Records) -> list[int]:
    """Exchange the lengths of all blocks; return them by pid: 1 superstep.

    Raises:
        ValueError: the blocks have different dtypes.
    """
    told = bsp.allgather((len(block), block.dtype))
    for pid, (_, dtype) in enumerate(told):
        if dtype != block.dtype:
            raise ValueError(
                f"the records have dtype {block.dtype} on process {bsp.pid} and dtype {dtype} on "
                f"process {pid}; convert them to one dtype first"
            )
    return [length for length, _ in told]


# -- the seven stages -----------------------------------------------------------------------


def sort_locally(bsp: bsplib.Group, block: Records, spare: SpareBlock, method: Method) -> Records:
    """Stage 1: sort a copy of the block and return it.

    The copy is in private memory of the process. This may have huge pages, which shared
    memory seldom has, and without which sorts and partitions take 1.5 times as long.
    """
    if method.charged:
        charge_sort(bsp, len(block))
    method.order.sort(block, spare.block)
    return spare.block


def collect_sample(
    bsp: bsplib.Group, work: Records, counts: Sequence[int], method: Method, every: int | None
) -> Sample:
    """Stage 2: draw a sample, and collect it on process 0: 1 superstep, h = p samples.

    If all processes sort the sample, it stays where it was drawn, without a superstep.

    Args:
        bsp: the group.
        work: the block.
        counts: number of records that each process draws.
        method: options of the sort.
        every: distance of regular samples; None for random ones.

    Returns:
        The part of the sample on this process: sorted parts, one after another.
    """
    if method.charged:
        charge_values(bsp, counts[bsp.pid])
        charge_sort(bsp, counts[bsp.pid])
    if every is None:
        random = np.random.default_rng([method.seed, bsp.pid])
        drawn = random.choice(len(work), counts[bsp.pid], replace=False, shuffle=False)
        positions = np.sort(drawn)
    else:
        positions = np.arange(0, len(work), every)
    sample = in_order(sample_at(work, method.order, bsp.pid, positions))
    return sample if method.sample_sort == "bitonic" else collect(bsp, sample)


def collect(bsp: bsplib.Group, sample: Sample) -> Sample:
    """Return the samples of all on process 0, none elsewhere: 1 superstep, h = p samples."""
    bsp.send(0, sample)
    bsp.sync()
    return _arrived(bsp, sample)


def sort_sample(bsp: bsplib.Group, sample: Sample, counts: Sequence[int], method: Method) -> Sample:
    """Stage 3: sort the sample, and choose the pivots.

    If process 0 sorts the sample, there is no superstep. If all p processes sort it, there are
    k (k + 1)/2 supersteps, with k = log2 p rounded up; in each, h is the sample of one process.

    Returns:
        The pivots that are on this process, in order.
    """
    first = 0
    if method.sample_sort == "bitonic":
        first = bsp.pid * max(counts)  # all blocks of the network but the last are full
        sample = merge_sort(bsp, sample, max(counts), descending=False, charged=method.charged)
    else:
        if method.charged:
            charge_sort(bsp, len(sample), bsp.nprocs)
        sample = in_order(sample)
    ranks = regular(sum(counts), bsp.nprocs) - first
    return sample[ranks[(ranks >= 0) & (ranks < len(sample))]]


def broadcast_pivots(bsp: bsplib.Group, pivots: Sample) -> Sample:
    """Stage 4: send this process's pivots to all: 1 superstep, h = (p - 1)^2 pivots.

    Returns:
        All p - 1 pivots, in order.
    """
    if len(pivots):
        for pid in range(bsp.nprocs):
            bsp.send(pid, pivots)
    bsp.sync()
    return _arrived(bsp, pivots)


def partition(bsp: bsplib.Group, work: Records, pivots: Sample, method: Method) -> list[slice]:
    """Stage 5: cut the block at the pivots: no superstep.

    Args:
        bsp: the group.
        work: the result of stage 1.
        pivots: the pivots, in order.
        method: options of the sort.

    Returns:
        The position of the part for each process.
    """
    if method.charged:
        charge_search(bsp, bsp.nprocs, len(work))
    ends = cut(work, method.order, bsp.pid, pivots)
    return [slice(start, stop) for start, stop in pairwise([0, *ends.tolist()])]


def exchange(
    bsp: bsplib.Group, spare: SpareBlock, parts: Sequence[slice], method: Method
) -> Records:
    """Stage 6: send part i to process i: 1 superstep, h = max(m, m') c.

    Returns:
        The parts for this process, one after another, in the order of processes.
    """
    for turn in range(1, bsp.nprocs):  # so that not all send to process 0 first
        pid = (bsp.pid + turn) % bsp.nprocs
        bsp.send(pid, spare.block[parts[pid]])
    bsp.sync()
    come = [view for _, view in iter(bsp.hpmove, None)]
    if method.charged:
        charge_values(bsp, sum(map(len, come)))
    return spare.around(parts[bsp.pid], come[: bsp.pid], come[bsp.pid :])


def merge(bsp: bsplib.Group, gathered: Records, method: Method) -> Records:
    """Stage 7: merge the parts."""
    if method.charged:
        charge_sort(bsp, len(gathered), bsp.nprocs)
    method.order.sort(gathered, gathered, bsp.nprocs)
    return gathered


def _arrived(bsp: bsplib.Group, like: Records) -> Records:
    """Return the payloads of all messages in one array."""
    found = [part for _, _, part in bsp.messages()]
    return np.concatenate([like[:0], *found], dtype=like.dtype)  # else in native byte order


# -- command line ---------------------------------------------------------------------------


@click.command()
@keys_options
@click.option(
    "--oversampling",
    default=OVERSAMPLING,
    show_default=True,
    type=factor,
    help="s: each of p processes samples s p of its keys; 'theory' for a proven bound.",
)
@click.option(
    "--sample-sort",
    default="one",
    show_default=True,
    type=click.Choice(SAMPLE_SORTS),
    help="Whether one process sorts the sample, or all by the bitonic network.",
)
@click.option("--stable", is_flag=True, help="Equal keys stay in their order.")
@place_options
def command(size: int, place: ProgramRun, **how: Any) -> None:
    """Sort keys by sample sort, and compare the result with numpy's."""
    blocks = place.run(main, size, progress=True, **how)
    report(blocks, size, **{name: how[name] for name in ("distribution", "dtype", "seed")})


if __name__ == "__main__":
    command()
