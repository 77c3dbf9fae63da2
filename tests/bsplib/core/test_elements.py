"""The loops over single elements: by numpy, interpreted, and compiled, against plain Python."""

from __future__ import annotations

import importlib.util
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib import core
from bsplib.core import elements as imported

ITEMSIZES = (1, 2, 3, 4, 8, 16, 24)
NPROCS = (1, 2, 5, 16, 17, 300)
"""Numpy finds the elements of each process in one of two ways, which depends on their number."""


def interpreted(*, loops: bool) -> ModuleType:
    """Load the module from its source; with ``loops`` it does nothing by numpy."""
    spec = importlib.util.spec_from_file_location(
        "elements_interpreted", core._build.path_of("core.elements", ".py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if loops:
        module.cython = SimpleNamespace(compiled=True)
    return module


BUILDS = {"numpy": interpreted(loops=False), "loops": interpreted(loops=True)}
if core.BUILD == "compiled":
    BUILDS["compiled"] = imported

every_build = pytest.mark.parametrize("elements", BUILDS.values(), ids=BUILDS)


def values_of(number: int, itemsize: int, seed: int = 0) -> np.ndarray:
    """Return elements of any bytes."""
    data = np.random.default_rng(seed).integers(256, size=(number, itemsize), dtype=np.uint8)
    return data.view(f"V{itemsize}").reshape(number)


def dealt(elements: ModuleType, nprocs: int, pids, indices, values):
    """Count and deal elements; return the greatest index, and the elements of each process."""
    numbers = np.full(nprocs + 1, 7, np.uint64)
    assert elements.count_elements(pids, indices, numbers)
    *counts, highest = numbers.tolist()
    to_indices = [np.full(number, -5) if number else None for number in counts]
    dtype = np.dtype(np.int64) if values is None else values.dtype
    to_values = [np.zeros(number, dtype) if number else None for number in counts]
    elements.deal_elements(pids, indices, values, to_indices, to_values)
    parts = {
        pid: list(zip(to_indices[pid].tolist(), to_values[pid].tolist(), strict=True))
        for pid, number in enumerate(counts)
        if number
    }
    return highest, parts


def expected_parts(pids, indices, values):
    """The elements of each process in the order of the call, one by one."""
    parts: dict[int, list[tuple[int, bytes]]] = {}
    for pid, index, value in zip(pids.tolist(), indices.tolist(), values.tolist(), strict=True):
        parts.setdefault(pid, []).append((index, value))
    return parts


@st.composite
def calls(draw):
    """Pids, indices and values of a call, with the number of processes."""
    nprocs = draw(st.sampled_from(NPROCS))
    pids = draw(st.lists(st.integers(0, nprocs - 1), max_size=60))
    number = len(pids)
    indices = draw(st.lists(st.integers(0, 2**63 - 1), min_size=number, max_size=number))
    values = values_of(number, draw(st.sampled_from(ITEMSIZES)))
    return nprocs, np.array(pids, np.int64), np.array(indices, np.int64), values


@every_build
@given(call=calls())
def test_each_process_is_dealt_its_elements_in_the_order_of_the_call(elements, call):
    nprocs, pids, indices, values = call
    highest, parts = dealt(elements, nprocs, pids, indices, values)
    assert parts == expected_parts(pids, indices, values)
    assert highest == indices.max(initial=0)


@every_build
@pytest.mark.parametrize("among", NPROCS)
def test_many_elements_are_dealt_as_few_are(elements, among):
    rng = np.random.default_rng(among)
    pids, indices = rng.integers(among, size=3000), rng.integers(10**6, size=3000)
    values = values_of(3000, 8)
    _, parts = dealt(elements, among, pids, indices, values)
    assert parts == expected_parts(pids, indices, values)


@every_build
@given(call=calls())
def test_in_place_of_values_each_process_is_dealt_the_positions_of_its_words(elements, call):
    nprocs, pids, indices, _ = call
    _, parts = dealt(elements, nprocs, pids, indices, None)
    assert parts == expected_parts(pids, indices, np.arange(len(pids)))


@every_build
@given(
    pids=st.lists(st.integers(0, 2), max_size=5),
    wrong=st.sampled_from([-(2**63), -1, 3, 4, 2**62]),
    more=st.lists(st.integers(0, 2), max_size=5),
)
def test_a_pid_that_is_no_process_is_found(elements, pids, wrong, more):
    every = np.array([*pids, wrong, *more])
    assert not elements.count_elements(every, np.zeros_like(every), np.zeros(4, np.uint64))
    every[len(pids)] = 2
    assert elements.count_elements(every, np.zeros_like(every), np.zeros(4, np.uint64))


@every_build
@given(
    indices=st.lists(st.integers(0, 2**63 - 1), max_size=5),
    negative=st.integers(-(2**63), -1),
    more=st.lists(st.integers(0, 2**63 - 1), max_size=5),
)
def test_a_negative_index_counts_as_a_great_one(elements, indices, negative, more):
    every = np.array([*indices, negative, *more])
    numbers = np.zeros(2, np.uint64)
    assert elements.count_elements(np.zeros_like(every), every, numbers)
    assert numbers.tolist() == [len(every), negative + 2**64]
