"""A verdict names first what was planted in a program on two real processes."""

from __future__ import annotations

import pytest

import bsplib
from bsplib.profiler.callgraph import build
from bsplib.profiler.losses import book
from bsplib.recording.trace import read_trace

from .causes import CAUSES

pytestmark = pytest.mark.lengthy


@pytest.mark.parametrize("name", CAUSES)
def test_the_first_sentence_names_the_cause(tmp_path, name):
    cause = CAUSES[name]
    bsplib.run(cause.main, nprocs=2, backend="shm", profile=tmp_path / "run.bsp")
    (run,) = read_trace(tmp_path / "run.bsp").runs
    ledger = book(build(run))
    first = ledger.verdict().sentences[0]
    assert first.kind == cause.kind, str(ledger.verdict())
    assert [word for word in cause.words if word not in first.text] == [], first.text
    assert sum(ledger.account.whole().values()) == 2 * ledger.account.elapsed_ns
