"""All ranks agree on the hash of a text."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import bsplib
from bsplib.backends.hash_seed import VARIABLE
from bsplib.backends.mpi.launch import end_kept
from tests.bsplib.test_hashes import check, count_elements


@pytest.mark.lengthy
@pytest.mark.usefixtures("mpi")
@pytest.mark.parametrize("passed_on", [True, False])
def test_a_count_by_hash_loses_no_word(monkeypatch, passed_on):
    monkeypatch.delenv(VARIABLE, raising=False)
    end_kept()
    if not passed_on:  # as by a launcher that keeps the environment from other hosts
        monkeypatch.setattr("bsplib.backends.mpi.launcher.hash_seed.one_seed", nullcontext)
    check(bsplib.run(count_elements, nprocs=3, backend="mpi"))
