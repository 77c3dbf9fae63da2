"""Measures what single elements cost that go by their indices: puts and gets of elements.

A put or a get of a block copies bytes that follow each other. Where a program names each element
by its index, as in a product with a sparse matrix, the indices are sorted by process and sent
along, and the elements are read or written one by one, in any order. Here every process names
elements of the others by chance, in arrays that have as many elements as are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.machine.measured import Curve
from bsplib.machine.probing.state import ProbedMoments, lasted
from bsplib.running.options import BackendName
from bsplib.running.pool import Pool

if TYPE_CHECKING:
    from bsplib.group import Group

COUNTS = (2**6, 2**9, 2**12, 2**14, 2**16, 2**17, 2**18, 2**20)
"""Numbers of elements of 8 bytes that each process names."""
_REPEATS = 7
_WORD_BYTES = 8


class ElementPrices(NamedTuple):
    """What a Machine says of elements that go by their indices; see :class:`Measured`."""

    placed: Curve
    fetched: Curve


def measure_elements(
    nprocs: int, backend: BackendName, block: Curve, most_bytes: int
) -> ElementPrices:
    """Measure puts and gets of elements by what they take more than a block of as many bytes.

    Args:
        nprocs: 2 or more processes on one host.
        backend: starts them.
        block: seconds of an exchange by the bytes of its h-relation.
        most_bytes: how many bytes a process may send at once, with the indices.
    """
    counts = [count for count in COUNTS if 2 * _WORD_BYTES * count <= most_bytes] or [COUNTS[0]]
    sizes = tuple(_WORD_BYTES * count for count in counts)
    with Pool(nprocs, backend=backend) as pool:
        results = pool.run(_name_elements, counts)
    curves = []
    for moments in zip(*results, strict=True):
        more = np.maximum(lasted(list(moments)) - block.at(sizes), 0.0)
        more = np.minimum.accumulate(more[::-1])[::-1]  # a disturbed time is too long
        curves.append(Curve((0, *sizes), (0.0, *more.tolist())))
    return ElementPrices(*curves)


def _name_elements(bsp: Group, counts: list[int]) -> tuple[ProbedMoments, ProbedMoments]:
    """Put and get elements of other processes, by their number and by repeat."""
    shape = len(counts), _REPEATS
    both = tuple(ProbedMoments(np.zeros(shape), np.zeros(shape)) for _ in range(2))
    for place, count in enumerate(counts):
        rng = bsp.rng(count)
        x = bsp.zeros(count)
        others = (bsp.pid + rng.integers(1, bsp.nprocs, count)) % bsp.nprocs
        indices, values = rng.integers(0, count, count), rng.random(count)
        for repeat in range(-1, _REPEATS):  # the first one touches memory for the first time
            for number, moments in enumerate(both):
                bsp.sync()
                bsp.sync()  # now all processes are awake, and leave together
                moments.came[place, repeat] = bsp.time()
                if number:
                    bsp.get_at(others, indices, x)
                else:
                    bsp.put_at(others, indices, values, x)
                bsp.sync()
                moments.went[place, repeat] = bsp.time()
        bsp.pop_reg(x)
        bsp.sync()
    return both[0], both[1]
