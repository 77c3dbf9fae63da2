"""Reports of how accurate predictions are: their goals, their JSON file, and the table.

The benchmarks of predictions measure errors, not seconds, so that they have no cases that take
turns. Each describes what it found as a report, from which its goals are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from benchmarks.harness import RESULTS, TRIALS, write
from bsplib.profiler.predict.program import BoundedValue, ChainModel, Point

if TYPE_CHECKING:
    from bsplib.profiler.predict.observed import Observation

Report = dict[str, Any]
"""What a benchmark found, in its form in the JSON file."""


class AccuracyGoal(NamedTuple):
    """A goal and what was reached, both in words."""

    what: str
    reached: str
    goal: str
    met: bool | None
    """None if what it is compared with was not measured."""


def keep(head: Report, report: Report, goals: Sequence[AccuracyGoal], *, trial: bool) -> None:
    """Write the JSON file, and show the goals as a table in the terminal.

    Args:
        head: the circumstances, which name the benchmark.
        report: what was found.
        goals: the goals, with what was reached.
        trial: write into the folder of trials rather than into that of results.
    """
    document = head | {"goals": [goal._asdict() for goal in goals]} | report
    path = write(document, TRIALS if trial else RESULTS)
    table = Table("", "reached", "goal", "met")
    for goal in goals:
        met = {True: "yes", False: "no", None: ""}[goal.met]
        table.add_row(goal.what, goal.reached, goal.goal, met)
    Console().print(table)
    click.echo(f"wrote {path}")


def predicted_value(chains: Sequence[ChainModel], quantity: str, point: Point) -> BoundedValue:
    """Return a quantity of a cost centre: the sum over its call chains."""
    found = [each.at(point)[quantity] for each in chains]
    return BoundedValue(
        sum(each.value for each in found),
        sum(each.low for each in found),
        sum(each.high for each in found),
        all(each.is_exact for each in found),
        next((each.why for each in found if each.why), ""),
    )


def observed_values(
    chains: Sequence[ChainModel], quantity: str, observed: Sequence[Observation]
) -> list[float]:
    """Return the same of some runs."""
    return [sum(getattr(each.of(chain.chain), quantity) for chain in chains) for each in observed]


def law_text(chains: Sequence[ChainModel], quantity: str) -> str:
    """Return the laws of a quantity of a cost centre."""
    return "; ".join(each.learned[quantity].text for each in chains)
