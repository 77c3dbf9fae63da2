"""The sorts that are measured sort what they say, in interpreters with the numpy that they say."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import bsplib

pytest.importorskip("pyarrow", reason="the sorts need pyarrow: pip install -e '.[bench]'")

from benchmarks import apps_sorts, pool_peer

SIZE = 3000


def all_keys(order, nprocs=2):
    parts = [apps_sorts.keys_in_order(order, pid, nprocs, SIZE) for pid in range(nprocs)]
    return np.concatenate(parts)


def test_orders_are_what_they_are_called():
    pipe, rising = all_keys("organ pipe"), all_keys("sorted")
    assert (np.diff(pipe[: SIZE // 2]) > 0).all()
    assert (np.diff(pipe[SIZE // 2 :]) < 0).all()
    assert (np.diff(rising) > 0).all()
    assert (np.diff(all_keys("reversed")) < 0).all()
    assert len(np.unique(all_keys("one value"))) == 1
    assert len(np.unique(all_keys("three values"))) == 3
    assert 0.4 < np.isnan(all_keys("every second one NaN")).mean() < 0.6
    assert len(np.unique(all_keys("random"))) == SIZE


@pytest.mark.parametrize("how", apps_sorts._WAYS)
@pytest.mark.parametrize("order", apps_sorts._ORDERS)
def test_keys_in_every_order_are_sorted_as_the_benchmark_checks(order, how):
    options = apps_sorts._WAYS[how]
    seconds = bsplib.run(apps_sorts.sorts_in_order, SIZE, order, options, nprocs=2, backend="sim")
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
        apps_sorts._check(bsp, keys, keys)
        apps_sorts._check(bsp, keys, wrong(keys, bsp.pid))

    with pytest.raises(AssertionError, match="not in order"):
        bsplib.run(main, nprocs=2, backend="sim")


@pytest.mark.lengthy
def test_numpy_goes_without_the_features_that_are_named():
    code = (
        "from numpy._core import _multiarray_umath as of_numpy\n"
        "print(*(each for each in of_numpy.__cpu_dispatch__ if of_numpy.__cpu_features__[each]))"
    )
    for without in apps_sorts._features().values():
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(without)},
            check=True,
            capture_output=True,
            text=True,
        )
        assert set(without).isdisjoint(done.stdout.split())


def test_a_peer_finds_programs_of_any_module_of_the_benchmarks():
    assert pool_peer._program("apps_sorts:sorts") is apps_sorts.sorts
    assert pool_peer._program("nothing").__module__ == "benchmarks.programs"
