"""``bsp predict``: how long a program takes on another Machine, with more data or processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from bsplib.command_options import OutputFile, force_option
from bsplib.errors import UsageError
from bsplib.machine import Machine, known_machines, load_machine
from bsplib.tools.cli.options import (
    MachineName,
    Point,
    Real,
    Whole,
    library_option,
    option,
    setting,
    speed_option,
    time,
    values,
)
from bsplib.tools.cli.traces import position_of, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ALL = "all"
"""Name for all Machines that come with bsplib."""

_PLAYED = ("number", "models", "pattern", "top", "library")
_LEARNED = ("by", "plot", "model_out")
_TRACES = ("settings", "run", "budget", "machine", "speed")
_TABLE = (
    *("time", "region", "processes", "formula", "divide"),
    *("negative", "confidence", "of_repeats", "export"),
)
"""Options for replays, for what is learned, from traces, and from tables."""


@click.command("predict")
@option(
    "--at",
    multiple=True,
    type=values,
    help="Size and number of processes of a run that nobody made, as in n=2^30,p=64; may be given "
    "several times.",
)
@option(
    "--machine",
    "machine",
    type=MachineName(),
    multiple=True,
    help=f"Machine to predict for; may be given several times, and {ALL} stands for those that "
    "come with bsplib.  [default: that of the runs]",
)
@speed_option
@option(
    "--run",
    metavar="COMMAND",
    help="How to make a run, with {n}, {p} and the like for its variables. Without --at: the "
    "number of the run in the trace, from 1.  [default: all]",
)
@option(
    "--budget",
    type=time,
    default="0",
    help="For how long runs are made by --run, as in 10m or 90s.",
)
@option(
    "--model-out",
    type=OutputFile(allow_dash=True),
    help="Write what was learned as JSON, a TARGET of its own; - for standard output.",
)
@option("--plot", type=OutputFile(), help="Plot the times into this file.")
@force_option
@option(
    "--by",
    multiple=True,
    metavar="NAMES",
    help="Variables on which the time depends, separated by commas; for traces also n=size where "
    "the program calls it size.  [default: all that vary]",
)
@option(
    "--set",
    "settings",
    multiple=True,
    type=setting,
    metavar="VALUES",
    help="Values that traces do not have, as in n=2^20,s=64; of some traces as in "
    "'run-1024-*:n=1024'.",
)
@option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(["bsp", "bspwb", "mpm", "obsp"], case_sensitive=False),
    help="Without --at: cost model; may be given several times.  [default: all]",
)
@option("--pattern", metavar="NAME", help="Without --at: use g and L of this pattern.")
@option(
    "--top",
    default=20,
    type=Whole(0),
    help="With several Machines: number of functions and cost centres to show; 0: all.",
)
@library_option
@option("--time", metavar="NAME", help="Column with the times.  [default: time]")
@option(
    "--region",
    metavar="NAME",
    help="Region in a file of Extra-P, or a block of bsp.experiment in traces, of which the "
    "formula is fitted.",
)
@option(
    "--processes",
    metavar="NAME",
    help="Column with the number of processes.  [default: one with a name such as P, np, nprocs, "
    "ranks or threads]",
)
@option(
    "--formula",
    metavar="FORMULA",
    help="Formula of the times, as in 'f[0] + f[1]*N/P'.  [default: its terms are chosen]",
)
@option(
    "--divide",
    metavar="QUANTITY",
    help="Quantity, such as N/P, at some value of which coefficients of FORMULA may change.",
)
@option("--signed", "negative", is_flag=True, help="Coefficients of FORMULA may be negative.")
@option(
    "--confidence",
    type=Real(0, 1, min_open=True, max_open=True),
    metavar="X",
    default=0.9,
    help="Part of the true times that has to be inside a band.",
)
@option(
    "--of-repeats",
    type=click.Choice(["least", "median", "mean"]),
    default="least",
    help="What counts of several times at one point of a table.",
)
@option(
    "--export",
    type=OutputFile(),
    help="Write the times as JSON Lines, which Extra-P reads.",
)
@click.argument("targets", metavar="[TARGET]...", nargs=-1, type=click.Path(path_type=Path))
def command(targets: tuple[Path, ...], at: list[Point], **options: Any) -> None:
    """Predict how long a program takes on another Machine, with more data or processes.

    Without --at, each TARGET is a trace that is replayed. The table shows its total under
    the cost models BSP, BSPWB, MPM and OBSP* beside the measured time, and the part that
    each function and cost centre has in it; of several Machines, what the run takes on
    each of them, side by side.

    With --at, all TARGETs are learned from together: traces of one program, folders of
    traces, or a table of times of any program (CSV, or a file of Extra-P). The answer is a
    sentence: the time, the band inside of which nine in ten such times are, what takes
    most of it, and the run that would narrow the band. Below it is a table. --run makes such
    runs, for as long as --budget says, and then needs no TARGET.

    Of a table, the time is a formula whose terms are chosen, or a FORMULA: a sum of
    parameters times expressions with + - * / **, log, log2, log10, sqrt, exp, min, max,
    abs, floor and ceil.

    \b
    Examples:
      bsp predict --machine here.toml sort.bsp
      bsp predict --machine all sort.bsp
      bsp predict --at n=2^30,p=64 --machine here.toml sort-*.bsp
      bsp predict --at n=2^30,p=64 --run 'bsp run -n {p} sort.py {n}' --budget 2m
      bsp predict --at N=2^20,P=64 times.csv
    """
    run, machines = options.pop("run"), _machines(options.pop("machine"))
    number = int(run) if run is not None and run.isdigit() else None
    maker = run if number is None else None
    files = [file for target in targets for file in _files(target)]
    if not files and not (maker and at):
        raise click.UsageError("name a trace, a folder or a table; or --run and --at")
    if files and (options["region"] is not None or not _are_programs(files)):
        _refuse((*_PLAYED, *_TRACES), "a table of times")
        from bsplib.profiler.predict.session import fit_and_print  # noqa: PLC0415  # imported late

        fit_and_print(files, at=at, **_only(options, *_TABLE, *_LEARNED, "force"))
        return
    _refuse(_TABLE, "traces")
    if at or options["model_out"] is not None:
        _refuse(_PLAYED, "a prediction by --at")
        if options["budget"] and maker is None:
            raise click.UsageError("--budget needs --run, the command that makes a run")
        from bsplib.profiler.predict.session import predict_and_print  # noqa: PLC0415  # imported late

        chosen = _only(options, *_LEARNED, "settings", "budget", "speed", "force")
        predict_and_print(files, at, list(machines.values()), maker=maker, **chosen)
        return
    _refuse((*_LEARNED, "settings", "budget"), "traces without --at")
    for file in files:
        _replay(file, number, machines, **_only(options, "speed", *_PLAYED[1:]))


def _only(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names}


def _machines(names: Sequence[str]) -> dict[str, Machine]:
    each = [known for name in names for known in (known_machines() if name == ALL else [name])]
    return {name: load_machine(name) for name in each}


def _files(target: Path) -> Iterator[Path]:
    """Yield the traces of a folder, or the file itself."""
    if not target.exists():
        raise UsageError(f"{target}: cannot be read: No such file or directory")
    if not target.is_dir():
        yield target
        return
    found = sorted(target.glob("*.bsp"))
    if not found:
        raise UsageError(f"there is no trace (*.bsp) in the folder {target}")
    yield from found


def _are_programs(files: Sequence[Path]) -> bool:
    """Whether the first file is a trace or what was learned from traces, and no table."""
    from bsplib.profiler.predict.document import is_model  # noqa: PLC0415  # imported late

    try:
        with files[0].open("rb") as file:
            return file.read(4) == b"PK\x03\x04" or is_model(files[0])
    except OSError:  # whoever reads it says why
        return files[0].suffix != ".csv"


def _refuse(names: Sequence[str], what: str) -> None:
    """Say which option of the command line is not for what is asked."""
    context = click.get_current_context()
    for each in context.command.params:
        given = context.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE
        if given and each.name in names:
            raise click.UsageError(f"{max(each.opts, key=len)} is not for {what}")


def _replay(
    file: Path,
    number: int | None,
    machines: dict[str, Machine],
    *,
    speed: str | None,
    models: Sequence[str],
    pattern: str | None,
    top: int,
    library: bool,
) -> None:
    trace = read(file)
    position = position_of(trace, number)
    runs = trace.runs if position is None else trace.runs[position : position + 1]
    if len(machines) > 1:
        from bsplib.profiler.report.machines import print_machines  # noqa: PLC0415  # imported late

        for run in runs:
            print_machines(run, machines, speed, most=top or None, library=library)
        return
    from bsplib.profiler.models.prediction import predict  # noqa: PLC0415  # imported late
    from bsplib.profiler.models.replay import MODELS  # noqa: PLC0415  # as above
    from bsplib.profiler.models.report import print_predictions  # noqa: PLC0415
    from bsplib.profiler.prices import choose_prices  # noqa: PLC0415

    there = next(iter(machines.values()), None)
    chosen = [(run, choose_prices(run, there, speed=speed, pattern=pattern)) for run in runs]
    wanted = [name for name in MODELS if not models or name.lower().rstrip("*") in models]
    print_predictions([predict(*each, wanted) for each in chosen], number=position)
