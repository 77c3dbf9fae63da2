"""The sorts that are measured sort what they say, in interpreters with the numpy that they say."""

from __future__ import annotations

import os

import numpy as np
import pytest

import bsplib
from benchmarks.cases import sorts
from tests.processes import run_python


def test_keys_are_sorted_as_the_benchmark_checks():
    seconds = bsplib.run(sorts.sorts, 3000, nprocs=2, backend="sim")
    assert min(seconds) > 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda keys, _: keys[::-1],
        lambda keys, _: keys[1:],
        lambda keys, pid: np.append(keys[1:], np.nan) if pid == 0 else keys,
        lambda keys, pid: keys - 10 * pid,
    ],
)
def test_keys_that_are_not_in_order_are_an_error(wrong):
    def main(bsp):
        keys = np.arange(4.0) + 4 * bsp.pid
        sorts.check(bsp, keys, keys)
        sorts.check(bsp, keys, wrong(keys, bsp.pid))

    with pytest.raises(AssertionError, match="not in order"):
        bsplib.run(main, nprocs=2, backend="sim")


@pytest.mark.lengthy
def test_numpy_goes_without_the_features_that_are_named():
    code = (
        "from numpy._core import _multiarray_umath as of_numpy\n"
        "print(*(each for each in of_numpy.__cpu_dispatch__ if of_numpy.__cpu_features__[each]))"
    )
    without = sorts.wide_features()
    done = run_python(
        "-c", code, env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(without)}, check=True
    )
    assert not set(without) & set(done.stdout.split())
