"""``bsp sweep``: a script run with all combinations of values, and which of them is best."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bsplib.backends import table as backends
from bsplib.command_options import OutputFile, force_option
from bsplib.errors import BspError, UsageError
from bsplib.experiments.grid import Number, combinations, filled, read_setting
from bsplib.output_file import TRACE, obstacle
from bsplib.recording.trace import read_trace
from bsplib.running.failures import show_error
from bsplib.running.options import choose, overriding
from bsplib.tools.cli.options import (
    Whole,
    backend_option,
    machine_option,
    nprocs_option,
    option,
    script_parameters,
    timeout_option,
)
from bsplib.tools.cli.run import enter, ready_to_run, run_to_end
from bsplib.visible import as_command

if TYPE_CHECKING:
    from bsplib.recording.records import Run

Values = Mapping[str, Number]
Turn = tuple[Values, Path]
"""What a script is run with, and the trace of the run."""
NPROCS, SEED = "nprocs", "seed"
_SEEDS = 5
"""Seeds where the script takes one."""
_REPEATS = 3
"""Runs of each combination where there is one seed."""


@click.command("sweep", context_settings={"allow_interspersed_args": False})
@option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values: 1,2,5, or A:B (all integers), A:B:+K or A:B:xK. NAME is nprocs, {NAME} in "
    "ARGUMENTS, an option --NAME of SCRIPT, or a parameter of main.",
)
@nprocs_option
@backend_option
@machine_option
@option(
    "--repeats",
    type=Whole(1),
    help=f"Runs of each combination and seed.  [default: {_REPEATS}, or 1 with several seeds]",
)
@option(
    "--seeds",
    type=Whole(1),
    help=f"Number of seeds: seed = 0, 1 and so on.  [default: {_SEEDS} where SCRIPT takes a seed]",
)
@option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder for the traces.  [default: SCRIPT.sweep]",
)
@option("--plot", type=OutputFile(), help="Plot balance and time into this file.")
@timeout_option
@force_option
@script_parameters
def command(  # noqa: PLR0913  # each is an option
    script: str,
    arguments: tuple[str, ...],
    *,
    settings: tuple[str, ...],
    nprocs: int | None,
    repeats: int | None,
    seeds: int | None,
    out: Path | None,
    plot: Path | None,
    force: bool,
    is_module: bool,
    **given: Any,
) -> None:
    """Run a script with all combinations of values, and say which is best.

    Each run is recorded in a trace of its own, in one folder. The output says which cost
    centres become more even and which take longer as a value grows, has the balance and the
    time of each, names the best value here and on other Machines, and which values cannot be
    told from it. What SCRIPT prints is dropped.

    If the command is interrupted, the same command goes on where it was. Runs that are in the
    folder and newer than SCRIPT are not made again, except with --force. bsp predict FOLDER
    --at VALUES learns from them, bsp view FOLDER shows them.

    A function theory(**values) of SCRIPT may return what theory says of a combination, as
    {title: number}.

    \b
    Examples:
      bsp sweep --set s=1:1024:x2 samplesort.py {s}
      bsp sweep --set block=1:64:x4 --set nprocs=1:16:x2 --backend sim steps.py
    """
    from bsplib.console import Console  # noqa: PLC0415  # imported late
    from bsplib.profiler import plotting  # noqa: PLC0415
    from bsplib.profiler.sweep.plot import plot_sweep  # noqa: PLC0415
    from bsplib.profiler.sweep.points import Sweep, point_of  # noqa: PLC0415
    from bsplib.profiler.sweep.show import print_sweep  # noqa: PLC0415

    if not settings:
        example = as_command("bsp", "sweep", "--set", "s=1:64:x2", script)
        raise UsageError(f"sweep: there is no --set before {script}; write {example}")
    if plot is not None:
        plotting.check_target(plot, force=force)
    known = dict(map(read_setting, settings))
    if seeds is not None:
        known[SEED] = tuple(range(seeds))
    counts = [int(each) for each in known.get(NPROCS, () if nprocs is None else (nprocs,))]
    backend = given["backend"]
    if backend is not None:
        for each in counts or (None,):
            choose(backend=backend, nprocs=each, machine=given["machine"])
    enter(backend, max(counts, default=None))
    file, execute = ready_to_run(script, arguments, is_module=is_module)
    program = Program(script, file, execute, arguments, nprocs, given)
    leads = not backends.own_rank()
    name = script.rpartition(".")[2] if is_module else Path(script).stem
    folder = out or Path(f"{name}.sweep")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"sweep: {folder} cannot be made: {error.strerror or error}") from None
    runs = _run_all(program, known, folder, repeats, force=force)
    if not leads:  # only the runs are those of all ranks
        list(runs)
        return
    names = tuple(name for name in known if name != SEED)
    points, theory = [], {}
    for values, run in runs:
        key = tuple(values[name] for name in names)
        points.append(point_of(run, key, values.get(SEED, 0)))
        theory[key] = program.theory(run, values)
    sweep = Sweep(names, points, theory)
    console = Console()
    print_sweep(sweep, console)
    if plot is not None:
        plot_sweep(plot, sweep, force=force)
        click.echo(f"drawn in {plot}", err=True)
    view = as_command("bsp", "view", "--metric", "h-imb", folder)
    click.echo(f"traces in {folder}: {view}", err=True)


@dataclass
class Program:
    """A script, and how each run of it is made."""

    script: str
    file: str
    execute: Callable[[], object]
    arguments: tuple[str, ...]
    nprocs: int | None
    overrides: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.text = Path(self.file).read_text(encoding="utf-8", errors="replace")

    def line(self, values: Values) -> list[str]:
        """Return the arguments of a run: those that are filled in, then options."""
        line = [filled(each, values) for each in self.arguments]
        for name, value in values.items():
            if not self.is_filled(name) and self.is_option(name):
                line += [f"--{name.replace('_', '-')}", str(value)]
        return line

    def is_filled(self, name: str) -> bool:
        """Whether a name stands in braces in the arguments."""
        return any(f"{{{name}}}" in each for each in self.arguments)

    def is_option(self, name: str) -> bool:
        """Whether the script has an option of a name, as far as its text tells."""
        option = f"--{name.replace('_', '-')}"
        return name != NPROCS and any(f"{quote}{option}{quote}" in self.text for quote in "\"'")

    def run(self, values: Values, trace: Path | None) -> set[str]:
        """Run the script once, without its output; return the names that were used.

        Args:
            values: by name.
            trace: where the run is recorded; None: it is not.

        Raises:
            BaseException: what the script raises.
        """
        used = {NPROCS, *(name for name in values if self.is_filled(name) or self.is_option(name))}
        changes = {
            "nprocs": values.get(NPROCS, self.nprocs),
            "arguments": {name: value for name, value in values.items() if name not in used},
            "called": used.update,
            "profile": None if trace is None else str(trace.absolute()),
            "records": trace is not None,
        }
        before = sys.argv
        sys.argv = [self.script, *self.line(values)]
        try:
            with (
                overriding(**changes, **self.overrides),
                open(os.devnull, "w", encoding="utf-8") as nowhere,
                redirect_stdout(nowhere),
            ):
                run_to_end(self.execute)
        finally:
            sys.argv = before
        return used

    def check(self, known: Iterable[str], used: Container[str]) -> None:
        """Check that all names are used.

        Raises:
            UsageError: one is not.
        """
        for name in known:
            if name not in used:
                raise UsageError(
                    f"--set {name}: {self.script} has no option --{name}, no main that it runs has "
                    f"a parameter {name}, and no argument is {{{name}}}"
                )

    def record(self, values: Values, trace: Path) -> Run | None:
        """Run the script once, and return the recorded run; None in ranks above 0.

        Raises:
            UsageError: another file is in the way, or the script makes no run or several.
            BaseException: what the script raises.
        """
        if backends.own_rank():
            self.run(values, trace)
            return None
        if reason := obstacle(trace, TRACE):
            raise UsageError(f"sweep: {reason}")
        trace.unlink(missing_ok=True)
        self.run(values, trace)
        runs = read_trace(trace).runs if trace.exists() else ()
        if len(runs) != 1:
            raise UsageError(
                f"sweep: {self.script} made {len(runs)} runs; a script that is swept makes one"
            )
        return runs[0]

    def made(self, values: Values, trace: Path) -> Run | None:
        """Return the run in a trace if it is newer than the script, and was made in this way."""
        from bsplib.profiler.prices import recorded_machine  # noqa: PLC0415  # imported late

        try:
            if trace.stat().st_mtime <= Path(self.file).stat().st_mtime:
                return None
            (run,) = read_trace(trace).runs
        except (OSError, BspError, ValueError):
            return None
        backend, machine = self.overrides["backend"], self.overrides["machine"]
        is_same = (
            run.complete
            and run.meta.get("arguments") == self.line(values)
            and run.nprocs == values.get(NPROCS, self.nprocs or run.nprocs)
            and backend in (None, run.meta.get("backend"))
            and machine in (None, recorded_machine(run))
        )
        return run if is_same else None

    def theory(self, run: Run, values: Values) -> Mapping[str, object]:
        """Return what the function ``theory`` of the script says of a combination."""
        if "\ndef theory(" not in self.text:
            return {}
        from bsplib.profiler.predict.values import carried  # noqa: PLC0415  # imported late

        if not hasattr(self, "_theory"):
            self._theory = runpy.run_path(self.file, run_name="bsp_sweep")["theory"]
        found: Mapping[str, object] = self._theory(**{**carried(run), **values, NPROCS: run.nprocs})
        return found


def _run_all(
    program: Program,
    known: Mapping[str, Sequence[Number]],
    folder: Path,
    repeats: int | None,
    *,
    force: bool,
) -> Iterator[tuple[Values, Run]]:
    """Run all combinations, each once before any is run again; show how far it is."""
    last: Values = {name: values[0] for name, values in known.items()}
    runs: list[Run | None] = []
    try:
        seeds = {} if SEED in known else {SEED: 0}
        used = program.run({**last, **seeds}, None)
        program.check(known, used)
        if seeds and SEED in used:
            known = {**known, SEED: range(_SEEDS)}
        times = repeats or (1 if len(known.get(SEED, ())) > 1 else _REPEATS)
        turns: list[Turn] = [
            (values, folder / f"{_named(values)}{f' again {again}' * bool(again)}.bsp")
            for again in range(times)
            for values in combinations(known)
        ]
        made = [None if force else program.made(values, path) for values, path in turns]
        there = sum(run is not None for run in made)
        if there and not backends.own_rank():
            click.echo(f"{there} of {len(turns)} runs are in {folder} already", err=True)
        with _progress(turns) as left:
            for (values, path), run in zip(left, made, strict=True):
                last = values
                runs.append(run or program.record(values, path))
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, UsageError) and error.__cause__ is None and error.pid is None:
            raise
        ending = error

        def show() -> int:
            status = ending.code if isinstance(ending, SystemExit) else None
            code = status if isinstance(status, int) else show_error(ending, program.file)
            click.echo(f"stopped at {_named(last)}; the same command goes on there", err=True)
            return code

        sys.exit(backends.end_by(ending, show))
    for (values, _), run in zip(turns, runs, strict=True):
        if run is not None:  # it was there, or was made here
            yield values, run


def _progress(turns: list[Turn]) -> AbstractContextManager[Iterable[Turn]]:
    """Return what goes through the turns; on a terminal a bar shows how many have ended."""
    if not sys.stderr.isatty():
        return nullcontext(turns)
    return click.progressbar(
        turns, file=sys.stderr, item_show_func=lambda turn: None if turn is None else turn[1].stem
    )


def _named(values: Values) -> str:
    return ",".join(f"{name}={value}" for name, value in values.items())
