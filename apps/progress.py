"""A progress bar for a program while it runs; process 0 draws it for all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

import bsplib

Step = Callable[[str], None]
"""A function that is called with the name of a step as it begins; the step before is done."""
Tell = Callable[[float], None]
"""A function that is called with the fraction of the work that is done."""


def unseen(_: str) -> None:
    """Show nothing."""


class ProgressSteps:
    """The steps of a program, for a progress bar."""

    def __call__(self, what: str) -> None:
        """Begin a step; the step before is done."""

    def within(self, part: float) -> None:
        """Set the fraction of the step that is done, from 0 to 1."""


class _Drawn(ProgressSteps):
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
def steps(bsp: bsplib.Group, total: int, *, shown: bool) -> Iterator[ProgressSteps]:
    """Show how many of ``total`` steps are done, if standard error is a terminal.

    Args:
        bsp: the group; process 0 draws.
        total: number of steps.
        shown: whether to draw the bar at all.

    Yields:
        A function to call as each step begins.
    """
    console = Console(stderr=True)
    if bsp.pid or not shown or not console.is_terminal:
        yield ProgressSteps()
        return
    with _bar(console) as progress:
        yield _Drawn(progress, progress.add_task("", total=total))


@contextmanager
def drawn(what: str) -> Iterator[Tell]:
    """Show the progress of work outside any process of a run, if there is a terminal."""
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
        auto_refresh=False,  # no thread, so that a computing process has only one
        transient=True,
        disable=not console.is_terminal,
    )
