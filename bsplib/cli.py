"""The ``bsp`` command.

The rooms above the runtime are loaded by the commands that need them, and only
then: a program that runs pays nothing for the pages.
"""

from __future__ import annotations

import os
import platform
import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bsplib.backends.sim.launch import Times
from bsplib.errors import BspError
from bsplib.machine import load_machine
from bsplib.recording.output_file import obstacle
from bsplib.recording.recording import is_begun
from bsplib.recording.recording import recover as rescue
from bsplib.running import launch
from bsplib.running.failures import show_error
from bsplib.running.setting import BACKENDS, check_timeout, choose
from bsplib.running.speedup import run_with_speedup
from bsplib.version import __version__
from bsplib.visible import visible, visible_lines

if TYPE_CHECKING:
    from bsplib.recording.records import Trace

_TRACE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


class _Sentences(click.Group):
    """A group of commands whose errors are one sentence each."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BspError as error:
            raise click.ClickException(visible_lines(str(error))) from None


@click.group(cls=_Sentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bsp")
def main() -> None:
    """Run bulk synchronous parallel programs, and see where their time goes."""


@main.command(context_settings={"allow_interspersed_args": False})
@click.option("-n", "--nprocs", type=click.IntRange(1), help="Number of processes.")
@click.option("--backend", type=click.Choice(BACKENDS), help="Where the processes live.")
@click.option("--profile", type=_TRACE, help="Record the run in this file.")
@click.option("--machine", metavar="NAME", help="Machine that prices virtual processors.")
@click.option("--check", is_flag=True, help="Report overlapping transfers and early changes.")
@click.option("--timeout", type=float, metavar="SECONDS", help="End a run that takes longer.")
@click.option(
    "--speedup",
    is_flag=True,
    help="Run SCRIPT once more on one virtual processor, and print T(1)/T(P).",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(  # noqa: PLR0913, PLR0917  # each is an option
    nprocs: int | None,
    backend: str | None,
    profile: Path | None,
    machine: str | None,
    check: bool,
    timeout: float | None,
    speedup: bool,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Run SCRIPT, which calls bsplib.run, with ARGUMENTS.

    What is said here wins over what the script says. Lines that a process prints
    begin with its pid. Virtual processors (--backend sim) report the time that the
    program would take and the total computation of all processes.
    """
    launch.overrides.nprocs = nprocs
    launch.overrides.backend = backend
    launch.overrides.profile = None if profile is None else str(profile.absolute())
    try:
        launch.overrides.machine = None if machine is None else load_machine(machine)
        if backend is not None:
            choose(backend=backend, nprocs=nprocs, machine=launch.overrides.machine)
        launch.overrides.timeout = check_timeout(timeout)
    except BspError as error:
        raise click.ClickException(visible_lines(str(error))) from None
    if profile is not None and (reason := obstacle(profile.absolute())):
        raise click.ClickException(f"profile: {reason}")
    launch.overrides.check = check
    launch.overrides.label = True
    launch.overrides.report_times = _print_times
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).absolute().parent)
    _run_script(script, speedup=speedup)
    if profile is not None and is_begun(profile):
        click.echo(f"recorded in {profile}: bsp report {profile}, bsp view {profile}", err=True)


def _run_script(script: str, *, speedup: bool) -> None:
    try:
        if speedup:
            run_with_speedup(script, lambda line: click.echo(line, err=True))
        else:
            runpy.run_path(script, run_name="__main__")
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # whatever the script raises
        sys.exit(show_error(error, script))


def _print_times(times: Times) -> None:
    click.echo(times, err=True)


@main.command()
@click.option("--out", type=_TRACE, help="File for the trace; the one of the run if not said.")
@click.argument("folder", type=_FOLDER)
def recover(out: Path | None, folder: Path) -> None:
    """Make the trace of a run whose program was killed.

    While a program runs with --profile, its records lie in FOLDER, named
    .bsp-records-..., beside the file of the trace. Where the program is killed it stays
    there. The trace has the supersteps that all processes had recorded; FOLDER is removed.
    """
    target, run = rescue(folder, out)
    number = len(set(run.records["superstep"][run.records["group"] == 0].tolist()))
    path = visible(str(target))
    click.echo(f"wrote {path}: {run.nprocs} processes, {number} supersteps: bsp report {path}")


@main.command()
@click.option("--path", default="h-imb", show_default=True, help="Critical path to mark.")
@click.option("--run", "number", type=int, help="Which run of the trace, from 1; all if not said.")
@click.option("--library", is_flag=True, help="Show the functions of bsplib too.")
@click.argument("file", type=_TRACE)
def report(path: str, number: int | None, library: bool, file: Path) -> None:
    """Print the call graph in FILE as a table.

    Costs are shown as max (avg% | min%) over all processes of the run. Critical paths: sync,
    and comp, comm, idle or h followed by -abs, -imb, -rel or -weighted.
    """
    from profiler.critical import PATHS  # noqa: PLC0415  # loaded lazily, see above
    from profiler.report import print_report  # noqa: PLC0415

    if path not in PATHS:
        raise click.BadParameter(f"{path!r} is none of {', '.join(PATHS)}", param_hint="--path")
    trace = _read(file)
    print_report(trace, run=_position(trace, number), path=path, library=library)


@main.command()
@click.option("--html", type=_TRACE, help="Write one page that works offline, and serve nothing.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Serve here; 0: any port.")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@click.option("--library", is_flag=True, help="Show the functions of bsplib too.")
@click.argument("file", type=_TRACE)
def view(html: Path | None, port: int, browser: bool, library: bool, file: Path) -> None:
    """Show the shaded call graph in FILE in the browser."""
    import webui  # noqa: PLC0415  # loaded lazily, see above

    trace = _read(file)
    if html is None:
        webui.serve(trace, port=port, open_browser=browser, library=library)
        return
    try:
        webui.write_html(trace, html, library=library)
    except OSError as error:
        raise click.ClickException(f"{html} cannot be written: {error.strerror}") from None
    click.echo(f"wrote {html}: open it in a browser")


@main.command()
@click.option("-n", "--nprocs", type=click.IntRange(2, 256), help="Processes; one a core at least.")
@click.option("--name", help="Name of the Machine; that of this computer if not said.")
@click.option("--out", type=_TRACE, help="File to write; NAME.toml in this folder if not said.")
def probe(nprocs: int | None, name: str | None, out: Path | None) -> None:
    """Measure this computer and write it down as a Machine.

    Measures the speed of a process, and g and L of six patterns of communication over
    shared memory, with NPROCS processes; takes some seconds. Wherever a Machine is
    asked for the file can be named: bsp predict --machine FILE.toml.
    """
    from rich.console import Console  # noqa: PLC0415  # loaded lazily, see above

    from bsplib.running.probe_table import probe_with_progress, table  # noqa: PLC0415

    name = name or platform.node() or "this computer"
    out = out or Path(re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".toml")
    if not out.absolute().parent.is_dir():
        raise click.ClickException(f"out: there is no folder {out.absolute().parent}")
    probed = probe_with_progress(nprocs or max(2, len(os.sched_getaffinity(0))), name)
    try:
        out.write_text(probed.machine.text(), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from None
    Console().print(table(probed))
    click.echo(f"wrote {out}: bsp predict --machine {out} TRACE")


@main.command()
@click.option("--machine", metavar="NAME", help="Where; the one it ran on if not said.")
@click.option("--speed", metavar="X", help="Of a process there: flop/s, or 0.5x as fast as here.")
@click.option(
    "--l", "latency_s", metavar="SECONDS", type=click.FloatRange(0, 1), help="l there, in seconds."
)
@click.option("--pattern", metavar="NAME", help="Take g and L of this pattern, or auto.")
@click.option(
    "--model",
    "names",
    multiple=True,
    type=click.Choice(["bsp", "bspwb", "mpm", "obsp"], case_sensitive=False),
    help="Only this one; may be given again.",
)
@click.option("--run", "number", type=int, help="Which run of the trace, from 1; all if not said.")
@click.argument("file", type=_TRACE)
def predict(
    machine: str | None,
    speed: str | None,
    latency_s: float | None,
    pattern: str | None,
    names: tuple[str, ...],
    number: int | None,
    file: Path,
) -> None:
    """Say what the run in FILE would take on a Machine.

    The trace is replayed under the models BSP, BSPWB, MPM and OBSP*, beside the time
    that was measured: in total, and by function and cost centre what was spent there
    on the path that decides the total. NAME is a Machine that comes along, or a .toml
    file as bsp probe writes it; figures that it lacks can be said here, or after its
    name as in cray-t3e-mpi:l=1e-5,speed=3e8. Patterns: exchange, ping-pong,
    one-to-all, personalised-one-to-all, all-to-one, all-to-all; auto recognises the
    pattern of each superstep.
    """
    from profiler.models.prices import choose_prices  # noqa: PLC0415  # loaded lazily, see above
    from profiler.models.replay import MODELS  # noqa: PLC0415
    from profiler.models.report import predict_all, print_predictions  # noqa: PLC0415

    trace = _read(file)
    position = _position(trace, number)
    runs = trace.runs if position is None else trace.runs[position : position + 1]
    there = None if machine is None else load_machine(machine)
    said = {"speed": speed, "latency_s": latency_s, "pattern": pattern}
    chosen = [(run, choose_prices(run, there, **said)) for run in runs]  # type: ignore[arg-type]
    models = [name for name in MODELS if not names or name.lower().rstrip("*") in names]
    print_predictions(predict_all(chosen, models), number=position)


@main.command()
@click.option(
    "--parameter",
    "said",
    required=True,
    metavar="NAME=A:B:xK",
    help="Integer option of APP and its values: A:B, A:B:+K, or A:B:xK for multiples.",
)
@click.option("-n", "--nprocs", type=click.IntRange(1), help="Number of processes.")
@click.option("--backend", type=click.Choice(BACKENDS), help="Where the processes live.")
@click.option("--machine", metavar="NAME", help="Machine that prices the runs.")
@click.option(
    "--repeats",
    default=3,
    show_default=True,
    type=click.IntRange(1),
    help="Runs with each value; of what they took the least counts.",
)
@click.option("--keep", type=_FOLDER, help="Keep the traces in this folder.")
@click.option("--plot", type=_TRACE, help="Draw the trade into this file.")
@click.argument("app")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def tune(said: str, plot: Path | None, app: str, **options: Any) -> None:
    """Find the best value of a parameter of APP.

    APP is a module or a file with a click command named "command", such as
    apps.sample_sort; ARGUMENTS, after --, are further options of it. It is run and
    recorded with each value. The cost centres that cost more as the parameter grows,
    and those that get more even, are found in the traces; the best value is named for
    the Machine of the runs and for each that comes with bsplib, where a superstep
    costs max w + g h + l.
    """
    from profiler.tune.session import tune_and_print  # noqa: PLC0415  # loaded lazily, see above

    tune_and_print(app, said, plot=plot, **options)


def _read(file: Path) -> Trace:
    from bsplib.recording.trace import read_trace  # noqa: PLC0415

    return read_trace(file)


def _position(trace: Trace, number: int | None) -> int | None:
    if number is None:
        return None
    if not 1 <= number <= len(trace.runs):
        raise click.BadParameter(
            f"there is no run {number} among {len(trace.runs)}", param_hint="--run"
        )
    return number - 1
