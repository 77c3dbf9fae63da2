"""Run the real code of the backend shm in many orders of its processes, one step at a time.

``BSPLIB_CORE=python python tests/bsplib/schedules.py`` prints one line of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections import Counter
from typing import Any

os.environ["BSPLIB_CORE"] = "python"

import click
from scheduled import defects, machine
from scheduled.orders import ByPriority, all_orders
from scheduled.programs import ALL, CELLS, Case, Program, cases
from scheduled.scheduler import Choose

_MOST_SHOWN = 3
_STEPS = 400
"""About as many choices as there are in a run."""


class Explorer:
    """Runs programs in orders, and notes what went wrong."""

    def __init__(self) -> None:
        self.schedules = 0
        self.entered: Counter[Any] = Counter()
        self.wrong: list[tuple[int, str]] = []
        self.by_case: Counter[str] = Counter()

    def run(self, case: Case, order: Choose, name: str) -> None:
        """Run one program in one order."""
        self.schedules += 1
        program = Program(case, self.entered)
        try:
            found = machine.run(program.main, case.runs, order)
            right = [
                [program.expected(pid, run) for pid in range(machine.NPROCS)]
                for run in range(case.runs)
            ]
            if found != right:
                self._note(case, name, "other values")
        except Exception as error:  # noqa: BLE001  # whatever a schedule does to a program
            last = traceback.extract_tb(error.__traceback__)[-1]
            self._note(case, name, f"{error!r:.300} at {last.name}")

    def _note(self, case: Case, name: str, what: str) -> None:
        self.wrong.append((self.schedules, f"{tuple(case.cell)} {case[1:]} {name}: {what}"))
        self.by_case[" ".join((*case.cell, *case[1:]))] += 1

    def all_orders(self, case: Case, most: int) -> None:
        """Run a program in all orders with few deviations."""
        for order in all_orders(most):
            self.run(case, order, f"deviations {order.deviations}")

    def random_orders(self, chosen: list[Case], count: int, seed: int) -> None:
        """Run programs in random orders, in turn."""
        for number in range(seed, seed + count):
            case = chosen[number % len(chosen)]
            self.run(case, ByPriority(number, machine.NPROCS, _STEPS), f"seed {number}")


@click.command()
@click.option("--deviations", default=-1, help="Run all orders with so many at most.")
@click.option("--random", "count", default=0, help="Number of random orders.")
@click.option("--seed", default=0, help="Of the first random order.")
@click.option("--every", default=1, help="Take only one program of so many.")
@click.option("--defect", type=click.Choice(sorted(defects.ALL)), help="Put a defect back.")
@click.option("--event", help="Take only programs with this next event.")
def command(
    deviations: int, count: int, seed: int, every: int, defect: str | None, event: str | None
) -> None:
    """Run programs in many orders; print what was found as JSON."""
    if defect:
        defects.ALL[defect]()
    gc.freeze()  # what was imported need not be looked at again and again
    explorer, began = Explorer(), time.perf_counter()
    chosen = [case for case in cases() if event in (None, case.cell.event)][::every]
    if deviations >= 0:
        for case in chosen:
            explorer.all_orders(case, deviations)
    explorer.random_orders(chosen, count, seed)
    result = {
        "schedules": explorer.schedules,
        "seconds": round(time.perf_counter() - began, 1),
        "wrong": len(explorer.wrong),
        "first_wrong": explorer.wrong[0][0] if explorer.wrong else None,
        "examples": [what for _, what in explorer.wrong[:_MOST_SHOWN]],
        "by_case": dict(explorer.by_case.most_common(20)),
        "entered": {" ".join(cell): explorer.entered[cell] for cell in CELLS},
        "impossible": {" ".join(cell): cell.why_impossible() for cell in ALL if cell not in CELLS},
    }
    click.echo(json.dumps(result))
    sys.exit(bool(explorer.wrong))


if __name__ == "__main__":
    command()
