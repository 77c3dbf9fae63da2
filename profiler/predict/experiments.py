"""The data files of experiments as tables of times, each with the formula of its block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bsplib.experiments import datafile
from bsplib.profiler.predict.table import Timings, TimingsError
from bsplib.profiler.predict.times import TimingModel, fit_timings


@dataclass(frozen=True)
class MeasuredBlocks:
    """What the blocks of one name took."""

    name: str
    formulas: tuple[str, ...]
    """One, unless the program was changed between its runs."""
    timings: Timings

    @property
    def formula(self) -> str:
        """The formula that the program gives.

        Raises:
            TimingsError: it gave several.
        """
        if len(self.formulas) > 1:
            raise TimingsError(
                f"{self.timings.source}: experiment {self.name} has {len(self.formulas)} formulas, "
                f"{' and '.join(self.formulas[:3])}; choose one with --formula, or formula="
            )
        return self.formulas[0]


def read_experiments(
    paths: str | Path | Sequence[str | Path],
    *,
    time: str = "time",
    by: Sequence[str] | None = None,
    of_repeats: str = "least",
) -> dict[str, MeasuredBlocks]:
    """Read data files of experiments; return what they have of each name.

    Args:
        paths: a file that ``bsp experiment run`` or ``bsp run --experiments`` has written, or
            several.
        time: what is fitted: ``"time"``, ``"h"`` (bytes; of recorded runs) or the name of a
            counter. It is that of the process that has most.
        by: the variables; default: all.
        of_repeats: what counts of several times at one point: ``"least"``, ``"median"`` or
            ``"mean"``.

    Raises:
        UsageError: a file is none, or a variable is not in it.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    rows = [row for path in files for row in datafile.read(Path(path))]
    source = ", ".join(map(str, files))
    if not rows:
        raise TimingsError(f"{source}: there are no experiments")
    found = {}
    for name, each in datafile.experiments(rows).items():
        for variable in by or ():
            if variable not in each.values:
                raise TimingsError(
                    f"{source}: experiment {name} has no {variable}; it has "
                    f"{', '.join(each.values)}"
                )
        values = {one: each.values[one] for one in (by or each.values)}
        amounts = each.times if time == "time" else _amounts(each, time, source)
        timings = Timings.of(values, amounts, time=time, source=source, of_repeats=of_repeats)
        found[name] = MeasuredBlocks(name, each.formulas, timings)
    return found


def _amounts(experiment: datafile.Experiment, what: str, source: str) -> list[float]:
    """Return an h-relation or what a counter counted, for each passage."""
    found = [
        row.get("h") if what == "h" else row.get("counted", {}).get(what) for row in experiment.rows
    ]
    if any(each is None for each in found):
        reason = (
            "they are kept of recorded runs"
            if what == "h"
            else "counters are read by bsp experiment run --counters"
        )
        raise TimingsError(f"{source}: experiment {experiment.name} has no {what}; {reason}")
    return [max(each) for each in found if each is not None]


def pick(found: dict[str, MeasuredBlocks], name: str | None) -> list[MeasuredBlocks]:
    """Return one experiment, or all.

    Raises:
        TimingsError: there is none of that name.
    """
    if name is not None and name not in found:
        raise TimingsError(f"there is no experiment {name}; there are {', '.join(found)}")
    return [*found.values()] if name is None else [found[name]]


def fit_experiment(
    path: str | Path | Sequence[str | Path],
    name: str | None = None,
    *,
    formula: str | None = None,
    time: str = "time",
    of_repeats: str = "least",
    negative: bool = False,
) -> TimingModel:
    """Fit the formula of a block to what it took.

    Args:
        path: a data file of experiments, or several.
        name: of the block; default: the only one.
        formula: another formula than that of the program.
        time: what is fitted, as for :func:`read_experiments`.
        of_repeats: what counts of several times at one point.
        negative: coefficients may be negative.

    Returns:
        The model; ``print`` shows it, and ``model.fit.intervals`` has the coefficients.

    Raises:
        UsageError: a file cannot be used.
        TimingsError: there is no such block, there are several and none was named, or the
            formula cannot be fitted.

    Source: Gonzalez et al., section 3: the analyser llac.
    """
    found = read_experiments(path, time=time, of_repeats=of_repeats)
    if name is None and len(found) > 1:
        raise TimingsError(f"there are several experiments: name one of {', '.join(found)}")
    (one,) = pick(found, name)
    return fit_timings(one.timings, formula or one.formula, negative=negative)
