"""Predicts large runs from small ones by OBSP*: the Fourier transform and the sample sort.

Small runs are recorded and replayed: under OBSP* the time of each is the computation and
the communication on the path that determines it. Each of the two is fitted by a formula
from the analysis of the program, in N values, P processes, S records of a sample, R sorts
of a block, and M and C, the delays of the computation and the communication by the memory
of this computer. The prediction is the value of the formulas at a large N and P. Then the
large runs are made, and both are printed side by side as in the paper's Table 3, in total
and for computation and communication separately.

Every run, small or large, is repeated, and each computation and communication counts with
its least time, since other programs disturb the runs. On virtual processors, computation is
measured in CPU time and communication is priced by the Machine; on real processes both are
measured.

Cost: that of the programs, :mod:`bsplib.apps.fourier.fft` and
:mod:`bsplib.apps.sorting.sample_sort`.

Source: Gonzalez et al., sections 3 and 4: equation 8, Figure 4, Table 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import bsplib
from bsplib.apps.command import ProgramCommand
from bsplib.apps.fourier.published import TABLE_3
from bsplib.apps.prediction import experiments
from bsplib.apps.prediction.experiments import EXPERIMENTS, MeasuredProgram, RunSetup, Shape, Taken
from bsplib.apps.prediction.memory import memory_of
from bsplib.backends import table as backends
from bsplib.experiments.formula import read_formula
from bsplib.extras import need
from bsplib.profiler import format as fmt
from bsplib.profiler.predict.fit import Fit, fit_formula
from bsplib.visible import visible_lines

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class LargeRun:
    """A large run, as predicted and as measured."""

    size: int
    nprocs: int
    predicted: Taken
    low_s: float
    """Lower limit of the total, with 95% confidence."""
    high_s: float
    """Upper limit of the total, with 95% confidence."""
    measured: Taken

    @property
    def error(self) -> float:
        """(measured - predicted) / measured; Roda et al., equation 18, as a fraction."""
        return (self.measured.total_s - self.predicted.total_s) / self.measured.total_s


@dataclass(frozen=True)
class ProgramPrediction:
    """The results of one experiment."""

    experiment: MeasuredProgram
    computation: Fit
    communication: Fit
    small: int
    """Number of small runs to which the formulas were fitted."""
    rows: tuple[LargeRun, ...]

    @property
    def mean_error(self) -> float:
        """Mean of the absolute errors, as a fraction."""
        return float(np.mean([abs(row.error) for row in self.rows]))


def main(bsp: bsplib.Group, name: str, shape: Shape) -> None:
    """Run an experiment: once to warm up, and once for the measurement, from sync to sync.

    Args:
        bsp: the group.
        name: name of one of ``EXPERIMENTS``.
        shape: parameters of the run.

    Cost: twice that of the program, and a superstep between.
    Source: Gonzalez et al., Figure 4, the clause ``sync``.
    """
    experiments.measured(bsp, name, shape, 1)


def reference() -> dict[int, float]:
    """Return the errors of the paper's Table 3 in percent, by processes."""
    return {
        nprocs: 100 * (row.measured_s - row.predicted_s) / row.measured_s
        for nprocs, row in TABLE_3.items()
    }


def predict(
    experiment: MeasuredProgram,
    place: RunSetup,
    small: Sequence[Shape],
    large: Sequence[Shape],
    advance: Callable[[], object] = lambda: None,
) -> ProgramPrediction:
    """Make small runs, predict large ones, and make these, too.

    Args:
        experiment: the experiment.
        place: the backend and the Machine.
        small: parameters of the runs to which the formulas are fitted.
        large: parameters of the runs that are predicted.
        advance: is called after each run.

    Raises:
        FormulaError: a formula cannot be read, or has more parameters than there are
            small runs.
    """
    most = max(shape.nprocs for shape in [*small, *large])
    before = place.memory(most)
    for values in _variables(experiment, place, before, small, large):
        for text in (experiment.computation, experiment.communication):
            read_formula(text).columns(values)  # find errors before the runs, which take long

    taken = place.measure(experiment, [*small, *large], advance)
    # Other programs, also those of other virtual machines, share the last cache, and so the memory
    # is slower at times. The repeats of the runs are spread over the whole time; therefore the
    # memory is measured at the beginning and at the end of it.
    known, asked = _variables(experiment, place, before + place.memory(most), small, large)
    parts = _fitted(experiment, known, taken[: len(small)])
    points = {name: np.array(column, float) for name, column in asked.items()}
    comp, comm = (part.predict(points) for part in parts)
    comp_band, comm_band = (part.band(points, _CONFIDENCE) for part in parts)
    rows = [
        LargeRun(shape.size, shape.nprocs, Taken(*predicted), *bounds, taken)
        for shape, predicted, bounds, taken in zip(
            large,
            zip(comp.tolist(), comm.tolist(), strict=True),
            zip(
                (comp_band[0] + comm_band[0]).tolist(),
                (comp_band[1] + comm_band[1]).tolist(),
                strict=True,
            ),
            taken[len(small) :],
            strict=True,
        )
    ]
    return ProgramPrediction(experiment, *parts, len(small), tuple(rows))


def _variables(
    experiment: MeasuredProgram,
    place: RunSetup,
    memory: Sequence[Sequence[Sequence[float]]],
    *several: Sequence[Shape],
) -> list[dict[str, list[float]]]:
    """Return the variables of each of several sequences of runs."""
    known, virtual = memory_of(memory), place.backend == "sim"
    return [experiment.variables(known, shapes, virtual=virtual) for shapes in several]


def _fitted(
    experiment: MeasuredProgram, known: dict[str, list[float]], taken: Sequence[Taken]
) -> tuple[Fit, Fit]:
    """Fit both formulas to small runs.

    Runs of one process do not communicate; the formula of communication is fitted without them.
    """
    formulas = {"comp_s": experiment.computation, "comm_s": experiment.communication}
    found = []
    for part, formula in formulas.items():
        times = np.array([getattr(run, part) for run in taken])
        some = times > 0
        values = {name: np.array(column)[some] for name, column in known.items()}
        found.append(fit_formula(formula, values, times[some], divide="N/P", processes="P"))
    return found[0], found[1]


# -- on the terminal --------------------------------------------------------------------------


def table(prediction: ProgramPrediction) -> Table:
    """Return a table of the large runs, with three rows each: the total and its two parts."""
    rows = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    for title in ("N", "P"):
        rows.add_column(title, justify="right")
    rows.add_column("")
    for title in ("predicted", "95% between", "measured", "error"):
        rows.add_column(title, justify="right", no_wrap=True)
    for row in prediction.rows:
        between = f"{fmt.seconds(row.low_s)} .. {fmt.seconds(row.high_s)}"
        total = (row.predicted.total_s, row.measured.total_s)
        rows.add_row(*_size(row), "total", *_texts(*total, between))
        for part, name in (("comp_s", "computation"), ("comm_s", "communication")):
            pair = (getattr(row.predicted, part), getattr(row.measured, part))
            rows.add_row("", "", name, *_texts(*pair, ""))
    return rows


def _size(row: LargeRun) -> tuple[str, str]:
    power = row.size.bit_length() - 1
    return f"2^{power}" if row.size == 2**power else str(row.size), str(row.nprocs)


def _texts(predicted: float, measured: float, between: str) -> tuple[str, ...]:
    error = f"{100 * (measured - predicted) / measured:.1f}%" if measured else ""
    return fmt.seconds(predicted), between, fmt.seconds(measured), error


def _coefficients(fitted: Fit) -> str:
    """Return a formula with the values of its parameters."""
    pairs = zip(fitted.formula.parameters, fitted.coefficients, strict=True)
    values = ", ".join(f"{name} = {value:.3g}" for name, value in pairs)
    lines = [fitted.formula.text, f"  {values}; relative errors of {100 * fitted.noise:.1f}%"]
    if fitted.doubt:
        lines.append(f"  doubt: {fitted.doubt}")
    return "\n".join(lines)


def _print(console: Console, prediction: ProgramPrediction, place: RunSetup) -> None:
    name = {"fft": "recursive FFT", "sort": "sample sort"}[prediction.experiment.name]
    where = f"virtual processors on {place.machine}" if place.backend == "sim" else "real processes"
    console.print(f"{name}, {where}, from {prediction.small} small runs", style="bold")
    for fitted in (prediction.computation, prediction.communication):
        console.print(_coefficients(fitted), highlight=False, markup=False)
    console.print(table(prediction))
    console.print(
        f"mean error {100 * prediction.mean_error:.1f}% (the paper's own, FFT on a Cray T3E: "
        f"{np.mean(np.abs(list(reference().values()))):.1f}%)\n",
        highlight=False,
    )


def _predict_all(
    place: RunSetup, runs: Sequence[tuple[MeasuredProgram, Sequence[Shape], Sequence[Shape]]]
) -> list[ProgramPrediction]:
    """Predict all experiments, with a progress bar on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        console=Console(stderr=True),
        auto_refresh=False,  # no thread, since processes are forked from this process
        transient=True,
    ) as progress:
        total = place.repeats * sum(len(small) + len(large) for _, small, large in runs)
        bar = progress.add_task("measuring", total=total)

        def advance() -> None:
            progress.advance(bar)
            progress.refresh()

        return [
            predict(experiment, place, small, large, advance) for experiment, small, large in runs
        ]


@click.command(cls=ProgramCommand)
@click.option(
    "--app",
    "names",
    multiple=True,
    type=click.Choice(list(EXPERIMENTS)),
    help="Program to predict; may be given several times.  [default: both]",
)
@click.option(
    "--backend",
    default="sim",
    show_default=True,
    type=click.Choice(backends.names()),
    help="shm: real processes; sim: virtual processors.",
)
@click.option("--machine", default="shared-memory", show_default=True, metavar="NAME")
@click.option(
    "--small",
    default=2**17,
    show_default=True,
    type=click.IntRange(2**12),
    help="Greatest small run: small runs have 2^10 values, twice as many, and so on to this.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    type=click.IntRange(2**11),
    help="Values of a large run; may be given several times.  [default: 2^21]",
)
@click.option(
    "-n",
    "--nprocs",
    "counts",
    multiple=True,
    type=click.IntRange(1),
    help="Processes of a large run; may be given several times.  [default: 16 virtual, 2 real]",
)
@click.option(
    "--repeats", default=9, show_default=True, type=click.IntRange(1), help="Repeats of each run."
)
@click.option("--computation", metavar="FORMULA", help="Formula to use for the computation.")
@click.option("--communication", metavar="FORMULA", help="Formula to use for the communication.")
def command(
    names: tuple[str, ...],
    small: int,
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
    computation: str | None,
    communication: str | None,
    **where: Any,
) -> None:
    """Predict large runs of the FFT and the sample sort from small ones, and make both.

    The small runs are made and formulas fitted to them; then the large runs are made
    and compared with the values of the formulas.

    A formula is a sum of parameters times expressions of N values, P processes, S
    records of a sample, R sorts of a block, and M and C, the seconds by which memory
    delays computation and communication, as in
    "f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P) + M".
    """
    need("scipy")
    place = RunSetup(**where)
    chosen = [
        replace(
            EXPERIMENTS[name],
            computation=computation or EXPERIMENTS[name].computation,
            communication=communication or EXPERIMENTS[name].communication,
        )
        for name in names or EXPERIMENTS
    ]
    try:
        runs = [
            (experiment, *_runs(experiment, place, small, sizes, counts)) for experiment in chosen
        ]
        predictions = _predict_all(place, runs)
    except (ValueError, bsplib.BspError) as error:
        raise click.ClickException(visible_lines(str(error))) from None
    console = Console()
    for prediction in predictions:
        _print(console, prediction, place)


def _runs(
    experiment: MeasuredProgram,
    place: RunSetup,
    small: int,
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
) -> tuple[list[Shape], list[Shape]]:
    """Return the small runs and the large ones."""
    default = 16 if place.backend == "sim" else 2
    large = [Shape(size, count) for count in counts or (default,) for size in sizes or (2**21,)]
    for shape in large:
        experiment.check(shape)
    if place.backend == "sim":
        return experiment.small(small), large
    # Times of real processes vary more: so make more runs, with no more than these processes.
    return experiment.small(small, max(shape.nprocs for shape in large), fine=True), large
