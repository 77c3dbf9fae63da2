"""A progress bar that a program shows while it runs: process 0 draws it for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

import bsplib

Step = Callable[[str], None]
"""Is told what has been begun; whatever was begun before is done."""
Tell = Callable[[float], None]
"""Is told which part is done."""


def unseen(_: str) -> None:
    """Show nothing."""


class Steps:
    """How far a program has come, in steps."""

    def __call__(self, what: str) -> None:
        """Begin a step; the one before is done."""

    def within(self, part: float) -> None:
        """Tell which part of the step is done, at least 0 and at most 1."""


class _Drawn(Steps):
    """Steps that are drawn on a terminal."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._begun = 0

    def __call__(self, what: str) -> None:
        self._progress.update(self._task, description=what, completed=self._begun)
        self._progress.refresh()
        self._begun += 1

    def within(self, part: float) -> None:
        self._progress.update(self._task, completed=self._begun - 1 + part)
        self._progress.refresh()


@contextmanager
def steps(bsp: bsplib.Group, total: int, *, shown: bool) -> Iterator[Steps]:
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
        yield Steps()
        return
    with _bar(console) as progress:
        yield _Drawn(progress, progress.add_task("", total=total))


@contextmanager
def drawn(what: str) -> Iterator[Tell]:
    """Show how far something is that no process does, if a person is there to see it."""
    with _bar(Console(stderr=True)) as progress:
        task = progress.add_task(what, total=1.0)

        def tell(part: float) -> None:
            progress.update(task, completed=part)
            progress.refresh()

        yield tell


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return Progress(
        *columns,
        console=console,
        auto_refresh=False,  # no thread draws it: a process that computes has but one
        transient=True,
        disable=not console.is_terminal,
    )
