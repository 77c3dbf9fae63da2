"""A verdict names first what was planted in a program on real processes, with its seconds.

A computer that is busy disturbs a recording by more than what was planted. So a program is recorded
up to three times, and one verdict has to name it. Where other tests run beside them on the same two
cores even that says little, so that they run with all cases only. Seconds may differ by what
processes waited for a core, which shifts one superstep against another.
"""

from __future__ import annotations

import pytest

import bsplib
from bsplib.profiler.callgraph import build
from bsplib.profiler.kinds import CORE
from bsplib.profiler.losses import book
from bsplib.recording.trace import read_trace

from .causes import CAUSES, busy_beside

pytestmark = pytest.mark.slow

RECORDINGS = 3
DIFFERENCE = 0.05
"""Part of the planted seconds by which a sentence may miss them."""
LEAST_OTHER = 0.03
"""Part of the elapsed time of which nothing else may be told."""
LEAST_PLANTED_S = 0.02
"""Where less was planted, the computer has no disk that is waited for."""


@pytest.mark.parametrize("name", CAUSES)
def test_the_first_sentence_names_the_cause(tmp_path, name):
    doubts = []
    for number in range(RECORDINGS):
        ledger, planted_s = recorded(CAUSES[name], tmp_path / f"run-{number}.bsp")
        if CAUSES[name].has_seconds and planted_s < LEAST_PLANTED_S:
            pytest.skip(f"{name}: the temporary folder is in memory, so that no disk is waited for")
        found = doubts_about(CAUSES[name], ledger, planted_s)
        if not found:
            return
        doubts.append("\n".join([*found, str(ledger.verdict())]))
    pytest.fail("\n\n".join(doubts))


def recorded(cause, path):
    """Return the ledger of a recorded run, and the seconds that were planted in it."""
    with busy_beside(cause.beside):
        lost = bsplib.run(
            cause.main, nprocs=cause.nprocs, backend="shm", profile=path, lines=cause.lines
        )
    (run,) = read_trace(path).runs
    ledger = book(build(run))
    spent = ledger.account.whole()
    assert sum(spent.values()) == cause.nprocs * ledger.account.elapsed_ns
    return ledger, sum(lost) / cause.nprocs


def doubts_about(cause, ledger, planted_s):
    """Return what a verdict says wrongly about a cause."""
    sentences = ledger.verdict().sentences
    # Two causes that hide each other are of one size: either may be named first.
    first = next((each for each in sentences[: cause.planted] if names(cause, each)), None)
    if first is None:
        return [f"the first sentence does not name {cause.kind}: {', '.join(cause.texts)}"]
    doubts = []
    waited_s = ledger.account.whole()["core"] / 1e9 / cause.nprocs
    most = DIFFERENCE * planted_s + waited_s
    if cause.has_seconds and abs(first.seconds - planted_s) > most:
        doubts.append(f"{planted_s:.3f} s were planted, and {first.seconds:.3f} s were named")
    others = [each for each in sentences if each.kind != CORE]
    own = cause.planted - (cause.kind == CORE)
    doubts += [
        f"this is named, too: {each.text}"
        for each in others[own:]
        if each.seconds > LEAST_OTHER * ledger.elapsed_s
    ]
    return doubts


def names(cause, sentence):
    """Tell whether a sentence names a cause, at its line."""
    return sentence.kind == cause.kind and all(text in sentence.text for text in cause.texts)
