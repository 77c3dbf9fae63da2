"""``bsp fit``: a formula fitted to a table of times, or the laws of a program from its traces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from bsplib.command_options import OutputFile, force_option
from bsplib.tools.cli.options import TRACE, Real, Whole
from bsplib.visible import as_command

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_VALUE = re.compile(rf"(?P<base>{_NUMBER})((\^|\*\*)(?P<power>{_NUMBER}))?")


def _points(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> list[dict[str, float]]:
    """Return the values of points such as N=2^20,P=64."""
    return [dict(_value(part) for part in text.split(",")) for text in texts]


def _value(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    match = _VALUE.fullmatch(number.strip())
    if not (name.strip() and match):
        raise click.BadParameter(f"{text!r} is no value of a variable: write it as N=2^20")
    try:
        return name.strip(), float(match["base"]) ** float(match["power"] or 1)
    except (OverflowError, ZeroDivisionError):
        raise click.BadParameter(f"{text!r} is too large a number") from None


def values_of(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, float]:
    """Return the values of variables, as in n=2^30,s=64."""
    return dict(_value(part) for text in texts for part in text.split(","))


model_nprocs_option = click.option(
    "-n",
    "--nprocs",
    type=Whole(1, 2**20),
    metavar="N",
    help="With --fit: number of processes.",
)
model_values_option = click.option(
    "--at",
    "values",
    multiple=True,
    callback=values_of,
    metavar="VALUES",
    help="With --fit: values of the variables, as in n=2^30.",
)
"""This option and the one above give the point at which a command shows what a model predicts."""


def _settings(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> list[tuple[str, dict[str, float]]]:
    """Return values for traces, as in n=2^20,s=64 or 'run-1024-*:n=1024'."""
    found = []
    for text in texts:
        pattern, _, values = text.rpartition(":")
        found.append((pattern, dict(_value(part) for part in values.split(","))))
    return found


def _duration(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Return the seconds of a time such as 10m, 90s or 1.5h."""
    match = re.fullmatch(r"(\d+\.?\d*)([smh]?)", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no time: write it as 90s, 10m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


@click.command("fit")
@click.option(
    "--time",
    metavar="NAME",
    help="Column with the times; in a file of Extra-P the metric; of the blocks of traces h (in "
    "bytes).  [default: time, or the only metric]",
)
@click.option(
    "--by",
    multiple=True,
    metavar="NAMES",
    help="Variables on which the time depends, separated by commas; for traces also n=size where "
    "the program calls it size.  [default: all other columns, or all numbers among the arguments "
    "that vary]",
)
@click.option(
    "--region",
    metavar="NAME",
    help="Region (call path) in a file of Extra-P; a block of bsp.experiment in traces, of which "
    "the formula is fitted.",
)
@click.option(
    "--processes",
    metavar="NAME",
    help="Variable that is the number of processes.  [default: one with a name such as P, np, "
    "nprocs, ranks or threads]",
)
@click.option(
    "--formula",
    metavar="FORMULA",
    help="Formula to fit; see above.  [default: its terms are chosen]",
)
@click.option(
    "--divide",
    metavar="QUANTITY",
    help="Quantity, such as N/P, at some value of which coefficients of FORMULA may change.  "
    "[default: where the errors show a break]",
)
@click.option("--signed", "negative", is_flag=True, help="Coefficients of FORMULA may be negative.")
@click.option(
    "--at",
    multiple=True,
    callback=_points,
    metavar="VALUES",
    help="Predict the time at a point, as in N=2^20,P=64; may be given several times.",
)
@click.option(
    "--confidence",
    type=Real(0, 1, min_open=True, max_open=True),
    metavar="X",
    default=0.9,
    show_default=True,
    help="Part of the true times that has to be inside the band of a prediction.",
)
@click.option(
    "--of-repeats",
    type=click.Choice(["least", "median", "mean"]),
    default="least",
    show_default=True,
    help="What counts of several times at one point.",
)
@click.option("--plot", type=OutputFile(), help="Plot times, formula and band into this file.")
@click.option(
    "-o",
    "--out",
    type=OutputFile(allow_dash=True),
    help="Write the result as JSON; - for standard output.",
)
@click.option(
    "--export",
    type=OutputFile(),
    help="Write the times for Extra-P: JSON Lines if the file ends in .jsonl, else text.",
)
@force_option
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="VALUES",
    help="For traces: values that they do not have, as in n=2^20,s=64; of some traces as in "
    "'run-1024-*:n=1024'.",
)
@click.option(
    "--run",
    "run_command",
    metavar="COMMAND",
    help="For traces: how to make one more run, with {n}, {p} and the like for its variables, as "
    "in 'bsp run -n {p} sort.py {n}'. The run that would tell most is named, or made.",
)
@click.option(
    "--budget",
    callback=_duration,
    default="0",
    show_default=True,
    metavar="TIME",
    help="With --run: for how long runs are made, as in 10m or 90s.",
)
@click.argument("files", type=TRACE, nargs=-1, required=True, metavar="FILE...")
def command(
    files: tuple[Path, ...],
    formula: str | None,
    by: tuple[str, ...],
    plot: Path | None,
    out: Path | None,
    export: Path | None,
    force: bool,
    **options: Any,
) -> None:
    r"""Fit a formula to measured times, or learn a model of a program from its traces.

    FILE is a CSV file whose first line has the names of the columns: variables, such as
    a size N and a number of processes P, and the time. Files of Extra-P can be read, too:
    text, and JSON Lines.

    The terms of the formula are chosen by the program: those by which the larger
    measurements are predicted best from the smaller ones. Or give a FORMULA: a sum of
    parameters times expressions of the variables, such as

      "f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P)"

    with + - * / **, log, log2, log10, sqrt, exp, min, max, abs, floor and ceil.

    The output has the coefficients, the misfit, what the formula predicts beyond the
    measurements, the band inside of which the true time is expected, and what was not
    tried. It says if the formula seems wrong, and where a constant of the machine jumps,
    as at the end of a cache.

    FILE... can also be traces of one program, of a few sizes and numbers of processes p.
    Then each cost centre gets a closed form of its supersteps and of its h-relation, exact
    where it does not depend on the data, and a formula of its computation. Runs of the
    same size are repeats, and with another --seed other data. What the runs cannot tell is
    refused, or open, and the runs that would settle it are named. --run makes them: those that
    tell most for what they cost, for as long as --budget says. --out writes a model that
    bsp predict --fit reads. With --region, the formula of a block of bsp.experiment is fitted
    to what that block took in them.

    \b
    Examples:
      bsp fit times.csv
      bsp fit times.csv --formula 'f[0] + f[1]*N/P' --at N=2^20,P=64
      bsp fit --out sort.json sort-*.bsp
      bsp fit --run 'bsp run -n {p} sort.py {n}' --budget 10m sort-*.bsp
    """
    settings = options.pop("settings")
    variables = [name.strip() for text in by for name in text.split(",")]
    if _are_traces(files) and options["region"] is None:
        others = {"formula": formula, "plot": plot, "export": export, "divide": options["divide"]}
        runs = {"command": options["run_command"], "budget_s": options["budget"]}
        _learn(files, variables, settings, options["at"], out, others, runs, force=force)
        return
    if (options.pop("run_command"), options.pop("budget")) != (None, 0):
        raise click.UsageError("--run and --budget are for traces, not for tables of times")
    _refuse_models(files)
    options["by"] = variables or None
    from bsplib.profiler.predict.times_session import Outputs, fit_and_print  # noqa: PLC0415  # imported late

    outputs = Outputs(plot, out, export, force)
    if _are_traces(files):
        _fit_experiment(files, formula, outputs, options)
        return
    if len(files) > 1 or settings:
        raise click.UsageError("several files and --set are for traces")
    (file,) = files
    fit_and_print(file, formula, outputs, **options)


def _fit_experiment(
    files: tuple[Path, ...],
    formula: str | None,
    outputs: Any,
    options: dict[str, Any],
) -> None:
    from bsplib.profiler.predict.times_session import fit_experiment_and_print  # noqa: PLC0415  # imported late

    options["time"] = options["time"] or "time"
    fit_experiment_and_print(files, options.pop("region"), formula, outputs, **options)


def _refuse_models(files: tuple[Path, ...]) -> None:
    from bsplib.profiler.predict.document import is_model  # noqa: PLC0415  # imported late

    for file in files:
        if is_model(file):
            raise click.UsageError(
                f"{file} is a model that bsp fit wrote; to see what it predicts: "
                f"{as_command('bsp', 'predict', '--fit', file, '-n', 64)}"
            )


def _are_traces(files: tuple[Path, ...]) -> bool:
    """Whether the first file is an archive, as a trace is."""
    try:
        with files[0].open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:  # whoever reads it says why
        return files[0].suffix == ".bsp"


def _learn(
    files: tuple[Path, ...],
    variables: list[str],
    settings: list[tuple[str, dict[str, float]]],
    at: list[dict[str, float]],
    out: Path | None,
    others: Mapping[str, object],
    runs: Mapping[str, Any],
    *,
    force: bool,
) -> None:
    from bsplib.profiler.predict.session import fit_and_print  # noqa: PLC0415  # imported late

    for name, value in others.items():
        if value is not None:
            raise click.UsageError(f"--{name} is for tables of times, not for traces")
    if runs["budget_s"] and runs["command"] is None:
        raise click.UsageError("--budget needs --run, the command that makes a run")
    fit_and_print(files, sizes=variables, settings=settings, json=out, at=at, force=force, **runs)
