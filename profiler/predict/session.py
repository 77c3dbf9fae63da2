"""Learnt programs on the command line: from traces to a model, and from a model to a prediction."""

from __future__ import annotations

import fnmatch
import itertools
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bsplib.console import Console
from bsplib.errors import UsageError
from bsplib.profiler import plotting
from bsplib.profiler.predict.document import document, is_model, read_model, write_model
from bsplib.profiler.predict.planning import Planner, number
from bsplib.profiler.predict.prediction import RunPrediction, predict_run, scaling
from bsplib.profiler.predict.program import ProgramModel, learn
from bsplib.profiler.predict.show import show_model, show_prediction
from bsplib.profiler.predict.values import PROCESSES, SEEDS, carried
from bsplib.recording.trace import read_trace

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
    if PROCESSES in given:
        raise UsageError(
            "predict: p is the number of processes, which every trace has; leave p out of --set"
        )
    origins = _chosen(known, sizes, given)
    used = [
        (
            run,
            {name: values[origin] for name, origin in origins.items()},
            tuple(values[name] for name in sorted(SEEDS) if name in values),
        )
        for (_, run), values in zip(runs, known, strict=True)
    ]
    shown = {
        name: "given" if origin in given else f"{origin} of the program"
        for name, origin in origins.items()
        if name != origin or origin in given
    }
    return learn(used, shown)


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
    varied = [name for name, column in columns.items() if len(set(column)) > 1]
    if not sizes:
        # What has two names, as a parameter of main and an option, is one variable.
        different = {columns[name]: name for name in reversed(varied)}
        found = {name: name for name in (*different.values(), *sorted(given & common))}
    else:
        found = {}
        for text in sizes:
            name, _, origin = text.partition("=")
            found[name] = origin or name
        found |= {name: name for name in sorted(given) if name not in found.values()}
        for name, origin in found.items():
            if origin not in common:
                found[name] = _other_name(name, origin, varied, columns, set(found.values()))
    if PROCESSES in found:
        raise UsageError("predict: p is the number of processes; name the variable, as in --by n=p")
    for name in found:
        if not name.isidentifier():
            raise UsageError(f"predict: {name!r} is no name of a variable")
    return found


def _other_name(
    name: str,
    origin: str,
    varied: Sequence[str],
    columns: Mapping[str, tuple[float, ...]],
    taken: set[str],
) -> str:
    """Return the only number that varies, for a variable that the traces do not name so."""
    free = [other for other in varied if other not in taken]
    if name == origin and len({columns[other] for other in free}) == 1:
        return free[0]
    there = ", ".join(sorted(columns)) or "none"
    raise UsageError(
        f"predict: not every trace has a number {origin} among its arguments; the numbers that all "
        f"have are: {there}. Name one of them, as in --by {name}=NAME, or give the value, as in "
        f"--set {name}=2^20 or --set 'run-1024-*:{name}=1024'"
    )


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
    sizes = [name.strip() for text in by for name in text.split(",")]
    if plot is not None:
        plotting.check_target(plot, force=force)
    wanted: list[Machine | None] = [*machines] or [None]

    learned = partial(_learned, sizes, settings)

    def predicted(model: ProgramModel, at: Point | None, machine: Machine | None) -> RunPrediction:
        rest = _complete(model, _beyond(model) if at is None else at)
        return predict_run(model, int(rest.pop(PROCESSES)), rest, machine, speed=speed)

    def first(model: ProgramModel) -> RunPrediction:
        return predicted(model, points[0] if points else None, wanted[0])

    planner = None
    if maker is not None:
        folder = paths[0].parent if paths else Path()
        planner = Planner(maker, folder, learned, first, lambda line: click.echo(line, err=True))
        paths = planner.settle(paths or planner.begin(points[0], budget), budget)
    model = learned(paths)
    if model_out == Path("-"):
        print(json.dumps(document(model), indent=1))
        return
    console = Console()
    if not points:
        show_model(model, console)
    for machine, point in itertools.product(wanted, points):
        one = predicted(model, point, machine)
        show_prediction(one, scaling(one), console, planner)
    if plot is not None:
        scaling(first(model)).plot(plot, force=force)
        console.print(f"drawn in {plot}", highlight=False)
    if model_out is not None:
        write_model(model, model_out, force=force)
        console.print(f"written into {model_out}", highlight=False)


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


def _complete(model: ProgramModel, point: Point) -> dict[str, float]:
    for name in point:
        if name not in model.measured:
            known = ", ".join(model.measured)
            raise UsageError(
                f"predict: --at: there is no variable {name}; the variables are: {known}"
            )
    for name, values in model.measured.items():
        if name not in point and len(set(values)) > 1:
            needed = ",".join(
                f"{each}={number(2 * max(array))}"
                for each, array in model.measured.items()
                if len(set(array)) > 1
            )
            raise UsageError(f"predict: --at needs a value of {name}, too, as in --at {needed}")
    return {name: point.get(name, values[0]) for name, values in model.measured.items()}
