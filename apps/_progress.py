"""A progress bar that a program shows while it runs: process 0 draws it for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import bsplib

Step = Callable[[str], None]
"""Is told what has been begun; whatever was begun before is done."""


def unseen(_: str) -> None:
    """Show nothing."""


@contextmanager
def steps(bsp: bsplib.Group, total: int, *, shown: bool) -> Iterator[Step]:
    """Show how many of ``total`` steps have been done, if a person is there to see it.

    Args:
        bsp: the group; process 0 draws.
        total: number of steps.
        shown: whether it was asked for; elsewhere than on a terminal it is not drawn.

    Yields:
        What is to be called as a step begins.
    """
    console = Console(stderr=True)
    if bsp.pid or not shown or not console.is_terminal:
        yield unseen
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    # No thread draws it: a process that computes has but one.
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
        task = progress.add_task("", total=total, completed=-1)

        def begin(what: str) -> None:
            progress.update(task, description=what, advance=1)
            progress.refresh()

        yield begin
