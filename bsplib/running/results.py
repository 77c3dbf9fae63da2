"""The results of a run, or its error, from what its backend reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bsplib.backends.launching import Death, Ended, Interrupted, Report, TimeIsOver
from bsplib.running.failures import Failure, raise_first
from bsplib.running.process_locations import interrupted, overdue

if TYPE_CHECKING:
    from bsplib.experiments.blocks import Samples


def report_of(launch: Callable[[], Report], timeout: float | None) -> Report:
    """Launch a run and return its report, in which no process has failed.

    Args:
        launch: the backend's part of the run.
        timeout: seconds that the run may take.

    Raises:
        RunTimeoutError: it took longer.
        BaseException: the error of the lowest (superstep, pid), in its own type.
    """
    error: BaseException
    try:
        report = launch()
    except TimeIsOver as over:
        assert timeout is not None  # without a timeout TimeIsOver is not raised
        error = overdue(timeout, over.rows)
    except Interrupted as cut:
        error = cut.interrupt
        error.add_note(interrupted(cut.rows))
    else:
        raise_first(_with_deaths_as_failures(report.outcomes), report.hosts or {})
        return report
    raise error  # outside the except clause: the backend's exception is not its context


def values(report: Report) -> list[Any]:
    """Return what ``main`` returned in each process, by pid."""
    outcomes = report.outcomes
    return [outcomes[pid].value for pid in range(len(outcomes))]  # type: ignore[union-attr]  # none has failed


def samples(report: Report) -> list[Samples]:
    """Return what the blocks of experiments have measured, by pid; empty if they were not."""
    outcomes = report.outcomes
    found = [getattr(outcomes[pid], "samples", None) for pid in range(len(outcomes))]
    return [each for each in found if each is not None]


def _with_deaths_as_failures(outcomes: Mapping[int, Ended | Death]) -> dict[int, Ended]:
    return {
        pid: Failure(pid, ended.superstep, ended.error()) if isinstance(ended, Death) else ended
        for pid, ended in outcomes.items()
    }
