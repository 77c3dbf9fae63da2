"""Run the real code of the backend shm in many orders of its processes, one step at a time.

``python tests/bsplib/schedules.py`` prints one line of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from typing import Any

os.environ["BSPLIB_CORE"] = "python"

import click
from scheduled import defects, machine
from scheduled.orders import ByPriority, Search
from scheduled.programs import ALL, CELLS, Case, Program, cases
from scheduled.scheduler import Choose, Conflicts, PrunedError

_MOST_SHOWN = 3
_TURN_S = 0.2
"""Processor time after which the search for orders of another program goes on."""
_STEPS = 400
"""About as many choices as there are in a run."""


class Explorer:
    """Runs programs in orders, and notes what went wrong."""

    def __init__(self) -> None:
        self.schedules = 0
        self.pruned = 0
        self.entered: Counter[Any] = Counter()
        self.wrong: list[tuple[int, str]] = []
        self.bounds: dict[str, int] = {}
        """By program: the greatest number of pre-emptions of which all orders were run."""

    def run(
        self,
        case: Case,
        order: Choose,
        name: str,
        conflicts: Conflicts | None = None,
        *,
        whole: bool = True,
    ) -> None:
        """Run one program in one order."""
        self.schedules += 1
        program = Program(case, self.entered, machine.begin_to_choose, machine.take_kinds)
        try:
            found = machine.run(
                program.main,
                case.runs,
                order,
                conflicts,
                whole=whole,
            )
            right = [
                [program.expected(pid, run) for pid in range(machine.NPROCS)]
                for run in range(case.runs)
            ]
            if found != right:
                self._note(case, name, "other values")
        except PrunedError:
            self.pruned += 1
        except Exception as error:  # noqa: BLE001  # whatever a schedule does to a program
            last = traceback.extract_tb(error.__traceback__)[-1]
            self._note(case, name, f"{error!r:.300} at {last.name}")

    def _note(self, case: Case, name: str, what: str) -> None:
        self.wrong.append((self.schedules, f"{tuple(case.cell)} {case[1:]} {name}: {what}"))

    def search(self, case: Case, most: int) -> Iterator[None]:
        """Run a program in all orders with few pre-emptions; yield after each of them.

        Begin again whenever a conflict is found that was not known at the beginning.
        """
        conflicts = Conflicts(everywhere=False)
        bound = 0  # most conflicts are found without a pre-emption
        while bound <= most:
            search, conflicts.has_grown = Search(bound), False
            for order in search.orders():
                name = f"order {bytes(order.begin).hex()}"
                self.run(case, order, name, conflicts, whole=case.cell.duty == "nothing")
                if not conflicts.has_grown:
                    self.bounds[case.name] = search.complete()
                yield
                if conflicts.has_grown:
                    break
            if not conflicts.has_grown:
                bound = most if bound < most else most + 1

    def all_orders(self, chosen: list[Case], most: int, each_s: float, all_s: float) -> None:
        """Run programs in all orders with few pre-emptions, in turns.

        Args:
            chosen: the programs.
            most: pre-emptions of an order.
            each_s: processor time for one program.
            all_s: processor time for all of them.
        """
        self.bounds = {case.name: -1 for case in chosen}
        left = [(self.search(case, most), each_s) for case in chosen]
        while left and all_s > 0:
            turns, left = left, []
            for search, seconds in turns:
                began = time.process_time()
                has_ended = _take_turn(search, min(_TURN_S, seconds, all_s))
                spent = time.process_time() - began
                all_s -= spent
                if not has_ended and spent < seconds:
                    left.append((search, seconds - spent))

    def random_orders(self, chosen: list[Case], count: int, seed: int, seconds: float) -> None:
        """Run programs in random orders, in turn, until all are run or the seconds have passed."""
        stop = time.monotonic() + seconds
        for number in range(seed, seed + count):
            if time.monotonic() > stop:
                break
            case = chosen[number % len(chosen)]
            self.run(case, ByPriority(number, machine.NPROCS, _STEPS), f"seed {number}")


def _take_turn(search: Iterator[None], seconds: float) -> bool:
    """Go on with a search for some processor time; tell whether it has come to its end."""
    stop = time.process_time() + seconds
    return all(time.process_time() < stop for _ in search)


@click.command()
@click.option(
    "--preemptions", default=-1, help="Run all orders with at most this number of pre-emptions."
)
@click.option("--seconds", default=3600.0, help="Processor time for all orders of one program.")
@click.option(
    "--all-seconds", default=3600.0, help="Processor time for all orders of all programs."
)
@click.option("--random", "count", default=0, help="Number of random orders.")
@click.option("--random-seconds", default=3600.0, help="Longest time for all random orders.")
@click.option("--seed", default=0, help="Of the first random order.")
@click.option("--every", default=1, help="Take only one of this number of programs.")
@click.option("--defect", type=click.Choice(sorted(defects.ALL)), help="Put a defect back.")
@click.option("--event", help="Take only programs with this next event.")
def command(**options: Any) -> None:
    """Run programs in many orders; print what was found as JSON."""
    if options["defect"]:
        defects.ALL[options["defect"]]()
    gc.freeze()  # what was imported need not be looked at again and again
    explorer, began = Explorer(), time.perf_counter()
    chosen = [case for case in cases() if options["event"] in (None, case.cell.event)]
    chosen = chosen[:: options["every"]]
    if options["preemptions"] >= 0:
        limits = options["seconds"], options["all_seconds"]
        explorer.all_orders(chosen, options["preemptions"], *limits)
    explorer.random_orders(chosen, options["count"], options["seed"], options["random_seconds"])
    result = outcome(explorer, options, time.perf_counter() - began)
    click.echo(json.dumps(result))
    sys.exit(bool(explorer.wrong))


def outcome(explorer: Explorer, options: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return what was found."""
    reached = sorted(set(explorer.bounds.values()))
    return {
        "options": options,
        "programs": len(explorer.bounds),
        "complete": {
            bound: sum(found == bound for found in explorer.bounds.values()) for bound in reached
        },
        "not_complete": {
            name: bound for name, bound in explorer.bounds.items() if bound < options["preemptions"]
        },
        "schedules": explorer.schedules,
        "pruned": explorer.pruned,
        "seconds": round(seconds, 1),
        "wrong": len(explorer.wrong),
        "first_wrong": explorer.wrong[0][0] if explorer.wrong else None,
        "examples": [what for _, what in explorer.wrong[:_MOST_SHOWN]],
        "entered": {" ".join(cell): explorer.entered[cell] for cell in CELLS},
        "impossible": {" ".join(cell): cell.why_impossible() for cell in ALL if cell not in CELLS},
    }


if __name__ == "__main__":
    command()
