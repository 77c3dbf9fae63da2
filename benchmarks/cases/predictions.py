"""How right predictions are: from tables of times, and from small runs of programs.

- Tables: see :mod:`benchmarks.cases.tables`.
- Laws: the programs of :mod:`benchmarks.unseen` are recorded on virtual processors at a dozen small
  sizes, and predicted at 8 and 16 times the largest size on up to 64 processes. Their computation
  is charged, with noise of 5%, so that the result does not depend on what else this computer does.
- Totals: the same programs on real processes, at 8 times the largest size. Where the prediction
  names a run that would narrow its band, it is made, too, and the prediction is made again; the
  large run is repeated beside it, as the host may have become slower since.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import bsplib
from benchmarks.cases.tables import tables
from benchmarks.measure import Finding, Study
from benchmarks.unseen import DATA, FAR, PROCESSES, PROGRAMS, SEEDS, SIZES, WorkOf
from bsplib.backends.table import own_cores
from bsplib.machine import Machine
from bsplib.machine.probing.probe import counts_of, probe
from bsplib.profiler.models.prediction import MEASURED, predict
from bsplib.profiler.predict import RunPrediction, learn, predict_run
from bsplib.profiler.predict.observed import observe
from bsplib.profiler.predict.planning import run_to_make
from bsplib.profiler.prices import choose_prices
from bsplib.recording.trace import read_trace

# -- laws of supersteps, h-relations and computation ----------------------------------------------

_EXACT = 1e-9
_TINY_PART = 0.01
"""Part of the computation of a run below which a cost centre is not judged."""


class PredictedCell(NamedTuple):
    """A quantity of a cost centre, of several seeds."""

    quantity: str
    varies: bool
    """Whether it depends on the seed, and so on the data."""
    true: float
    """The mean over the seeds."""
    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """The relative error."""
        return abs(self.value - self.true) / self.true if self.true else abs(self.value)

    @property
    def is_inside(self) -> bool:
        """Whether the band holds the true value, but for rounding."""
        return self.low * (1 - _EXACT) <= self.true <= self.high * (1 + _EXACT)


def _recorded(program: str, n: int, p: int, seed: int, path: Path, backend: Any) -> Any:
    """Record a run; return it with its size and its seed."""
    with contextlib.redirect_stderr(io.StringIO()):
        bsplib.run(PROGRAMS[program], n, seed, nprocs=p, backend=backend, profile=path)
    return read_trace(path).runs[0], {"n": float(n)}, (float(seed),)


def judged(program: str, folder: Path) -> Iterator[PredictedCell]:
    """Record a program small, and predict its cost centres in large runs."""
    WorkOf.is_charged = True
    seeds = SEEDS if program in DATA else SEEDS[:1]

    def recorded(n: int, p: int) -> list[Any]:
        files = {seed: folder / f"{program}-{n}-{p}-{seed}.bsp" for seed in seeds}
        return [_recorded(program, n, p, seed, path, "sim") for seed, path in files.items()]

    small = [run for n in SIZES[program] for p in PROCESSES[program] for run in recorded(n, p)]
    leaves = learn(small).leaves().values()
    for factor, p in FAR:
        observed = observe(recorded(factor * SIZES[program][-1], p)).observations
        cells = [
            _predicted(chains, quantity, observed)
            for chains in leaves
            for quantity in ("supersteps", "h", "comp")
        ]
        least = _TINY_PART * sum(cell.true for cell in cells if cell.quantity == "comp")
        yield from (cell for cell in cells if cell.quantity != "comp" or cell.true >= least)


def _predicted(chains: Sequence[Any], quantity: str, observed: Sequence[Any]) -> PredictedCell:
    """Predict a quantity of a cost centre, which is the sum over its call chains."""
    true = [sum(getattr(each.of(chain.chain), quantity) for chain in chains) for each in observed]
    found = [chain.at(observed[0].values)[quantity] for chain in chains]
    value, low, high = map(sum, zip(*(each[:3] for each in found), strict=True))
    return PredictedCell(quantity, len(set(true)) > 1, mean(true), value, low, high)


def _counted(what: str, cells: Sequence[PredictedCell], limit: float) -> Finding:
    near = sum(cell.error <= limit for cell in cells)
    return Finding(what, f"{near} of {len(cells)}", "all", near == len(cells))


def laws(quick: bool) -> Iterator[Finding]:
    """Judge laws that are learned from small runs on virtual processors."""
    with tempfile.TemporaryDirectory() as folder:
        names = ["power", "butterfly"] if quick else list(PROGRAMS)
        cells = [cell for name in names for cell in judged(name, Path(folder))]
    for quantity in ("supersteps", "h"):
        fixed = [cell for cell in cells if cell.quantity == quantity and not cell.varies]
        yield _counted(f"{quantity} that do not depend on data: exact", fixed, _EXACT)
    data = [cell for cell in cells if cell.quantity == "h" and cell.varies]
    yield _counted("h that depends on data: within 5%", data, 0.05)
    known = [cell for cell in cells if cell.quantity == "comp"]
    errors = [cell.error for cell in known]
    inside = mean(cell.is_inside for cell in known)
    width = median((cell.high / max(cell.low, 1e-300)) ** 0.5 - 1 for cell in known)
    yield Finding(
        f"computation of {len(known)} cost centres: mean and greatest error",
        f"{mean(errors):.1%}, {max(errors):.0%}",
        "10%, 40%",
        mean(errors) <= 0.1 and max(errors) <= 0.4,
    )
    yield Finding(
        "computation: bands of 90% cover, half of their width (median)",
        f"{inside:.0%}, {width:.0%}",
        "85% to 97%, 20%",
        0.85 <= inside <= 0.97 and width < 0.2,
    )


# -- totals of real runs --------------------------------------------------------------------------

_MODEL = "BSP"
_FACTOR = 8


class Total(NamedTuple):
    """The measured and the predicted total of a large run, and both after the run that is named."""

    p: int
    measured_s: float
    predicted_s: float
    inside: bool
    measured_again_s: float
    settled_s: float
    settled_inside: bool


class TotalsRecorder:
    """Records runs of a program, in a process that does nothing else and fits nothing."""

    def __init__(self, folder: Path, program: str, process: Executor) -> None:
        self._folder = folder
        self._program = program
        self._process = process
        self._made = 0

    def run(self, n: int, p: int) -> Any:
        """Record a run."""
        self._made += 1
        path = self._folder / f"{self._program}-{self._made}.bsp"
        self._process.submit(_record, path, self._program, n, p).result()
        return read_trace(path).runs[0]


def _record(path: Path, program: str, n: int, p: int) -> None:
    WorkOf.is_charged = False
    _recorded(program, n, p, SEEDS[0], path, "shm")


def _measured_s(runs: Sequence[Any], machine: Machine) -> float:
    found = [predict(run, choose_prices(run, machine), [_MODEL]) for run in runs]
    return median(each.totals[MEASURED].total_s for each in found)


def totals_of(
    run: Callable[[int, int], Any], sizes: Sequence[int], machine: Machine, repeats: int
) -> Iterator[Total]:
    """Predict the totals of large runs from small ones, and measure them."""
    far, counts = _FACTOR * sizes[-1], (2, 2 * own_cores())
    small: list[Any] = []
    large: dict[int, list[Any]] = {p: [] for p in counts}
    for _ in range(repeats):  # in turns, so that disturbances are shared
        for n in sizes:
            small += [(run(n, p), {"n": float(n)}, ()) for p in sorted({1, *counts})]
        for p, found in large.items():
            found.append(run(far, p))

    def predicted(p: int, more: Sequence[Any]) -> RunPrediction:
        return predict_run(learn([*small, *more]), p, {"n": float(far)}, machine)

    for p, found in large.items():
        first, measured_s, named = predicted(p, ()), _measured_s(found, machine), []
        if settling := run_to_make(first):
            n, its_p = int(settling["n"]), int(settling["p"])
            for _ in range(repeats):
                named.append((run(n, its_p), {"n": float(n)}, ()))
                found.append(run(far, p))
        again, again_s = predicted(p, named), _measured_s(found, machine)
        yield Total(
            *(p, measured_s, first.total.total_s),
            bool(first.low_s <= measured_s <= first.high_s),
            *(again_s, again.total.total_s),
            bool(again.low_s <= again_s <= again.high_s),
        )


def totals_judged(cells: Sequence[Total]) -> Iterator[Finding]:
    """Compare totals with the goals, which are wider where processes share cores."""
    for p in sorted({cell.p for cell in cells}):
        some = [cell for cell in cells if cell.p == p]
        most = (0.10, 0.25) if p == 2 else (0.20, 0.20)
        first = [abs(each.predicted_s / each.measured_s - 1) for each in some]
        again = [abs(each.settled_s / each.measured_again_s - 1) for each in some]
        held = sum(each.inside for each in some)
        held_again = sum(each.settled_inside for each in some)
        yield Finding(
            f"totals of real runs, n x {_FACTOR}, p = {p}: mean and greatest error, in their "
            "bands; after the run that is named",
            f"{mean(first):.0%}, {max(first):.0%}, {held} of {len(some)}; "
            f"{mean(again):.0%}, {max(again):.0%}, {held_again} of {len(some)}",
            f"{most[0]:.0%}, {most[1]:.0%} after it",
            mean(again) <= most[0] and max(again) <= most[1],
        )


def totals(quick: bool) -> Iterator[Finding]:
    """Judge predictions of real runs against the clock, which needs an idle computer."""
    machine = probe(2, "here", counts=counts_of(None)).machine
    cells: list[Total] = []
    with (
        ProcessPoolExecutor(1, get_context("fork")) as process,
        tempfile.TemporaryDirectory() as folder,
    ):
        for program in ("power", "butterfly") if quick else PROGRAMS:
            recorder = TotalsRecorder(Path(folder), program, process)
            cells += totals_of(recorder.run, SIZES[program], machine, 1 if quick else 5)
    yield from totals_judged(cells)


SECTIONS = (
    Study("who predicts from a table of times", tables),
    Study("who predicts large runs from small ones", laws),
    Study("who predicts how long a run takes", totals),
)
