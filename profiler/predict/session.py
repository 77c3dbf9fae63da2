"""``bsp predict`` of what is learned: from traces or a table to a model, and to predictions."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from bsplib.command_options import writing
from bsplib.console import Console
from bsplib.errors import UsageError
from bsplib.extras import need
from bsplib.output_file import TRACE, write_text
from bsplib.profiler import plotting
from bsplib.profiler.predict.document import document, is_model, read_model
from bsplib.profiler.predict.experiments import read_experiments
from bsplib.profiler.predict.files import read_timings, write_timings
from bsplib.profiler.predict.fit import CONFIDENCE
from bsplib.profiler.predict.planning import Planner
from bsplib.profiler.predict.prediction import RunPrediction, point_of, predict_run, scaling
from bsplib.profiler.predict.program import ProgramModel, learn
from bsplib.profiler.predict.show import show_model, show_prediction
from bsplib.profiler.predict.show_times import show
from bsplib.profiler.predict.table import TimingsError
from bsplib.profiler.predict.times import fit_timings
from bsplib.profiler.predict.values import PROCESSES, SEEDS, carried
from bsplib.recording.trace import read_trace
from bsplib.visible import visible

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.predict.program import Point
    from bsplib.recording.records import Run

Setting = tuple[str, Mapping[str, float]]
"""Values for the traces whose names match a pattern; an empty pattern is for all."""


def read_runs(paths: Sequence[Path]) -> list[tuple[str, Run]]:
    """Read the runs of some traces, with the names of their files.

    Raises:
        TraceError: a file is no trace.
        UsageError: there are no runs, or they are not of one program.
    """
    found = [(path.name, run) for path in paths for run in read_trace(path).runs]
    sound = [(name, run) for name, run in found if run.complete]
    if not sound:
        raise UsageError("predict: there is no run that ended normally")
    mains: dict[str, str] = {}
    for name, run in sound:
        mains.setdefault(_main_of(run), name)
    if len(mains) > 1:
        different = " and ".join(f"{main} in {name}" for main, name in mains.items())
        raise UsageError(
            f"predict: the runs are of different programs: {different}; give traces of one program"
        )
    return sound


def _main_of(run: Run) -> str:
    """Return the function that the processes ran, with its file, which may have been moved."""
    starts = [stack[0] for stack in run.stacks if stack]
    known = next((frame for frame in starts if frame.file), None)
    if known is None:
        return str(run.meta.get("program"))
    return f"{known.function} of {Path(known.file).name}"


def model_of_traces(
    paths: Sequence[str | Path],
    sizes: Sequence[str] = (),
    settings: Sequence[Setting] = (),
) -> ProgramModel:
    """Learn the laws of a program's cost centres from traces.

    Args:
        paths: trace files of one program.
        sizes: the variables; as in ``n``, or ``n=size`` where the trace calls it ``size``.
            Default: all numbers among the arguments that vary between the runs.
        settings: values that the traces do not have.

    Raises:
        TraceError: a file is no trace.
        UsageError: the runs are not of one program, or a variable has no value.
    """
    runs = read_runs([Path(path) for path in paths])
    _check_patterns([name for name, _ in runs], settings)
    known = [{**carried(run), **_set_for(name, settings)} for name, run in runs]
    given = {name for _, values in settings for name in values}
    origins = _chosen(known, sizes, given)
    used = [
        (
            run,
            {name: values[origin] for name, origin in origins.items()},
            tuple(values[name] for name in sorted(SEEDS) if name in values),
        )
        for (_, run), values in zip(runs, known, strict=True)
    ]
    return learn(used)


def _check_patterns(names: Sequence[str], settings: Sequence[Setting]) -> None:
    """Raise UsageError if a pattern matches the name of no trace."""
    for pattern, values in settings:
        if pattern and not fnmatch.filter(names, pattern):
            given = ",".join(f"{name}={value:g}" for name, value in values.items())
            raise UsageError(
                f"predict: no trace has a name such as {pattern}, for which --set "
                f"'{pattern}:{given}' gives values; the first trace is {names[0]}"
            )


def _set_for(name: str, settings: Sequence[Setting]) -> dict[str, float]:
    found: dict[str, float] = {}
    for pattern, values in settings:
        if not pattern or fnmatch.fnmatchcase(name, pattern):
            found |= values
    return found


def _chosen(
    known: Sequence[Mapping[str, float]], sizes: Sequence[str], given: set[str]
) -> dict[str, str]:
    """Return the variables, each with the name that the traces have for it."""
    common = set.intersection(*(set(values) for values in known)) - SEEDS
    columns = {
        name: tuple(values[name] for values in known)
        for name in dict.fromkeys(name for values in reversed(known) for name in values)
        if name in common
    }
    if sizes:
        parts = [text.partition("=") for text in sizes]
        found = {name: origin or name for name, _, origin in parts}
    else:
        # What has two names, as a parameter of main and an option, is one variable.
        varied = [name for name, column in columns.items() if len(set(column)) > 1]
        different = {columns[name]: name for name in reversed(varied)}
        found = {name: name for name in different.values()}
    found |= {name: name for name in sorted(given) if name not in found.values()}
    for name, origin in found.items():
        if name == PROCESSES:
            raise UsageError("predict: p is the number of processes, which every trace has")
        if not name.isidentifier():
            raise UsageError(f"predict: {name!r} is no name of a variable")
        if origin not in common:
            raise UsageError(
                f"predict: not every trace has a number {origin} among its arguments; the numbers "
                f"that all have are: {', '.join(sorted(common)) or 'none'}. Name one of them, as "
                f"in --by {name}=NAME, or give the value, as in --set {name}=2^20 or "
                f"--set 'run-1024-*:{name}=1024'"
            )
    return found


def predict_and_print(  # noqa: PLR0913  # the options of the command
    paths: Sequence[Path],
    points: Sequence[Point],
    machines: Sequence[Machine],
    *,
    speed: str | None = None,
    by: Sequence[str] = (),
    settings: Sequence[Setting] = (),
    maker: str | None = None,
    budget: float = 0.0,
    model_out: Path | None = None,
    plot: Path | None = None,
    force: bool = False,
) -> None:
    """Learn a program from all targets together, and print what it takes at some points.

    Args:
        paths: trace files of one program, or a file of what was learned.
        points: sizes and numbers of processes; without any the laws are printed.
        machines: Machines to predict for; default: that of the runs.
        speed: of a process of the Machines, as for :func:`predict_run`.
        by: as ``sizes`` of :func:`model_of_traces`.
        settings: as for :func:`model_of_traces`.
        maker: a command that runs the program, with {n}, {p} and the like; see
            :mod:`bsplib.profiler.predict.planning`.
        budget: for how many seconds runs may be begun by it.
        model_out: a file for what was learned; ``-`` for standard output.
        plot: a file for the times over p at the first point.
        force: replace files that exist.

    Raises:
        UsageError: as :func:`model_of_traces`; a file cannot be written; a point lacks a value.
    """
    sizes = _names(by)
    if plot is not None:
        plotting.check_target(plot, force=force)
    wanted: list[Machine | None] = [*machines] or [None]

    learned = partial(_learned, sizes, settings)

    def predicted(model: ProgramModel, at: Point, machine: Machine | None) -> RunPrediction:
        point = point_of(model, at)
        return predict_run(model, int(point.pop(PROCESSES)), point, machine, speed=speed)

    def first(model: ProgramModel) -> RunPrediction:
        return predicted(model, points[0] if points else _beyond(model), wanted[0])

    planner = None
    if maker is not None:
        folder = paths[0].parent if paths else Path()
        planner = Planner(maker, folder, lambda traces: first(learned(traces)))
        paths = planner.settle(paths or planner.begin(points[0], budget), budget)
    model = learned(paths)
    found = [predicted(model, point, machine) for machine in wanted for point in points]
    if _written(document(model), model_out, force=force):
        return
    console = Console()
    if not points:
        show_model(model, console)
    for one in found:
        show_prediction(one, scaling(one), console, planner)
    if plot is not None:
        scaling(first(model)).plot(plot, force=force)
    _say(console, plot, model_out)


def _written(found: Mapping[str, Any], path: Path | None, *, force: bool) -> bool:
    """Write what was learned; tell whether standard output has it, and so nothing else."""
    if path is None:
        return False
    text = json.dumps(found, indent=1, default=np.ndarray.tolist) + "\n"
    if path == Path("-"):
        click.echo(text, nl=False)
        return True
    with writing(path):
        write_text(path, text, force=force)
    return False


def _say(console: Console, plot: Path | None, model_out: Path | None) -> None:
    for did, path in (("drawn in", plot), ("written into", model_out)):
        if path is not None:
            console.print(f"{did} {visible(str(path))}", highlight=False)


def _learned(
    sizes: Sequence[str], settings: Sequence[Setting], paths: Sequence[Path]
) -> ProgramModel:
    """Return what was learned from traces, or is in a file."""
    if len(paths) == 1 and is_model(paths[0]):
        return read_model(paths[0])
    return model_of_traces(paths, sizes, settings)


def _beyond(model: ProgramModel) -> dict[str, float]:
    """Return a point beyond the runs: four times the largest of each variable."""
    return {
        name: value if len(set(model.measured[name])) == 1 else 4 * value
        for name, value in model.largest.items()
    }


# -- tables of times ------------------------------------------------------------------------------


def fit_and_print(  # noqa: PLR0913  # the options of the command
    paths: Sequence[Path],
    *,
    at: Sequence[Mapping[str, float]] = (),
    formula: str | None = None,
    region: str | None = None,
    by: Sequence[str] = (),
    time: str | None = None,
    of_repeats: str = "least",
    confidence: float = CONFIDENCE,
    plot: Path | None = None,
    model_out: Path | None = None,
    export: Path | None = None,
    force: bool = False,
    **fitting: Any,
) -> None:
    """Fit a formula to a table of times, or to the times of a block, and print what it predicts.

    Args:
        paths: a table, as for :func:`bsplib.profiler.predict.read_timings`, or traces.
        at: points to predict.
        formula: the formula; None: that of the block, or its terms are chosen.
        region: of a file of Extra-P, or the block of ``bsp.experiment`` in traces.
        by: the variables.
        time: the column with the times.
        of_repeats: as for :func:`bsplib.profiler.predict.read_timings`.
        confidence: the part of the true times that has to be inside a band.
        plot: file for a figure.
        model_out: file for everything as JSON; ``-`` is the standard output, on which nothing
            else is then printed.
        export: file for the table of times, in a format of Extra-P.
        force: replace files that exist.
        **fitting: as for :func:`bsplib.profiler.predict.fit_timings`.

    Raises:
        UsageError: the table or the formula cannot be used, or a file cannot be written.
    """
    need("scipy")
    reading = {"by": _names(by) or None, "of_repeats": of_repeats}
    if plot is not None:
        plotting.check_target(plot, force=force)
    if TRACE.is_at(paths[0]):
        time = time or "time"
        table = read_experiments(paths, region, time=time, formula=formula, **reading)  # type: ignore[arg-type]
    elif len(paths) > 1:
        raise TimingsError(f"{paths[1]}: one table of times is learned from, and not several")
    else:
        table = read_timings(paths[0], time, region=region, formula=formula, **reading)  # type: ignore[arg-type]
    model = fit_timings(table, formula, **fitting)
    points = [model.predict(point, confidence=confidence) for point in at]
    if export is not None:
        with writing(export):
            write_timings(table, export, force=force)
    if _written(model.as_json(points), model_out, force=force):
        return
    console = Console()
    show(model, console, points)
    if plot is not None:
        model.plot(plot, force=force)
    _say(console, plot, model_out)


def _names(texts: Sequence[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",")]
