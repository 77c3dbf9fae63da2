"""The ``bsp`` command.

Commands import the profiler and the pages when they are called: ``bsp run`` starts faster
without them.
"""

from __future__ import annotations

import platform
import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bsplib.backends import table as backends
from bsplib.backends.launching import Times
from bsplib.errors import BspError
from bsplib.machine import load_machine
from bsplib.own_packages import prefer_own
from bsplib.recording.output_file import obstacle
from bsplib.recording.recording import is_begun
from bsplib.recording.recording import recover as rescue
from bsplib.running import launch
from bsplib.running.failures import show_error
from bsplib.running.setting import check_timeout, choose
from bsplib.running.speedup import run_with_speedup
from bsplib.sentences import as_sentence
from bsplib.version import __version__
from bsplib.visible import visible

if TYPE_CHECKING:
    from bsplib.recording.records import Trace

_TRACE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_WHICH_RUN = "Number of the run in the trace, from 1.  [default: all runs]"


class _Sentences(click.Group):
    """A group of commands that shows an error of bsplib as one sentence, without traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BspError as error:
            raise as_sentence(error) from None


@click.group(cls=_Sentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bsp")
@click.pass_context
def main(context: click.Context) -> None:
    """Run bulk synchronous parallel programs and see where their time goes."""
    if context.invoked_subcommand != "run":  # a script imports its own modules
        prefer_own("profiler", "webui")


@main.command(context_settings={"allow_interspersed_args": False})
@click.option("-n", "--nprocs", type=click.IntRange(1), help="Number of processes.")
@click.option(
    "--backend",
    type=click.Choice(backends.names()),
    help=backends.summary(),
)
@click.option("--profile", type=_TRACE, help="Record the run in this trace file.")
@click.option(
    "--machine",
    metavar="NAME",
    help="Machine whose parameters price the communication of virtual processors.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Report transfers that overlap and arrays that change before the sync.",
)
@click.option("--timeout", type=float, metavar="SECONDS", help="End a run that takes longer.")
@click.option(
    "--speedup",
    is_flag=True,
    help="Run SCRIPT once more on one virtual processor, and print the speed-up T(1)/T(P).",
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
    """Run SCRIPT, a Python file that calls bsplib.run, with ARGUMENTS.

    The options override the arguments that the script gives to bsplib.run. Each line
    that a process prints begins with its pid. With --backend sim, the virtual time of
    the run and the total computation of all processes are printed at the end.
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
        raise as_sentence(error) from None
    if profile is not None and (reason := obstacle(profile.absolute())):
        raise click.ClickException(f"profile: {reason}")
    launch.overrides.check = check
    launch.overrides.label = True
    launch.overrides.report_times = _print_times
    sys.argv = [script, *arguments]
    _put_first(Path(script).absolute().parent)
    _run_script(script, speedup=speedup)
    if profile is not None and is_begun(profile):
        click.echo(f"recorded in {profile}: bsp report {profile}, bsp view {profile}", err=True)


def _put_first(folder: Path) -> None:
    """Let the script import the modules beside it, as python SCRIPT does."""
    if sys.flags.safe_path:  # the first entry is no folder of bsp or of python -m
        sys.path.insert(0, str(folder))
    else:
        sys.path[0] = str(folder)


def _run_script(script: str, *, speedup: bool) -> None:
    try:
        if speedup:
            run_with_speedup(script, lambda line: click.echo(line, err=True))
        else:
            runpy.run_path(script, run_name="__main__")
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the script may raise any
        sys.exit(show_error(error, script))


def _print_times(times: Times) -> None:
    click.echo(times, err=True)


@main.command()
@click.option(
    "--out", type=_TRACE, help="Trace file to write.  [default: the file given for the run]"
)
@click.argument("folder", type=_FOLDER)
def recover(out: Path | None, folder: Path) -> None:
    """Save the trace of a run that was killed.

    While a program runs with --profile, its records are kept in a folder named
    .bsp-records-... beside the trace file. If the program is killed, the folder
    remains; give it as FOLDER. The trace has the supersteps that all processes had
    recorded. FOLDER is removed afterwards.
    """
    target, run = rescue(folder, out)
    number = len(set(run.records["superstep"][run.records["group"] == 0].tolist()))
    path = visible(str(target))
    click.echo(f"wrote {path}: {run.nprocs} processes, {number} supersteps: bsp report {path}")


@main.command()
@click.option("--path", default="h-imb", show_default=True, help="Critical path to mark.")
@click.option("--run", "number", type=int, help=_WHICH_RUN)
@click.option("--library", is_flag=True, help="Show the functions of bsplib too.")
@click.argument("file", type=_TRACE)
def report(path: str, number: int | None, library: bool, file: Path) -> None:
    """Print the call graph of the trace FILE as a table.

    Costs are shown as max (avg% | min%) over all processes of the run. The critical
    paths are sync (number of supersteps), and comp (computation), comm
    (communication), idle (idle time) or h (h-relation) followed by -abs (absolute
    cost), -imb (absolute imbalance), -rel (relative imbalance) or -weighted (both
    imbalances multiplied).
    """
    from profiler.critical import PATHS  # noqa: PLC0415  # imported late, see above
    from profiler.report import print_report  # noqa: PLC0415

    if path not in PATHS:
        raise click.BadParameter(
            f"{path!r} is no critical path; choose one of {', '.join(PATHS)}", param_hint="--path"
        )
    trace = _read(file)
    print_report(trace, run=_position(trace, number), path=path, library=library)


@main.command()
@click.option("--html", type=_TRACE, help="Write one page that works offline, and start no server.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the server; 0: a free one."
)
@click.option("--browser/--no-browser", default=True, help="Whether to open a browser.")
@click.option("--library", is_flag=True, help="Show the functions of bsplib too.")
@click.argument("file", type=_TRACE)
def view(html: Path | None, port: int, browser: bool, library: bool, file: Path) -> None:
    """Show the shaded call graph of the trace FILE in the browser."""
    import webui  # noqa: PLC0415  # imported late, see above

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
@click.option(
    "-n",
    "--nprocs",
    type=click.IntRange(2, backends.find(backends.DEFAULT).most_processes),
    help="Number of processes.  [default: the number of cores]",
)
@click.option("--name", help="Name of the Machine.  [default: the name of this computer]")
@click.option(
    "--out", type=_TRACE, help="File to write.  [default: NAME.toml in the current folder]"
)
def probe(nprocs: int | None, name: str | None, out: Path | None) -> None:
    """Measure this computer and write its parameters to a Machine file.

    A Machine is the set of parameters of a computer. This command measures the speed
    of a process, and g and L of six patterns of communication over shared memory; it
    takes some seconds. Every --machine option takes the file:
    bsp predict --machine FILE.toml.
    """
    from rich.console import Console  # noqa: PLC0415  # imported late, see above

    from bsplib.running.probe_table import probe_with_progress, table  # noqa: PLC0415

    name = name or platform.node() or "this computer"
    out = out or Path(re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".toml")
    if not out.absolute().parent.is_dir():
        raise click.ClickException(f"out: there is no folder {out.absolute().parent}")
    probed = probe_with_progress(nprocs or max(2, backends.own_cores()), name)
    try:
        out.write_text(probed.machine.text(), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from None
    Console().print(table(probed))
    click.echo(f"wrote {out}: bsp predict --machine {out} TRACE")


@main.command()
@click.option(
    "--machine", metavar="NAME", help="Machine to predict for.  [default: that of the run]"
)
@click.option(
    "--speed",
    metavar="X",
    help="Speed of a process of the Machine: in flop/s, or as in 0.5x compared with the run.",
)
@click.option(
    "--l",
    "latency_s",
    metavar="SECONDS",
    type=click.FloatRange(0, 1),
    help="Latency l of the Machine: the time to end a superstep.",
)
@click.option("--pattern", metavar="NAME", help="Use g and L of this pattern; see above.")
@click.option(
    "--model",
    "names",
    multiple=True,
    type=click.Choice(["bsp", "bspwb", "mpm", "obsp"], case_sensitive=False),
    help="Cost model; may be given several times.  [default: all]",
)
@click.option("--run", "number", type=int, help=_WHICH_RUN)
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
    """Predict how long the run in the trace FILE would take on a Machine.

    The trace is replayed under the cost models BSP, BSPWB, MPM and OBSP*. The table
    shows the total beside the measured time, and the part of it that each function and
    cost centre has on the path that determines the total.

    A Machine is the set of parameters of a computer. NAME is one that comes with
    bsplib, or a .toml file as bsp probe writes it. Figures that it lacks can be given
    by options, or after the name, as in cray-t3e-mpi:l=1e-5,speed=3e8.

    The patterns of communication are exchange, ping-pong, one-to-all,
    personalised-one-to-all, all-to-one and all-to-all; auto recognises the pattern of
    each superstep.
    """
    from profiler.models.prices import choose_prices  # noqa: PLC0415  # imported late, see above
    from profiler.models.replay import MODELS  # noqa: PLC0415
    from profiler.models.report import predict_all, print_predictions  # noqa: PLC0415

    trace = _read(file)
    position = _position(trace, number)
    runs = trace.runs if position is None else trace.runs[position : position + 1]
    there = None if machine is None else load_machine(machine)
    figures = {"speed": speed, "latency_s": latency_s, "pattern": pattern}
    chosen = [(run, choose_prices(run, there, **figures)) for run in runs]  # type: ignore[arg-type]
    models = [name for name in MODELS if not names or name.lower().rstrip("*") in names]
    print_predictions(predict_all(chosen, models), number=position)


@main.command()
@click.option(
    "--parameter",
    "sweep",
    required=True,
    metavar="NAME=A:B:xK",
    help="Integer option of APP and its values from A to B: all (A:B), with step K "
    "(A:B:+K), or each K times the one before (A:B:xK).",
)
@click.option("-n", "--nprocs", type=click.IntRange(1), help="Number of processes.")
@click.option(
    "--backend",
    type=click.Choice(backends.names()),
    help=backends.summary(),
)
@click.option(
    "--machine",
    metavar="NAME",
    help="Machine whose parameters price the communication of virtual processors.",
)
@click.option(
    "--repeats",
    default=3,
    show_default=True,
    type=click.IntRange(1),
    help="Runs with each value; the fastest of them counts.",
)
@click.option("--keep", type=_FOLDER, help="Keep the traces in this folder.")
@click.option("--plot", type=_TRACE, help="Plot the costs over the values into this file.")
@click.argument("app")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def tune(sweep: str, plot: Path | None, app: str, **options: Any) -> None:
    """Find the best value of a parameter of APP.

    APP is a module or a file with a click command named "command", such as
    apps.sorting.sample_sort; ARGUMENTS, after --, are further options of APP. It is run and
    recorded with each value of the parameter.

    The output shows which cost centres take longer as the parameter grows and which
    become more balanced. It names the best value for the Machine of the runs and for
    each Machine that comes with bsplib, where a superstep costs max w + g h + l.
    """
    from profiler.tune.session import tune_and_print  # noqa: PLC0415  # imported late, see above

    tune_and_print(app, sweep, plot=plot, **options)


def _read(file: Path) -> Trace:
    from bsplib.recording.trace import read_trace  # noqa: PLC0415

    return read_trace(file)


def _position(trace: Trace, number: int | None) -> int | None:
    if number is None:
        return None
    if not 1 <= number <= len(trace.runs):
        raise click.BadParameter(
            f"there is no run {number}; the trace has runs 1 to {len(trace.runs)}",
            param_hint="--run",
        )
    return number - 1
