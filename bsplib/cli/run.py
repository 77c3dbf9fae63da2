"""``bsp run``: run a script, perhaps recorded."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import click

from bsplib.backends import table as backends
from bsplib.backends.launching import Times
from bsplib.cli.options import TRACE, backend_option, machine_option
from bsplib.errors import BspError
from bsplib.machine import load_machine
from bsplib.recording.output_file import obstacle
from bsplib.recording.recording import is_begun
from bsplib.running import launch
from bsplib.running.failures import show_error
from bsplib.running.setting import check_timeout, choose
from bsplib.running.speedup import run_with_speedup
from bsplib.sentences import as_sentence


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("-n", "--nprocs", type=click.IntRange(1), help="Number of processes.")
@backend_option
@click.option("--profile", type=TRACE, help="Record the run in this trace file.")
@machine_option
@click.option(
    "--check",
    is_flag=True,
    help="Report transfers that overlap and arrays that change before the sync.",
)
@click.option(
    "--mpiexec",
    envvar="BSP_MPIEXEC",
    metavar="COMMAND",
    help="Command that starts the processes of --backend mpi, such as 'srun --mpi=pmix'.",
)
@click.option("--timeout", type=float, metavar="SECONDS", help="End a run that takes longer.")
@click.option(
    "--speedup",
    is_flag=True,
    help="Run SCRIPT once more on one virtual processor, and print the speed-up T(1)/T(P).",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(  # noqa: PLR0913, PLR0917  # each is an option
    nprocs: int | None,
    backend: str | None,
    profile: Path | None,
    machine: str | None,
    check: bool,
    mpiexec: str | None,
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
    _enter(backend, mpiexec)
    _run_script(script, speedup=speedup)
    if profile is not None and is_begun(profile):
        click.echo(f"recorded in {profile}: bsp report {profile}, bsp view {profile}", err=True)


def _enter(backend: str | None, mpiexec: str | None) -> None:
    """Start ranks by a command, or be one of those that another command has started."""
    if mpiexec:
        os.environ["BSP_MPIEXEC"] = mpiexec
    try:
        sentence = backends.enter(backend)
    except BspError as error:
        raise as_sentence(error) from None
    if sentence:
        click.echo(sentence, err=True)


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
