"""What is planted in the sample sort and in the SQL plan is the first loss that the verdict names.

The sorts move many bytes for their work, so that a sentence on these may come before it. The plan
has stages with next to no work on 16 processes: what their supersteps cost is said, and belongs to
the sentence on planted supersteps, too.
"""

from __future__ import annotations

import pytest

from bsplib.profiler.kinds import COMMUNICATION, STEPS
from bsplib.profiler.verdict import REST

from .disturbed import APPS, FACTS, Setting, book_of_run, halves, undisturbed

PLACES = [
    pytest.param("sorts", 4, marks=pytest.mark.slow),
    ("sorts", 16),
    ("queries", 4),
    pytest.param("queries", 16, marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def undisturbed_book(tmp_path_factory):
    """Return the book of an application on some processes where nothing disturbs it."""
    found = {}

    def book(program, app, nprocs):
        if (program, app, nprocs) not in found:
            path = tmp_path_factory.mktemp("undisturbed") / "trace.bsp"
            found[program, app, nprocs] = book_of_run(
                path, program, Setting(APPS[app], nprocs, 0.0)
            )
        return found[program, app, nprocs]

    return book


def seconds_of(kind, verdict):
    return sum(each.seconds for each in verdict.sentences if each.kind == kind)


@pytest.mark.lengthy(values="all")
@pytest.mark.parametrize("fact", FACTS)
@pytest.mark.parametrize("share", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("app", "nprocs"), PLACES)
def test_the_verdict_begins_with_what_was_planted(
    tmp_path, undisturbed_book, app, nprocs, fact, share
):
    planted = FACTS[fact]
    before = undisturbed_book(planted.without, app, nprocs)
    lost_s = share * before.main.time_s
    book = book_of_run(tmp_path / "trace.bsp", planted.main, Setting(APPS[app], nprocs, lost_s))
    own = {COMMUNICATION} if fact == "supersteps" else {COMMUNICATION, STEPS}
    first = next(each for each in book.verdict().sentences if each.kind not in own)
    assert [word for word in planted.words if word not in first.text] == [], first.text
    before_s = seconds_of(STEPS, before.verdict()) if fact == "supersteps" else 0
    assert first.seconds - before_s == pytest.approx(lost_s, rel=0.25)
    if fact == "sub-groups":  # all of the group are late together
        assert first.pids == tuple(range(nprocs // 2, nprocs))


@pytest.mark.lengthy(values="all")
@pytest.mark.parametrize("program", [undisturbed, halves])
@pytest.mark.parametrize(("app", "nprocs"), PLACES)
def test_an_application_that_nothing_disturbs_is_balanced(tmp_path, app, nprocs, program):
    setting = Setting(APPS[app], nprocs, 0.0)
    verdict = book_of_run(tmp_path / "trace.bsp", program, setting).verdict()
    uneven = {each.kind for each in verdict.sentences} - {COMMUNICATION, STEPS, REST, "balanced"}
    assert uneven == set(), str(verdict)
