"""Compare the search that ends orders early with one that runs each order to its end.

``python tests/bsplib/compare_orders.py`` prints, for small programs, how many orders each search
has run, and whether they have found the same histories and results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["BSPLIB_CORE"] = "python"

import click
from scheduled import machine
from scheduled.orders import Search
from scheduled.scheduler import Conflicts, PrunedError

Main = Callable[[Any, int], Any]


def put(bsp: Any, run: int) -> list[int]:  # there is one run
    """Put into the next process."""
    x = bsp.zeros(1, int)
    bsp.sync()
    machine.begin_to_choose()
    bsp.put((bsp.pid + 1) % 3, [bsp.pid], x)
    bsp.sync()
    return list(map(int, x))


def get(bsp: Any, run: int) -> list[int]:
    """Get from the next process."""
    x = bsp.array([bsp.pid])
    bsp.sync()
    machine.begin_to_choose()
    found = bsp.get((bsp.pid + 1) % 3, x)
    bsp.sync()
    return list(map(int, found))


def oblsync(bsp: Any, run: int) -> list[int]:
    """Put into process 1, which alone waits for it."""
    x = bsp.zeros(1, int)
    bsp.sync()
    machine.begin_to_choose()
    if bsp.pid == 0:
        bsp.put(1, [5], x)
    bsp.oblsync(int(bsp.pid == 1))
    return list(map(int, x))


def explore(main: Main, most: int, *, prunes: bool, everywhere: bool) -> tuple[int, set[Any]]:
    """Return the number of orders of a search, and the histories and results of their ends."""
    conflicts = Conflicts(everywhere=everywhere)
    while True:
        search, count, ends = Search(most, prunes=prunes), 0, set()
        conflicts.has_grown = False
        for order in search.orders():
            count += 1
            try:
                results = machine.run(main, 1, order, conflicts, whole=False)
                ends.add((*machine.HERE.scheduler.history.hashes, repr(results)))
            except PrunedError:
                pass
        if everywhere or not conflicts.has_grown:
            return count, ends


@click.command()
def command() -> None:
    """Print one line of JSON for each program and bound."""
    for main, most in ((put, 1), (get, 1), (oblsync, 1)):
        orders, ends = explore(main, most, prunes=False, everywhere=True)
        fewer, same = explore(main, most, prunes=True, everywhere=True)
        fewest, at_conflicts = explore(main, most, prunes=True, everywhere=False)
        found = {
            "program": main.__name__,
            "preemptions": most,
            "orders": [orders, fewer, fewest],
            "ends": [len(ends), len(same), len(at_conflicts)],
            "same_ends": ends == same,
            "known_ends": at_conflicts <= ends,
        }
        click.echo(json.dumps(found))


if __name__ == "__main__":
    command()
