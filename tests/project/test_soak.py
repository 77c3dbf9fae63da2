"""The outcome of the last soak is kept, and says what was soaked and how long."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MILLION = 10**6


@pytest.fixture(scope="module")
def outcome():
    return json.loads((ROOT / "tests" / "bsplib" / "soak.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("backend", ["shm", "sim"])
def test_a_million_supersteps_were_run_and_memory_did_not_grow(outcome, backend):
    memory = outcome["memory"][backend]
    assert memory["supersteps"] == MILLION
    assert memory["growth_bytes"] < 16 << 20


@pytest.mark.parametrize("backend", ["shm", "sim"])
def test_thousands_of_random_programs_did_what_they_should(outcome, backend):
    programs = outcome["random_programs"]
    assert programs["programs"] >= 2000
    assert programs[backend]["different"] == []
    assert sum(programs[backend]["faults"].values()) == programs["programs"]


@pytest.fixture(scope="module")
def on_mpi():
    """Return the outcome of the soak on each MPI, which was run apart."""
    path = ROOT / "tests" / "bsplib" / "soak_mpi.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("mpi", ["mpi on MPICH", "mpi on Open MPI"])
def test_thousands_of_random_programs_did_on_each_mpi_what_they_should(on_mpi, mpi):
    parts = on_mpi["random_programs"][mpi]
    assert all(re.fullmatch("[0-9a-f]{40}", part["commit"]) for part in parts)
    assert [seed for part in parts for seed in part["different"]] == []
    assert {"1", "2", "3", "4", "8"} <= {nprocs for part in parts for nprocs in part["by_nprocs"]}
    assert sum(sum(part["by_nprocs"].values()) for part in parts) >= 2000


@pytest.mark.parametrize("mpi", ["mpi on MPICH", "mpi on Open MPI"])
def test_memory_did_not_grow_in_a_hundred_thousand_supersteps_on_each_mpi(on_mpi, mpi):
    memory = on_mpi["memory"][mpi]
    assert memory["supersteps"] == MILLION // 10
    assert memory["growth_bytes"] < 1 << 20
