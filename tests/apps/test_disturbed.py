"""What is planted in the sample sort and in the SQL plan is the first loss that the verdict names.

The sorts move many bytes for their work, so that a sentence on these may come before it.
"""

from __future__ import annotations

import pytest

from bsplib.profiler.kinds import COMMUNICATION
from bsplib.profiler.verdict import REST

from .disturbed import APPS, FACTS, Setting, halves, ledger_of, undisturbed

PLACES = [
    ("sorts", 4),
    ("sorts", 16),
    ("queries", 4),
    pytest.param("queries", 16, marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def cost_s(tmp_path_factory):
    """Return what an application costs on some processes where nothing disturbs it."""
    found = {}

    def cost(program, app, nprocs):
        if (program, app, nprocs) not in found:
            path = tmp_path_factory.mktemp("undisturbed") / "trace.bsp"
            setting = Setting(APPS[app], nprocs, 0.0)
            found[program, app, nprocs] = ledger_of(path, program, setting).cost_s
        return found[program, app, nprocs]

    return cost


@pytest.mark.parametrize("fact", FACTS)
@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
@pytest.mark.parametrize(("app", "nprocs"), PLACES)
def test_the_verdict_begins_with_what_was_planted(tmp_path, cost_s, app, nprocs, fact, share):
    planted = FACTS[fact]
    lost_s = share * cost_s(planted.without, app, nprocs)
    ledger = ledger_of(tmp_path / "trace.bsp", planted.main, Setting(APPS[app], nprocs, lost_s))
    first = next(each for each in ledger.verdict().sentences if each.kind != COMMUNICATION)
    assert [word for word in planted.words if word not in first.text] == [], first.text
    assert first.seconds == pytest.approx(lost_s, rel=0.25)


@pytest.mark.parametrize("program", [undisturbed, halves])
@pytest.mark.parametrize(("app", "nprocs"), PLACES)
def test_an_application_that_nothing_disturbs_is_balanced(tmp_path, app, nprocs, program):
    setting = Setting(APPS[app], nprocs, 0.0)
    verdict = ledger_of(tmp_path / "trace.bsp", program, setting).verdict()
    losses = [
        each for each in verdict.sentences if each.kind not in (COMMUNICATION, REST, "balanced")
    ]
    assert losses == [], str(verdict)
