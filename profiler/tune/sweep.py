"""Running an application with one value of a parameter after the other."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from profiler.models.prediction import MEASURED, Prediction, predict
from profiler.models.prices import Prices, recorded_machine

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.records import Run
    from profiler.tune.app import App
    from profiler.tune.parameter import Parameter

MODEL = "BSPWB"
"""What a superstep is priced at: max w + g h + l, with the Machine's own rule for h."""


@dataclass(frozen=True)
class Options:
    """How the runs are to be made."""

    nprocs: int | None = None
    backend: str | None = None
    machine: str | None = None
    arguments: tuple[str, ...] = ()
    """Further options of the application."""
    repeats: int = 1
    """Runs with each value; the one that costs least stands for them, as what disturbs
    a run only adds to it."""
    keep: Path | None = None
    """Folder for the traces; they are deleted if None."""

    def line(self, parameter: Parameter, value: int) -> list[str]:
        """Return the command line of a run."""
        said = {"--nprocs": self.nprocs, "--backend": self.backend, "--machine": self.machine}
        place = [word for name, what in said.items() if what for word in (name, str(what))]
        return [*self.arguments, *place, parameter.option, str(value)]


@dataclass(frozen=True)
class Point:
    """The run that stands for one value."""

    value: int
    run: Run
    prediction: Prediction
    """On the Machine of the run."""

    @property
    def machine(self) -> Machine:
        """The Machine of the run."""
        return self.prediction.prices.machine

    @property
    def total_s(self) -> float:
        """What it costs on the Machine of the run."""
        return self.prediction.totals[MODEL].total_s

    @property
    def measured_s(self) -> float:
        """What it took."""
        return self.prediction.totals[MEASURED].total_s


def sweep(
    app: App, parameter: Parameter, options: Options, advance: Callable[[], object] = lambda: None
) -> list[Point]:
    """Run an application with all values of a parameter.

    The values take turns, so that what disturbs the machine disturbs them alike. The
    first one is run once more before, and does not count: a program is slower then.

    Args:
        app: what to run.
        parameter: its parameter and the values, as checked by :meth:`App.check`.
        options: how.
        advance: is called after each of ``1 + repeats * len(values)`` runs.

    Returns:
        One point for each value, in their order.

    Raises:
        UsageError: the application does not take the options, or does not end well.
    """
    runs: dict[int, list[Point]] = {value: [] for value in parameter.values}
    with _folder(options.keep) as folder:
        warm_up = folder / ".warm-up.bsp"
        app.run(options.line(parameter, parameter.values[0]), warm_up)
        warm_up.unlink()
        advance()
        for turn in range(options.repeats):
            for value, points in runs.items():
                trace = folder / f"{parameter.name}-{value}{f'-{turn + 1}' if turn else ''}.bsp"
                points.append(_point(value, app.run(options.line(parameter, value), trace)))
                advance()
    return [min(points, key=lambda point: point.total_s) for points in runs.values()]


def _point(value: int, run: Run) -> Point:
    machine = recorded_machine(run)
    if machine is None:
        raise UsageError("tune: the trace does not say what Machine it ran on")
    machine.need("l")
    return Point(value, run, predict(run, Prices(machine), [MODEL]))


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="bsp-tune-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"tune: {keep} cannot be made a folder: {error.strerror}") from None
    yield keep
