"""The experiment of Gonzalez et al., Figure 4, and their Table 3: times and predictions.

``main`` measures the Fourier transform of N complex values on P processes as an experiment,
whose formula is that of the paper::

    bsp run -n 2 --profile small.bsp apps/fourier/experiment.py --once 1024     # and other sizes
    bsp predict --region f --at N=2^21,P=2 small.bsp

``python -m bsplib.apps.fourier.experiment`` does both, and prints what it measures and predicts for
another size, as Table 3 does; by default on virtual processors of a Cray T3E.

The paper prints neither the coefficients nor the other times. But its six predictions are
of one formula with four coefficients: :func:`printed_coefficients` finds them again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import bsplib
from bsplib.apps.command import backend_option
from bsplib.apps.fourier import common
from bsplib.apps.fourier.fft import prepare, transform
from bsplib.apps.fourier.published import TABLE_3
from bsplib.apps.progress import drawn
from bsplib.command_options import as_sentence
from bsplib.errors import BspError, UsageError
from bsplib.experiments.formula import read_formula
from bsplib.experiments.grid import read_counts
from bsplib.profiler.predict import TimingModel, fit_experiment
from bsplib.profiler.predict.experiments import passages
from bsplib.recording.trace import read_trace

FORMULA = "f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P) + f[3]*N*(P-1)/P"
"""Gonzalez et al., Figure 4, line 5."""
SIZES = tuple(2**power for power in range(10, 18))
"""Gonzalez et al., Figure 4, line 2: 1024 to 131072."""
SIZE = 2**21
"""The size of Table 3."""
T3E = "cray-t3e-mpi:l=2e-5,speed=5e7"
"""A T3E: g as fitted by Roda et al., Table 2, whose l is below zero; l and speed are the round
figures that bsplib.apps.sql assumes, too. None is fitted to times of this program. Computation
takes the
CPU time of this computer times the ratio of speeds, which holds for values in the cache."""


class PredictedTransform(NamedTuple):
    """A row of the table."""

    nprocs: int
    seconds: float
    """Measured."""
    predicted: float
    low: float
    high: float

    @property
    def error_percent(self) -> float:
        """100 (measured - predicted) / measured, as in Table 3."""
        return 100 * (self.seconds - self.predicted) / self.seconds


class Told(NamedTuple):
    """The table, with the model that predicts."""

    rows: tuple[PredictedTransform, ...]
    model: TimingModel


def main(bsp: bsplib.Group, N: int, seed: int = 0, passes: int = 3) -> complex:  # noqa: N803  # the paper's name
    """Transform random values several times, each time as a passage of the experiment ``f``.

    Args:
        bsp: the group.
        N: number of values, which all processes have; a power of two, and so is the
            number of processes, for which alone the formula holds.
        seed: of the values.
        passes: number of transforms; the first one also warms up.

    Returns:
        The sum of the transform, which is N times the first value.

    Cost: ``passes`` times that of :func:`bsplib.apps.fourier.fft.transform`, and two supersteps.
    Source: Gonzalez et al., Figures 4 and 5.
    """
    values = common.signal(N, seed)
    plan = prepare(bsp, N)
    out = np.zeros(N, np.complex128)
    bsp.sync()
    for _ in range(passes):
        with bsp.experiment("f", FORMULA, sync=True, N=N):
            transform(bsp, out, values, plan)
    return complex(out.sum())


def printed_coefficients() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the coefficients with which the formula gives the predictions of Table 3.

    Six predictions determine four coefficients; that these give all six to the printed
    digits shows that the formula of Figure 4 was used, in one segment for all P.
    """
    counts = np.array([*TABLE_3], float)
    columns, _ = read_formula(FORMULA).columns({"N": np.full(len(counts), SIZE), "P": counts})
    scale = np.linalg.norm(columns, axis=0)
    wanted = [printed.predicted_s for printed in TABLE_3.values()]
    found: np.ndarray[Any, np.dtype[np.float64]] = (
        np.linalg.lstsq(columns / scale, wanted, rcond=None)[0] / scale
    )
    return found


def printed_predictions() -> dict[int, float]:
    """Return the predictions of Table 3 from :func:`printed_coefficients`, in seconds, by P."""
    columns, _ = read_formula(FORMULA).columns({"N": SIZE, "P": np.array([*TABLE_3], float)})
    return dict(zip(TABLE_3, (columns @ printed_coefficients()).tolist(), strict=True))


def tell(
    procs: Sequence[int],
    size: int = SIZE,
    sizes: Sequence[int] = SIZES,
    advance: Callable[[float], object] = lambda _: None,
    *,
    repeats: int = 2,
    **options: Any,
) -> Told:
    """Measure small transforms, fit the formula, and predict and measure a large one.

    Args:
        procs: numbers of processes, powers of two.
        size: N of the large transform.
        sizes: of the small ones.
        advance: is called with the part that is done.
        repeats: runs of each; the least time counts.
        **options: of :func:`bsplib.run`, such as ``backend``.

    Raises:
        UsageError: the options are wrong, or there are too few sizes to fit.

    Source: Gonzalez et al., Table 3.
    """
    wanted = [(n, p) for n in sizes for p in procs] * repeats
    with tempfile.TemporaryDirectory(prefix="bsp-experiment-") as folder:
        paths = []
        for number, (n, p) in enumerate(wanted):
            paths.append(Path(folder, f"{number}.bsp"))
            bsplib.run(main, n, nprocs=p, profile=paths[-1], lines=False, **options)
            advance(number / (2 * len(wanted)))
        model = fit_experiment(paths, "f")
        rows = []
        for number, p in enumerate(procs):
            path = Path(folder, f"large-{p}.bsp")
            bsplib.run(main, size, nprocs=p, profile=path, lines=False, **options)
            predicted = model.predict(N=size, P=p)
            rows.append(
                PredictedTransform(
                    p,
                    min(max(each.amounts["time"]) for each in passages(read_trace(path).runs[-1])),
                    *(float(each[0]) for each in (predicted.times, predicted.low, predicted.high)),
                )
            )
            advance((1 + (number + 1) / len(procs)) / 2)
    return Told(tuple(rows), model)


def as_table(rows: Sequence[PredictedTransform]) -> Table:
    """Return the rows as a table for a terminal."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("P", "time", "predicted", "90% between", "error"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            str(row.nprocs),
            f"{row.seconds:.4g} s",
            f"{row.predicted:.4g} s",
            f"{row.low:.3g} .. {row.high:.3g}",
            f"{row.error_percent:.2f}%",
        )
    return table


@click.command("experiment")
@click.option(
    "-n",
    "--nprocs",
    "procs",
    default="1:32:x2",
    show_default=True,
    help="Numbers of processes, powers of two.",
)
@click.option(
    "--size", type=click.IntRange(2), default=SIZE, show_default=True, help="N to predict."
)
@click.option(
    "--sizes", default="2^10:2^17:x2", show_default=True, help="Values of N to fit the formula to."
)
@backend_option()
@click.option("--machine", metavar="NAME", help=f"Machine of virtual processors.  [default: {T3E}]")
@click.option(
    "--once", type=click.IntRange(2), metavar="N", help="Only run a transform of N values."
)
def command(
    procs: str, size: int, sizes: str, backend: str | None, machine: str | None, once: int | None
) -> None:
    """Predict a large Fourier transform from small ones, and measure it.

    This is Table 3 of Gonzalez et al., by default on virtual processors of a Cray T3E.
    """
    if once is not None:
        bsplib.run(main, once)
        return
    where: dict[str, Any] = {"backend": backend or "sim"}
    if where["backend"] == "sim":
        where["machine"] = machine or T3E
    try:
        counts, small = read_counts("--nprocs", procs), read_counts("--sizes", sizes)
        for value in (*counts, *small, size):
            if value & (value - 1):
                raise UsageError(f"{value} is no power of two, for which alone the formula holds")
        with drawn("transforms") as told:
            found = tell(counts, size, small, told, **where)
    except BspError as error:
        raise as_sentence(error) from None
    console = Console()
    console.print(as_table(found.rows))
    print(found.model)


if __name__ == "__main__":
    command()
