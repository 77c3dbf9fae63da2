"""Limits for build servers: their grammar, and which nodes violate them."""

from __future__ import annotations

import re

import pytest

from bsplib.errors import UsageError
from bsplib.profiler.compare.comparison import compare_runs
from bsplib.profiler.compare.limits import parse, violations

MS = 1_000_000


@pytest.fixture
def comparison(script):
    """Return main and solve before, and main, solve and fresh after."""

    def made(work, size, rounds, *more):
        program = script(2)
        program.first_lines = {"main": 1, "solve": 11, "Mesh.build": 31}
        for _ in range(rounds):
            program.step("main solve:12", [work * MS, MS], puts=[(0, 1, size)])
        for stack in more:
            program.step(stack, MS)
        return program.run()

    before, after = made(1, 1000, 4, "main:3 Mesh.build"), made(3, 1010, 5, "main:4 fresh:90")
    return compare_runs(before, after)


@pytest.fixture
def violated(comparison):
    """Return the sentences about the violated limits."""
    return lambda text: violations(comparison, parse(text))


@pytest.mark.parametrize(
    ("text", "before", "bound"),
    [
        ("h>+1%", 200, 202),
        ("h > + 1 %", 200, 202),
        ("h>+10kB", 200, 10_200),
        ("h>+1.5MB", 0, 1.5e6),
        ("h>512B", 200, 512),
        ("h<-50%", 200, 100),
        ("time>+2ms", 1, 1.002),
        ("time>+2us", 1, 1.000002),
        ("loss>.5s", 1, 0.5),
        ("idle>+1e-3s", 0, 0.001),
        ("supersteps>+0", 3, 3),
        ("supersteps>+2", 3, 5),
        ("supersteps>+50%", 4, 6),
        ("balance<90%", 0.5, 0.9),
        ("balance<0.9", 0.5, 0.9),
        ("balance<-5%", 0.8, 0.76),
        ("comm>0", 1, 0),
        ("time>+0", 1, 1),
        ("comp>100ns", 1, 1e-7),
    ],
)
def test_a_limit_has_a_bound(text, before, bound):
    (limit,) = parse(text)
    assert limit.bound(before) == pytest.approx(bound)
    wider, narrower = (bound * 1.01 + 1e-9, bound * 0.99 - 1e-9)
    assert limit.violated(before, wider) == limit.above
    assert limit.violated(before, narrower) != limit.above
    assert not limit.violated(before, limit.bound(before))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "'' is no limit; write it as in h>+1%"),
        ("h", "'h' is no limit"),
        ("h>", "'h>' is no limit"),
        ("h=3", "'h=3' is no limit"),
        ("h>>3", "'h>>3' is no limit"),
        ("h>=+1%", "'h>=+1%' is no limit"),
        ("h>+1%@", "'h>+1%@' is no limit"),
        ("h>+1%,,", "'' is no limit"),
        ("h>1%%", "'%%' is no unit in 'h>1%%'"),
        ("speed>+1%", "'speed' in 'speed>+1%' is no quantity; they are time, loss, supersteps,"),
        ("h>10%", "'%' is no unit in 'h>10%': the units of a value of h-relation are B, kB"),
        ("h>+10ms", "'ms' is no unit in 'h>+10ms': the units of a change of h-relation are B"),
        ("h>+10", "there is no unit in 'h>+10'"),
        ("time>3", "there is no unit in 'time>3': the units of a value of time are s, ms, us"),
        (
            "supersteps>3s",
            "'s' is no unit in 'supersteps>3s': the units of a value of supersteps are none",
        ),
        ("h>+1%\x1b[31m", "is no limit"),
    ],
)
def test_a_limit_that_cannot_be_understood_is_refused(text, error):
    with pytest.raises(UsageError, match=re.escape(error)):
        parse(text)


def test_a_limit_is_about_the_whole_run(violated):
    assert violated("h>+1%") == [
        "main: h-relation 5.05 kB (4.00 kB before), and h>+1% allows at most 4.04 kB"
    ]
    assert violated("h>+30%,supersteps>6,time>+1s,balance<50%") == []


def test_a_limit_may_be_about_one_function(violated):
    (sentence,) = violated("supersteps>+0@solve")
    assert sentence == "solve: supersteps 5 (4 before), and supersteps>+0@solve allows at most 4"


def test_a_limit_may_be_about_every_node(violated):
    names = [sentence.partition(":")[0] for sentence in violated("supersteps>+0@*")]
    assert names == ["main", "solve", "solve · app.py line 12", "fresh", "fresh · app.py line 90"]


def test_a_new_node_is_measured_against_nothing(violated):
    (sentence,) = violated("time>+50%@fresh")
    assert sentence == "fresh: time 1.00 ms (new), and time>+50%@fresh allows at most 0 s"
    assert violated("balance<-10%@fresh") == []
    assert violated("balance>99%@fresh") != []


def test_a_sentence_shows_the_digits_that_differ(violated):
    (sentence,) = violated("h>5049B@solve")
    assert (
        sentence
        == "solve: h-relation 5050 B (4000 B before), and h>5049B@solve allows at most 5049 B"
    )


def test_a_node_that_is_not_there_is_an_error(violated):
    with pytest.raises(UsageError, match=r"no node is called 'sovle', as 'h>\+0@sovle' says"):
        violated("h>+0@sovle")
