"""Numbers for keys: by numpy, by the interpreted loops, and compiled, against plain Python."""

from __future__ import annotations

import importlib.util
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from bsplib import core
from bsplib.core import numbering as imported


def interpreted(*, loops: bool) -> ModuleType:
    """Load the module from its source; with ``loops`` it does nothing by numpy."""
    spec = importlib.util.spec_from_file_location(
        "numbering_interpreted", core._build.FOLDER + "/numbering.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if loops:
        module.cython = SimpleNamespace(compiled=True)
    return module


BUILDS = {"numpy": interpreted(loops=False), "loops": interpreted(loops=True)}
if core.BUILD == "compiled":
    BUILDS["compiled"] = imported

every_build = pytest.mark.parametrize("numbering", BUILDS.values(), ids=BUILDS)


def plainly(keys):
    """Return what is expected, by a dictionary."""
    known, firsts, numbers = {}, [], []
    for row, key in enumerate(map(tuple, keys.tolist())):
        if key not in known:
            known[key] = len(known)
            firsts.append(row)
        numbers.append(known[key])
    return firsts, numbers


def check(numbering, keys):
    keys = np.ascontiguousarray(keys, np.uint64)
    firsts, numbers = numbering.number_keys(keys)
    assert (firsts.dtype, numbers.dtype) == (np.int64, np.int64)
    assert (firsts.tolist(), numbers.tolist()) == plainly(keys)


@every_build
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("rows", [0, 1, 2, 700])
def test_equal_keys_have_equal_numbers_in_the_order_in_which_they_come(numbering, width, rows):
    random = np.random.default_rng(rows)
    check(numbering, random.integers(3, size=(rows, width)))
    check(numbering, random.integers(2**64, size=(rows, width), dtype=np.uint64))


@every_build
def test_the_first_and_the_last_word_are_keys_like_any_other(numbering):
    check(numbering, [[0], [2**64 - 1], [0], [1], [2**63], [2**64 - 1]])
    check(numbering, [[0, 0], [0, 1], [1, 0], [0, 0], [2**64 - 1, 2**64 - 1]])


@every_build
@pytest.mark.parametrize("width", [1, 2])
def test_a_table_that_becomes_full_grows(numbering, width):
    rows = 40_000  # with more keys than half of the slots of the first table
    keys = np.arange(rows * width).reshape(rows, width) % (2 * rows // 3)
    check(numbering, keys)


@every_build
@pytest.mark.parametrize("step", [1 << 15, 1 << 32, 1 << 44, 2654435761, 0x9E3779B97F4A7C15])
def test_keys_in_steps_are_numbered(numbering, step):
    check(numbering, (np.arange(2000, dtype=np.uint64) * np.uint64(step))[:, None])


def test_keys_with_the_same_tag_are_told_apart(monkeypatch):
    loops = BUILDS["loops"]
    monkeypatch.setattr(loops, "_mixed", lambda key, width: 5)
    check(loops, np.random.default_rng(0).integers(4, size=(50, 2)))
