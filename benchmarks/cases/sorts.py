"""The sample sort, compared with those of numpy and polars.

The time is measured from a sync at which every process has a block of the keys in
its own array to a sync at which it has another array with its block of the sorted keys. The
peers have all keys in one array before and after. How fast numpy sorts depends on the vector
instructions that it uses, and so does how we sort: there are processors on which numpy is slower
with those of 512 bits. So both are measured without them, too, in interpreters of their own:
``python -m benchmarks.cases.sorts numpy|ours`` prints the seconds of one sort.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath as of_numpy
from numpy.typing import NDArray

import bsplib
from benchmarks.cases.primitives import sampler
from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_of
from bsplib.apps.sorting import sample_sort

NPROCS = 2
SIZE = 2**24
_SORTS = 3
"""Number of sorts for a sample, which is their median, after one that warms up."""
_OVERSAMPLING = 2048
"""At p = 2 this many are needed for blocks within 2% of n/p; the sample of 8192 is cheap."""
_NUMPY, _OURS = "numpy.sort(x)", "sample sort, seven stages"


def random_keys(seed: int, size: int) -> NDArray[np.int64]:
    """Return random keys from the full range of integers."""
    return np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, size, np.int64)


def sorts(bsp: bsplib.Group, size: int) -> float:
    """Return the seconds of a sample sort of keys that are distributed already."""
    block = random_keys(bsp.pid, size // bsp.nprocs)
    found = [block]

    def sort() -> None:
        found[0] = sample_sort.sort_blocks(bsp, block, oversampling=_OVERSAMPLING)
        bsp.sync()

    bsp.sync()
    seconds = _median(sort)
    check(bsp, block, found[0])
    return seconds


def check(bsp: bsplib.Group, given: NDArray[Any], found: NDArray[Any]) -> None:
    """Raise unless as many keys as were given are in order."""
    ends = np.concatenate(bsp.allgather(np.array([found[0], found[-1]])))
    in_order = all((keys[:-1] <= keys[1:]).all() for keys in (found, ends))
    if not in_order or bsp.allreduce(len(given)) != bsp.allreduce(len(found)):
        raise AssertionError("the keys are not in order")


def _median(sort: Callable[[], object]) -> float:
    return float(np.median([seconds_of(sort) for _ in range(1 + _SORTS)][1:]))


def _of_numpy() -> float:
    return _median(partial(np.sort, random_keys(0, SIZE)))


def _in_memory(stack: ExitStack) -> Sequence[Case]:
    """Compare our sort with those of the peers."""
    ours = sampler(stack, NPROCS)
    return [
        Case(_NUMPY, _of_numpy),
        *_of_polars(random_keys(0, SIZE)),
        Case(_OURS, partial(ours, sorts, SIZE)),
    ]


def _of_polars(keys: NDArray[Any]) -> list[Case]:
    """Return the case of polars, if it is installed."""
    try:
        import polars  # noqa: PLC0415
    except ModuleNotFoundError:
        print("without polars: pip install -e '.[bench]'")
        return []
    return [Case("polars, 2 threads", partial(_median, polars.Series(keys).sort))]


def wide_features() -> list[str]:
    """Return the instructions of 512 bits that numpy uses."""
    found = (each for each in of_numpy.__cpu_dispatch__ if of_numpy.__cpu_features__[each])
    return [each for each in found if each.startswith(("AVX512", "X86_V4"))]


def _without_wide(_: ExitStack) -> Sequence[Case]:
    """Compare our sort with numpy's, both without instructions of 512 bits."""
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(wide_features())}

    def sample(who: str) -> float:
        command = [sys.executable, "-m", __name__, who]
        done = subprocess.run(command, capture_output=True, check=True, env=environment)
        return float(done.stdout)

    return [Case(_NUMPY, partial(sample, "numpy")), Case(_OURS, partial(sample, "ours"))]


SECTIONS = (
    Section(f"Sort of 2^24 int64, p = {NPROCS}", "sort", _in_memory, 5),
    Section(f"Sort of 2^24 int64, p = {NPROCS}, numpy without AVX-512", "sort", _without_wide, 5),
)


if __name__ == "__main__":
    is_numpy = sys.argv[1] == "numpy"
    print(_of_numpy() if is_numpy else bsplib.run(sorts, SIZE, nprocs=NPROCS)[0])
