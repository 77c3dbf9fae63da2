"""``bsp experiment``: programs run for many sizes, and what their marked blocks took."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bsplib.backends import table as backends
from bsplib.command_options import OutputFile, check_output, force_option
from bsplib.console import Console
from bsplib.errors import BspError, UsageError
from bsplib.experiments import datafile
from bsplib.experiments.counters import COUNTERS, reason_against
from bsplib.experiments.datafile import DATA
from bsplib.experiments.grid import Number, combinations, read_counts, read_setting
from bsplib.experiments.runs import SEED, Sweep, Turn, run_all, turns
from bsplib.machine import load_machine
from bsplib.running.failures import show_error
from bsplib.running.options import check_timeout, choose
from bsplib.tools.cli.listing import Listing
from bsplib.tools.cli.options import (
    TRACE,
    Real,
    Whole,
    backend_option,
    complete_files,
    machine_option,
)
from bsplib.tools.cli.run import data_file_of, enter, put_first
from bsplib.visible import as_command


@click.group("experiment", cls=Listing)
def command() -> None:
    r"""Measure blocks of a program for many sizes and numbers of processes.

    A block is marked in the program, with the formula of its time:

      with bsp.experiment("f", "f[0] + f[1]*log2(P) + f[2]*N/P", N=n): ...

    or by comments, which plain Python ignores: #cll f f[0]+f[1]*N before it, and #cll end f
    after it. bsp fit finds the coefficients from the data file.

    \b
    Examples:
      bsp experiment run --cll -n 1:16:x2 --set N=1024:65536:x2 sort.py
      bsp experiment show sort.experiments.jsonl
    """


@command.command("run", context_settings={"allow_interspersed_args": False})
@click.option(
    "-n",
    "--nprocs",
    "procs",
    default="",
    metavar="VALUES",
    help="Numbers of processes: 1,2,3 or a range such as 1:16:x2 or 2:8:+2.  [default: what "
    "SCRIPT says]",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values for the parameter NAME of main, as in N=1024:262144:x2, or for {NAME} in "
    "ARGUMENTS; may be given several times.",
)
@click.option(
    "--repeats",
    type=Whole(1),
    metavar="N",
    default=3,
    show_default=True,
    help="Runs of each combination.",
)
@click.option(
    "--seeds",
    type=Whole(1),
    metavar="N",
    help="Number of seeds: --set seed=0, 1 and so on.",
)
@click.option(
    "-o",
    "--out",
    type=OutputFile(DATA),
    help="Data file to add to.  [default: SCRIPT.experiments.jsonl]",
)
@click.option(
    "--counters",
    default="",
    metavar="NAMES",
    help=f"Counters of the processor for each block, with commas: {', '.join(COUNTERS)}.",
)
@click.option("--cll", is_flag=True, help="Comments such as '#cll f f[0]+f[1]*N' mark blocks.")
@backend_option
@machine_option
@click.option("--mpiexec", metavar="COMMAND", help="Starts the processes of --backend mpi.")
@click.option(
    "--timeout",
    type=Real(0, min_open=True),
    metavar="SECONDS",
    help="End a run that takes longer.",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_files)
def run(  # noqa: PLR0913, PLR0917  # each is an option
    procs: str,
    settings: tuple[str, ...],
    repeats: int,
    seeds: int | None,
    out: Path | None,
    counters: str,
    cll: bool,
    backend: str | None,
    machine: str | None,
    mpiexec: str | None,
    timeout: float | None,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    r"""Run SCRIPT with all combinations of values, and keep what its experiments take.

    A value replaces the argument of that name which SCRIPT gives to main by bsplib.run; so a
    script needs no change. A script that reads its command line gets it in ARGUMENTS, in which
    {NAME} stands for the value. What SCRIPT prints is dropped.

    All combinations are run once before any is run again. If the command is interrupted, the
    same command goes on where it was.

    \b
    Examples:
      bsp experiment run -n 1:16:x2 --set N=1024:262144:x2 sort.py
      bsp experiment run --backend sim -n 4 --set n=100,200 sort.py --size '{n}'
    """
    counts: tuple[int | None, ...] = read_counts("--nprocs", procs) if procs else (None,)
    known = dict(map(read_setting, settings))
    if seeds is not None:
        known[SEED] = tuple(range(seeds))
    prices = None if machine is None else load_machine(machine)
    overrides = {
        "backend": backend,
        "machine": prices,
        "timeout": check_timeout(timeout),
        "counters": _counters(counters, backend),
    }
    if backend is not None:
        for nprocs in counts:
            choose(backend=backend, nprocs=nprocs, machine=prices)
    target = out or data_file_of(script)
    check_output("experiments", target, DATA)
    put_first(Path(script).absolute().parent)
    enter(backend, mpiexec)
    sweep = Sweep(script, arguments, cll, overrides)
    wanted = turns(counts, combinations(known), repeats)
    there = _run_all(sweep, wanted, target.absolute())
    if there:
        click.echo(f"{there} of {len(wanted)} executions were in {target} already", err=True)
    show_table(target)
    click.echo(as_command("bsp", "fit", target))


def _counters(text: str, backend: str | None) -> tuple[str, ...]:
    """Return the counters that work here; say in one sentence which do not, and why."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in COUNTERS:
            raise UsageError(f"--counters: there is no {name!r}; choose from {', '.join(COUNTERS)}")
    if names and backend is not None and backends.find(backend).is_virtual:
        raise UsageError("--counters: virtual processors share the counters of one thread")
    against = {name: reason for name in names if (reason := reason_against(name))}
    for name, reason in against.items():
        click.echo(f"--counters: {name} is not counted: {reason}", err=True)
    return tuple(name for name in names if name not in against)


def _run_all(sweep: Sweep, wanted: Sequence[Turn], path: Path) -> int:
    """Execute what is missing, with a progress bar; end the command where the script fails."""
    last = [wanted[0]]
    try:
        with _progress(len(wanted)) as advance:

            def begin(turn: Turn) -> None:
                last[0] = turn
                advance(str(turn))

            return run_all(sweep, wanted, path, begin)
    except BspError as error:
        if isinstance(error, UsageError) and error.__cause__ is None and error.pid is None:
            raise  # one sentence
        status = show_error(error, sweep.script)
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001  # the script may raise any
        status = show_error(error, sweep.script)
    click.echo(
        f"stopped at {last[0]}; the same command goes on after what is in {path.name}", err=True
    )
    sys.exit(status)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows how far the executions are, on a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        auto_refresh=False,  # no thread, so that processes can be forked
        disable=not console.is_terminal,
    ) as progress:
        bar = progress.add_task("", total=total)
        begun = iter(range(total))

        def advance(what: str) -> None:
            progress.update(bar, completed=next(begun), description=escape(what))
            progress.refresh()

        yield advance


@command.command("merge")
@click.option("-o", "--out", type=OutputFile(), required=True, help="Data file to write.")
@force_option
@click.argument("files", type=TRACE, nargs=-1, required=True, metavar="FILE...")
def merge(out: Path, force: bool, files: tuple[Path, ...]) -> None:
    """Write what is in several data files into one; what is in two of them counts once."""
    count = datafile.merge(files, out, force=force)
    click.echo(f"{count} passages in {out}")


@command.command("show")
@click.argument("file", type=TRACE)
def show(file: Path) -> None:
    """Show a data file as tables: one for each experiment."""
    show_table(file)


def show_table(path: Path) -> None:
    """Print a table for each experiment of a data file."""
    console = Console()
    found = datafile.experiments(datafile.read(path))
    if not found:
        raise UsageError(f"{path} has no passages of experiments")
    for experiment in found.values():
        title = f"{experiment.name}: {'; '.join(experiment.formulas)}"
        console.print(Text(title, style="bold"), soft_wrap=True)
        console.print(_table(experiment))


def _table(experiment: datafile.Experiment) -> Table:
    """Return a table with a row for each point: its least and median time, and the balance."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    counted = _counted(experiment)
    for name in (*experiment.values, "passages", "least time", "median", "avg/max", *counted):
        table.add_column(Text(name), justify="right")
    points: dict[tuple[Number, ...], list[datafile.Row]] = {}
    for row in experiment.rows:
        points.setdefault(tuple(row["params"][name] for name in experiment.values), []).append(row)
    for point in sorted(points):
        rows = sorted(points[point], key=lambda row: float(row["value"]))
        best, median = rows[0], rows[len(rows) // 2]
        balance = sum(best["times"]) / len(best["times"]) / (best["value"] or 1)
        table.add_row(
            *(f"{value:g}" for value in point),
            str(len(rows)),
            *(f"{row['value']:.4g} s" for row in (best, median)),
            f"{balance:.0%}",
            *(f"{max(of(best)):.5g}" for of in counted.values()),
        )
    return table


def _counted(
    experiment: datafile.Experiment,
) -> dict[str, Callable[[datafile.Row], Sequence[float]]]:
    """Return the h-relation and the counters that all passages have, by title."""
    found: dict[str, Callable[[datafile.Row], Sequence[float]]] = {}
    if all("h" in row for row in experiment.rows):
        found["h in bytes"] = lambda row: row["h"]
    for name in experiment.rows[0].get("counted", {}):
        if all(name in row.get("counted", {}) for row in experiment.rows):
            found[name] = partial(_of_counter, name)
    return found


def _of_counter(name: str, row: datafile.Row) -> Sequence[float]:
    values: Sequence[float] = row["counted"][name]
    return values
