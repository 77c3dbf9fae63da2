"""Runs of an application with all values of a parameter."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.errors import UsageError
from bsplib.profiler.costs import computation_ns
from bsplib.profiler.models.prediction import MEASURED, Prediction, predict
from bsplib.profiler.prices import choose_prices, recorded_machine
from bsplib.profiler.tune.app import check_trace
from bsplib.recording.records import FROM_SYSTEM, NOT_MEASURED

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.tune.app import App
    from bsplib.profiler.tune.parameter import Parameter
    from bsplib.recording.records import Run

MODEL = "BSP"
"""The cost model: a superstep costs max w + g h + l, with h by the Machine's rule."""


@dataclass(frozen=True)
class SweepOptions:
    """How to run the application."""

    nprocs: int | None = None
    backend: str | None = None
    machine: str | None = None
    arguments: tuple[str, ...] = ()
    """Further options of the application."""
    repeats: int = 1
    """Runs with each value."""
    keep: Path | None = None
    """Folder for the traces; if None, they are deleted."""

    def line(self, parameter: Parameter, value: int) -> list[str]:
        """Return the command line of a run."""
        where = [word for name, what in self.given().items() for word in (name, str(what))]
        return [*self.arguments, *where, parameter.option, str(value)]

    def given(self) -> dict[str, Any]:
        """Return the options, beside the parameter, that say how each run is made."""
        known = {"--nprocs": self.nprocs, "--backend": self.backend, "--machine": self.machine}
        return {name: what for name, what in known.items() if what}


@dataclass(frozen=True)
class Point:
    """The result of the runs with one value."""

    value: int
    run: Run
    """The fastest run, with the least times of its computations: see :func:`quietest`."""
    prediction: Prediction
    """Its prediction on the Machine of the run."""

    @property
    def machine(self) -> Machine:
        """The Machine of the run."""
        return self.prediction.prices.machine

    @property
    def total_s(self) -> float:
        """The cost on the Machine of the run."""
        return self.prediction.totals[MODEL].total_s

    @property
    def measured_s(self) -> float:
        """The measured time."""
        return self.prediction.totals[MEASURED].total_s


def sweep(
    app: App,
    parameter: Parameter,
    options: SweepOptions,
    advance: Callable[[], object] = lambda: None,
    *,
    warm_up: bool = True,
) -> list[Point]:
    """Run an application with all values of a parameter.

    All values are run once before any is run again, so that disturbances of the computer
    affect them equally. Before this, one run with the first value warms up and does not
    count, since a program is slower at first.

    Args:
        app: the application.
        parameter: its parameter and the values, as checked by :meth:`App.check`.
        options: how to run it.
        advance: is called after each of ``1 + repeats * len(values)`` runs.
        warm_up: whether to begin with the run that does not count.

    Returns:
        One point for each value, in their order.

    Raises:
        UsageError: the options are not valid, or the application fails.
    """
    runs: dict[int, list[Run]] = {value: [] for value in parameter.values}
    with _folder(options.keep) as folder:
        traces = {
            (turn, value): folder / f"{parameter.name}-{value}{f'-{turn + 1}' if turn else ''}.bsp"
            for turn in range(options.repeats)
            for value in runs
        }
        for trace in traces.values():
            check_trace(trace)
        if warm_up:
            trace = folder / ".warm-up.bsp"
            app.run(options.line(parameter, parameter.values[0]), trace)
            trace.unlink()
            advance()
        for (_, value), trace in traces.items():
            runs[value].append(app.run(options.line(parameter, value), trace))
            advance()
    return [_point(value, quietest(made)) for value, made in runs.items()]


def _point(value: int, run: Run) -> Point:
    machine = recorded_machine(run)
    if machine is None:
        raise UsageError("tune: the trace does not name the Machine of the run")
    machine.need("l")
    return Point(value, run, predict(run, choose_prices(run), [MODEL]))


def quietest(runs: Sequence[Run]) -> Run:
    """Return the fastest run, with the disturbances removed that the other runs reveal.

    Disturbances make computations longer and never shorter. If all runs have the same
    supersteps, each computation counts with its least time over the runs; the rest of its
    time counts as spent in primitives.
    """
    best = min(runs, key=lambda run: int(run.records["end"].max(initial=0)))
    if not all(_made_alike(run, best) for run in runs):
        return best
    least = np.minimum.reduce([computation_ns(run) for run in runs])
    records = best.records.copy()
    computed = records["arrive"] - records["start"] - records["comm_calls"] - records["sub"]
    records["comm_calls"] += computed - least.astype(np.int64)
    for name in FROM_SYSTEM:
        records[name] = NOT_MEASURED  # the remaining time is the computation
    return replace(best, records=records)


def _made_alike(run: Run, other: Run) -> bool:
    columns = ["pid", "group", "superstep", "kind", "stack"]
    return run.stacks == other.stacks and np.array_equal(
        run.records[columns], other.records[columns]
    )


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="bsp-tune-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(exist_ok=True, parents=keep.name.startswith("seed-"))
    except OSError as error:
        raise UsageError(f"tune: the folder {keep} cannot be created: {error.strerror}") from None
    yield keep
