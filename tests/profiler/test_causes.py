"""A verdict names first what was planted in a program on two real processes.

A computer that is busy disturbs a recording by more than what was planted. So a program is recorded
up to three times, and one verdict has to name it.
"""

from __future__ import annotations

import pytest

import bsplib
from bsplib.profiler.callgraph import build
from bsplib.profiler.losses import book
from bsplib.recording.trace import read_trace

from .causes import CAUSES

pytestmark = pytest.mark.lengthy

RECORDINGS = 3


@pytest.mark.parametrize("name", CAUSES)
def test_the_first_sentence_names_the_cause(tmp_path, name):
    cause, verdicts = CAUSES[name], []
    for number in range(RECORDINGS):
        path = tmp_path / f"run-{number}.bsp"
        bsplib.run(cause.main, nprocs=2, backend="shm", profile=path)
        (run,) = read_trace(path).runs
        ledger = book(build(run))
        assert sum(ledger.account.whole().values()) == 2 * ledger.account.elapsed_ns
        first = ledger.verdict().sentences[0]
        if first.kind == cause.kind and all(word in first.text for word in cause.words):
            return
        verdicts.append(str(ledger.verdict()))
    pytest.fail("\n\n".join(verdicts))
