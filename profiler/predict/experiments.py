"""What the blocks of ``bsp.experiment`` took in recorded runs, as tables with a formula."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bsplib.profiler.costs import h_relation
from bsplib.profiler.predict.files import Measurement, timings_of
from bsplib.profiler.predict.table import Timings, TimingsError
from bsplib.profiler.predict.times import TimingModel, fit_timings
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind


class Passage(NamedTuple):
    """One passage of a block by the processes of a group that have the same values."""

    name: str
    formula: str
    values: dict[str, float]
    """By name: what the program gives, and ``P``."""
    amounts: dict[str, list[float]]
    """By metric, one for each process: seconds as ``time``; as ``h`` the bytes of the h-relations
    inside, which is the sum over the supersteps, those of sub-groups too, of what the process sent
    or received, whichever is more; and what each counter counted."""

    def measurements(self) -> Iterator[Measurement]:
        """Yield the greatest time, h and count of a process."""
        for metric, each in self.amounts.items():
            yield Measurement(self.name, metric, self.values, max(each), self.formula)


def passages(run: Run) -> list[Passage]:
    """Return the passages of blocks in a run.

    Raises:
        TimingsError: what the trace says of them cannot be.
    """
    found: dict[Any, Passage] = {}
    try:
        for key, values, amounts in _of_processes(run):
            one = found.setdefault(key, Passage(key[0], key[1], values, {}))
            for metric, amount in amounts.items():
                one.amounts.setdefault(metric, []).append(amount)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise TimingsError(f"the trace says of its blocks what cannot be: {error!r}") from None
    return [*found.values()]


def _of_processes(run: Run) -> Iterator[tuple[Any, ...]]:
    """Yield what tells a passage from others, and what each process took for it."""
    told = run.meta.get("blocks", [])
    for pid, of_process in enumerate(told):
        if not of_process:
            continue
        blocks, passed = of_process["blocks"], of_process["passed"]
        moments = np.array([each[2:4] for each in passed], np.int64).reshape(-1, 2).T
        h = _h_inside(run, pid, *moments)
        for (block, entry, began, ended, _, values, counted), bytes_ in zip(
            passed, h.tolist(), strict=True
        ):
            name, formula, members = blocks[block]
            if not (isinstance(name, str) and isinstance(formula, str)):
                raise TypeError(name)
            if not all(math.isfinite(each) for each in (*values.values(), *counted.values())):
                raise ValueError(values)
            key = name, formula, str(members), entry, tuple(sorted(values.items()))
            yield key, values, {"time": (ended - began) / 1e9, "h": bytes_, **counted}


def _h_inside(run: Run, pid: int, began: Any, ended: Any) -> Any:
    """Return the bytes of the h-relations of a process between moments, for each pair of them."""
    records = run.records
    mine = np.flatnonzero((records["pid"] == pid) & (records["kind"] != Kind.END))
    mine = mine[np.argsort(records["arrive"][mine], kind="stable")]
    sums = np.append(0.0, np.cumsum(np.maximum(*h_relation(run))[mine]))
    first = np.searchsorted(records["arrive"][mine], began, side="left")
    return sums[np.searchsorted(records["end"][mine], ended, side="right")] - sums[first]


def read_experiments(
    paths: str | Path | Sequence[str | Path],
    name: str | None = None,
    *,
    time: str = "time",
    by: Sequence[str] | None = None,
    of_repeats: str = "least",
    formula: str | None = None,
) -> Timings:
    """Read what a block of ``bsp.experiment`` took from traces, with its formula.

    Args:
        paths: a trace, or several; runs that are not complete do not count.
        name: of the block; default: the only one.
        time: what is fitted: ``"time"``, ``"h"`` (bytes of the h-relations inside) or the name of
            a counter. It is that of the process that has most.
        by: the variables; default: all.
        of_repeats: what counts of several times at one point: ``"least"``, ``"median"`` or
            ``"mean"``.
        formula: in place of that of the program.

    Raises:
        UsageError: a file cannot be read.
        TimingsError: there is no such block, or there are several and none was named; a variable
            is not in it, or it has several formulas.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    source = ", ".join(map(str, files))
    complete = (run for path in files for run in read_trace(path).runs if run.complete)
    found = [row for run in complete for each in passages(run) for row in each.measurements()]
    if not found:
        raise TimingsError(f"{source}: no block of bsp.experiment was passed in a complete run")
    how: dict[str, Any] = {"by": by, "of_repeats": of_repeats, "formula": formula}
    return timings_of(found, source, time, region=name, **how)


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
        path: a trace, or several.
        name: of the block; default: the only one.
        formula: another formula than that of the program.
        time: what is fitted, as for :func:`read_experiments`.
        of_repeats: what counts of several times at one point.
        negative: coefficients may be negative.

    Returns:
        The model; ``print`` shows it, and ``model.fit.coefficients`` has the coefficients.

    Raises:
        UsageError: as :func:`read_experiments`, or the formula cannot be fitted.

    Source: Gonzalez et al., section 3: the analyser llac.
    """
    table = read_experiments(path, name, formula=formula, time=time, of_repeats=of_repeats)
    return fit_timings(table, negative=negative)
