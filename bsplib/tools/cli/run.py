"""``bsp run``: run a script, perhaps recorded."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import click

from bsplib.backends import table as backends
from bsplib.backends.hash_seed import begin_with, seed
from bsplib.backends.launching import Times
from bsplib.command_options import OutputFile
from bsplib.machine import load_machine
from bsplib.output_file import TRACE
from bsplib.recording.recording import is_begun
from bsplib.running.failures import answer_questions, show_error
from bsplib.running.options import check_timeout, choose, current, override, overriding
from bsplib.running.script import run_file
from bsplib.tools.cli.options import (
    Real,
    Whole,
    backend_option,
    complete_files,
    machine_option,
)
from bsplib.visible import as_command


def existing(context: click.Context, parameter: click.Parameter, script: str) -> str:
    """Check that a script exists; the name of a module stays as it is."""
    if not context.params.get("is_module"):
        click.Path(exists=True, dir_okay=False).convert(script, parameter, context)
        if TRACE.is_at(script):
            raise click.UsageError(
                f"{script} is a trace, not a script; show it by: "
                f"{as_command('bsp', 'view', script)}"
            )
    return script


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option(
    "-n",
    "--nprocs",
    type=Whole(1),
    envvar="BSP_NPROCS",
    show_envvar=True,
    metavar="N",
    help="Number of processes.  [default: what SCRIPT says, or the cores of this computer]",
)
@backend_option
@click.option(
    "--profile",
    type=OutputFile(TRACE),
    envvar="BSP_PROFILE",
    show_envvar=True,
    help="Record all runs of SCRIPT in this trace file.",
)
@click.option(
    "--no-lines",
    is_flag=True,
    envvar="BSP_NO_LINES",
    show_envvar=True,
    help="Do not let the trace have samples of the lines that processes execute.",
)
@machine_option
@click.option(
    "--check",
    is_flag=True,
    envvar="BSP_CHECK",
    show_envvar=True,
    help="Report what is legal but probably a mistake: transfers that overlap, arrays that change "
    "before the sync, messages that nobody reads.",
)
@click.option(
    "--mpiexec",
    envvar="BSP_MPIEXEC",
    show_envvar=True,
    metavar="COMMAND",
    help="Command that starts the processes of --backend mpi, such as 'srun --mpi=pmix'.",
)
@click.option(
    "--timeout",
    type=Real(0, min_open=True),
    metavar="SECONDS",
    envvar="BSP_TIMEOUT",
    show_envvar=True,
    help="End a run that takes longer, and say where its processes were.  [default: no limit]",
)
@click.option(
    "--debug",
    "debugged",
    type=Whole(0),
    metavar="PID",
    help="Let breakpoint() in process PID stop in this terminal; others pass theirs by.",
)
@click.option(
    "--speedup",
    is_flag=True,
    help="Run SCRIPT once more on one virtual processor, and print the speed-up T(1)/T(P).",
)
@click.option(
    "--repeat",
    type=Whole(1),
    default=1,
    metavar="N",
    help="Run SCRIPT N times into one trace, so that a report can say how sure its figures are.",
)
@click.option("--hash-seed", hidden=True, help="Seed of hash() of a text, the same in all ranks.")
@click.option(
    "-m",
    "--module",
    "is_module",
    is_flag=True,
    help="SCRIPT is the name of a module, such as bsplib.apps.broadcast, as for python -m.",
)
@click.argument("script", callback=existing, shell_complete=complete_files)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_files)
def command(  # noqa: PLR0913, PLR0917  # each is an option
    nprocs: int | None,
    backend: str | None,
    profile: Path | None,
    no_lines: bool,
    machine: str | None,
    check: bool,
    mpiexec: str | None,
    timeout: float | None,
    debugged: int | None,
    speedup: bool,
    repeat: int,
    hash_seed: str | None,
    is_module: bool,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    r"""Run a script on real processes, on virtual processors or on a cluster.

    SCRIPT is a Python file that calls bsplib.run; it gets ARGUMENTS. The options
    replace the arguments that the script gives to bsplib.run and bsplib.Pool; so do the
    environment variables named below, where an option is not given. Each line that a
    process prints begins with its pid. With --backend sim, the virtual time of
    the run and the total computation of all processes are printed at the end.

    While it runs, Ctrl-\ (SIGQUIT) prints where every process is: its superstep, its line of the
    program, and whether it waits or computes. The run goes on.

    \b
    Examples:
      bsp run -n 4 sort.py 1000000
      bsp run --profile sort.bsp sort.py
      bsp run --repeat 5 --profile sort.bsp sort.py
      bsp run --backend sim -n 512 --machine ibm-sp2-pvm sort.py
      bsp run --backend mpi -n 64 --mpiexec 'srun --mpi=pmix' sort.py
    """
    if hash_seed is not None:
        begin_with(hash_seed)
    calls: list[set[str]] = []
    chosen = None if machine is None else load_machine(machine)
    if backend is not None:
        choose(backend=backend, nprocs=nprocs, machine=chosen)
    limit = check_timeout(timeout)
    enter(backend, nprocs, "--hash-seed", seed(), command=mpiexec)
    override(
        nprocs=nprocs,
        backend=backend,
        profile=None if profile is None else str(profile.absolute()),
        machine=chosen,
        timeout=limit,
        check=check,
        lines=not no_lines,
        debugged=debugged,
        label=True,
        report_times=_print_times,
        called=calls.append,
    )
    answer_questions()
    sys.argv = [script, *arguments]
    file, once = ready_to_run(command, script, arguments, is_module=is_module)
    run = once if repeat == 1 else partial(_run_again, once, repeat)
    _run_script(file, run, speedup=speedup)
    if profile is not None and not backends.own_rank():
        _tell_of_trace(profile, script, has_run=bool(calls))


def _tell_of_trace(profile: Path, script: str, *, has_run: bool) -> None:
    """Say where the runs of a script are recorded, or why they are not."""
    if is_begun(profile):
        report, view = (as_command("bsp", name, profile) for name in ("report", "view"))
        _tell(f"recorded in {profile}: {report}, {view}")
    elif not has_run:
        _tell(f"{profile} was not written: {script} has called neither bsplib.run nor Pool.run")


def enter(backend: str | None, nprocs: int | None, *more: str, command: str | None = None) -> None:
    """Let a launcher execute this command in ranks, where it runs programs on MPI.

    Args:
        backend: that the command line names.
        nprocs: number of processes that it names.
        *more: further arguments for the ranks.
        command: starts ranks; None for the usual one.
    """
    words = click.get_current_context().command_path.split()[1:]
    arguments = [*words, *more, *sys.argv[1 + len(words) :]]
    backends.begin(backend, nprocs, arguments, command)


def put_first(folder: Path) -> None:
    """Let the script import the modules beside it, as python SCRIPT does.

    What a run needs is imported before: a file beside the script may have the name of a library by
    accident, such as ``logging.py``, and would be imported in its place.
    """
    import bsplib.running.launch  # noqa: F401, PLC0415  # most commands run no script

    backends.load()
    if sys.flags.safe_path:  # the first entry is no folder of bsp or of python -m
        sys.path.insert(0, str(folder))
    else:
        sys.path[0] = str(folder)


def ready_to_run(
    command: click.Command, script: str, arguments: Sequence[str], *, is_module: bool
) -> tuple[str, Callable[[], object]]:
    """Let a script import what is beside it, and name an option that it gets by mistake.

    Args:
        command: that runs it.
        script: the file, or the name of a module.
        arguments: what follows it on the command line.
        is_module: whether it is a module.

    Returns:
        Its file, and what runs it once.
    """
    put_first(Path.cwd() if is_module else Path(script).absolute().parent)
    file = _file_of(script) if is_module else script
    if (sentence := misplaced(command, file, arguments)) and not backends.own_rank():
        click.echo(sentence, err=True)
    if is_module:
        return file, partial(runpy.run_module, script, run_name="__main__", alter_sys=True)
    return file, partial(run_file, script)


def _file_of(module: str) -> str:
    """Return the file that ``python -m`` runs for a module."""
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{module}.__main__")
    except (ImportError, ValueError) as error:
        raise click.ClickException(
            f"{module!r} is no module that can be run: {error}; name it as in an import, without "
            f".py"
        ) from None
    if spec is None or spec.origin is None:
        raise click.ClickException(
            f"there is no module {module!r} that can be run; name it as in an import, without .py, "
            f"from the folder in which its package is"
        )
    return spec.origin


def _run_again(run: Callable[[], object], repeats: int) -> None:
    """Run a script ``repeats`` times; the runs of each repeat are marked in the trace."""
    for number in range(repeats):
        override(repeat=(number, repeats))
        run()


def _run_script(file: str, run: Callable[[], object], *, speedup: bool) -> None:
    """Run the program of a file.

    Args:
        file: with the frames of the program, for tracebacks.
        run: runs it.
        speedup: run it once more on one processor.
    """
    try:
        if speedup:
            run_with_speedup(run, _tell)
        else:
            run()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the script may raise any
        sys.exit(backends.end_by(error, partial(show_error, error, file)))
    except SystemExit as status:
        if status.code in (None, 0):
            backends.come_to_end()
        raise
    backends.come_to_end()


def _print_times(times: Times) -> None:
    _tell(str(times))


def _tell(text: str) -> None:
    """Print a line on the standard error, after all that the script has printed before."""
    sys.stdout.flush()
    click.echo(text, err=True)


# -- options that stand after the script, though they were probably meant for ``bsp run`` ---------


_PARSERS = ("argparse", "optparse", "getopt", "click", "docopt", "typer", "fire", "absl", "tyro")
"""Modules by which a script reads its options, and refuses those that it has not."""


def misplaced(command: click.Command, file: str, arguments: Sequence[str]) -> str:
    """Return a sentence about an option that the script gets and does not read; empty if none.

    A script that runs bsplib itself, imports no parser of options and does not contain the
    option as a text makes nothing of it.

    Args:
        command: the command, with the options that it takes before the script.
        file: file of the script.
        arguments: what follows the script.
    """
    options = {each for option in command.params for each in option.opts if each.startswith("-")}
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    words = [word.partition("=")[0] for word in own]
    found = next((at for at, word in enumerate(words) if word in options), None)
    if found is None:
        return ""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):  # whoever runs it says why
        return ""
    runs = "run(" in text or "Pool(" in text
    reads = any(f"{quote}{words[found]}" in text for quote in "\"'")
    if not runs or reads or any(parser in text for parser in _PARSERS):
        return ""
    name = Path(file).name
    return (
        f"{own[found]} stands after {name}, so {name} gets it and bsp {command.name} does not; "
        f"write it before: bsp {command.name} {own[found]} ... {name}"
    )


# -- the speedup of a script on virtual processors: T(1)/T(P), where both runs are done -----------
# The total computation of a parallel program is not the time of one processor: with one
# process a program sends nothing, sorts in one piece, and takes another path. So the
# script is run once more with nprocs = 1 on the same Machine.


_Say = Callable[[str], object]
_Run = Callable[[], object]


def run_with_speedup(run: _Run, say: _Say) -> None:
    """Run a script, then run it on one processor, and print the speedup of each of its runs.

    The second time nothing is recorded, and what the script prints is dropped; files
    that it writes are written again.

    Args:
        run: runs the script; ``sys.argv`` is set already.
        say: called with each line to be printed.

    Raises:
        BaseException: what the script raised the first time.
    """
    parallel: list[Times] = []
    status = _run(run, parallel)
    if status is not None and status.code not in (None, 0):
        raise status
    for line in _compared(run, parallel):
        say(line)
    if status is not None:
        raise status


def _run(run: _Run, times: list[Times]) -> SystemExit | None:
    """Run a script and keep its virtual times; return how it exited, if it did."""
    before = current().report_times

    def report(each: Times) -> None:
        times.append(each)
        if before is not None:
            before(each)

    try:
        with overriding(report_times=report):
            run()
    except SystemExit as status:
        return status
    return None


def _compared(run: _Run, parallel: Sequence[Times]) -> list[str]:
    """Return a line for each run of the script, or one that says why there is no speedup."""
    if not parallel:
        option = " or ".join(f"--backend {name}" for name in backends.virtual_names())
        return [f"no speedup: the script ran nothing on virtual processors; use {option}"]
    alone: list[Times] = []
    if (reason := _run_alone(run, alone)) is not None:
        return [f"no speedup: with nprocs = 1 the script {reason}"]
    if len(alone) != len(parallel):
        return [
            f"no speedup: with nprocs = 1 the script made {len(alone)} runs on virtual processors "
            f"instead of {len(parallel)}"
        ]
    return [_line(*pair) for pair in zip(alone, parallel, strict=True)]


def _run_alone(run: _Run, times: list[Times]) -> str | None:
    """Run a script with one process; return why it did not end well, or None."""
    silent = overriding(nprocs=1, profile=None, records=False, report_times=None, label=False)
    try:
        with silent, redirect_stdout(StringIO()):
            status = _run(run, times)
    except Exception as error:  # noqa: BLE001  # any error means only that there is no speedup
        return f"ended by {type(error).__name__}: {error}"
    if status is not None and status.code not in (None, 0):
        return f"exited with status {status.code!r}"
    return None


def _line(alone: Times, parallel: Times) -> str:
    if not parallel.parallel_s:
        return "no speedup: the run took no virtual time"
    ratio = alone.parallel_s / parallel.parallel_s
    return (
        f"speedup: T(1) {alone.parallel_s:.4g} s / T(P) {parallel.parallel_s:.4g} s = {ratio:.3g}"
    )
