"""The cost of registering and removing arrays, by their number.

``python -m benchmarks.bench_registration`` writes ``benchmarks/results/registration.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

import bsplib
from benchmarks import programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section

FEW, MANY = 250, 1000


def _name(count: int) -> str:
    return f"{count} arrays"


def _registrations(each_superstep: bool, stack: ExitStack) -> Sequence[Case]:
    """Compare many arrays with few: if the time is linear, the seconds for each are equal."""
    pool = stack.enter_context(bsplib.Pool(1))

    def sample(count: int) -> float:
        seconds: float = pool.run(programs.registrations, count, each_superstep=each_superstep)[0]
        return seconds

    few, many = (Case(_name(count), partial(sample, count)) for count in (FEW, MANY))
    goals = (Goal.times(1.5, few.name),)
    return [few, Case(many.name, many.sample, goals=goals)]


SECTIONS = (
    Section(
        "Push, then pop in the order of the pushes, in one superstep, p = 1",
        "array",
        partial(_registrations, False),
    ),
    Section(
        "Push, then pop in the order of the pushes, one a superstep, p = 1",
        "array",
        partial(_registrations, True),
    ),
)

BENCHMARK = Benchmark("registration", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
