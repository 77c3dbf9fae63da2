"""All processes of a run agree on the hash of a text, however they are started."""

from __future__ import annotations

from collections import Counter

import pytest

import bsplib
from bsplib.backends.hash_seed import VARIABLE

WORDS = [f"word {number}" for number in range(200)]


def count_elements(bsp):
    """Count words that each process finds; process hash(word) % nprocs has the sum of each."""
    for word in WORDS:
        bsp.send(hash(word) % bsp.nprocs, word)
    bsp.sync()
    return Counter(word for _, _, word in bsp.messages())


def check(counts):
    assert sum(len(each) for each in counts) == len(WORDS)
    assert set().union(*counts) == set(WORDS)
    assert all(set(each.values()) == {len(counts)} for each in counts)


@pytest.fixture(autouse=True)
def no_seed(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "start_method",
    ["spawn", *(pytest.param(how, marks=pytest.mark.slow) for how in ("fork", "forkserver"))],
)
def test_a_count_by_hash_loses_no_word(start_method):
    check(bsplib.run(count_elements, nprocs=3, start_method=start_method))


def own_hash(bsp):
    return hash("word")


@pytest.mark.slow
def test_the_seed_that_the_user_names_is_kept(monkeypatch):
    monkeypatch.setenv(VARIABLE, "7")
    found = bsplib.run(own_hash, nprocs=2, start_method="spawn")
    monkeypatch.setenv(VARIABLE, "8")
    assert bsplib.run(own_hash, nprocs=2, start_method="spawn") != found
    monkeypatch.setenv(VARIABLE, "7")
    assert bsplib.run(own_hash, nprocs=2, start_method="spawn") == found
