"""Transfers that are measured have to deliver what was written last; memory is of one process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.timing import seconds_of_transfer

ROOT = Path(__file__).parents[2]


def arrays(number):
    return [np.zeros(64, np.uint8) for _ in range(number)]


def test_every_transfer_rewrites_its_source_and_uses_the_targets_in_turn():
    (source,), targets, seen = arrays(1), arrays(2), []

    def transfer(target):
        seen.append((target, int(source[0])))
        targets[target][:] = source

    assert seconds_of_transfer(3, source, targets, transfer) > 0
    assert [target for target, _ in seen] == [turn % 2 for turn in range(1, len(seen) + 1)]
    assert [value for _, value in seen] == list(range(1, len(seen) + 1))


def test_a_transfer_that_delivers_nothing_is_an_error():
    (source,), targets = arrays(1), arrays(1)
    with pytest.raises(RuntimeError, match="values of another transfer"):
        seconds_of_transfer(3, source, targets, lambda _: None)


def test_a_transfer_that_delivers_a_part_is_an_error():
    (source,), targets = arrays(1), arrays(1)

    def transfer(target):
        targets[target][1:] = source[1:]

    with pytest.raises(RuntimeError, match="have not arrived"):
        seconds_of_transfer(3, source, targets, transfer)


@pytest.mark.lengthy
def test_the_memory_of_a_process_is_not_that_of_a_large_one_that_started_it():
    large = np.ones(2 * 10**7)
    code = "from benchmarks.timing import peak_bytes; print(peak_bytes())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert 10**7 < int(done.stdout) < large.nbytes
