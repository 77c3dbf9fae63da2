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
from typing import TYPE_CHECKING, Any

import click

from bsplib.backends import table as backends
from bsplib.backends.hash_seed import begin_with, seed
from bsplib.command_options import OutputFile
from bsplib.output_file import TRACE
from bsplib.recording.recording import is_begun
from bsplib.running.failures import answer_questions, show_error
from bsplib.running.options import choose, override, overriding
from bsplib.running.script import run_file
from bsplib.tools.cli.options import (
    Whole,
    backend_option,
    machine_option,
    nprocs_option,
    option,
    script_parameters,
    timeout_option,
)
from bsplib.visible import as_command

if TYPE_CHECKING:
    from bsplib.backends.launching import Times


@click.command("run", context_settings={"allow_interspersed_args": False})
@nprocs_option
@backend_option
@option(
    "--profile",
    type=OutputFile(TRACE),
    envvar="BSP_PROFILE",
    help="Record all runs of SCRIPT in this trace file.",
)
@option(
    "--no-lines",
    is_flag=True,
    envvar="BSP_NO_LINES",
    help="Do not let the trace have samples of the lines that processes execute.",
)
@machine_option
@option(
    "--check",
    is_flag=True,
    envvar="BSP_CHECK",
    help="Report what is legal but probably a mistake: transfers that overlap, arrays that change "
    "before the sync, messages that nobody reads.",
)
@option(
    "--mpiexec",
    envvar="BSP_MPIEXEC",
    metavar="COMMAND",
    help="Command that starts the processes of --backend mpi, such as 'srun --mpi=pmix'.",
)
@timeout_option
@option(
    "--debug",
    "debugged",
    type=Whole(0),
    metavar="PID",
    help="Let breakpoint() in process PID stop in this terminal; others pass theirs by.",
)
@option(
    "--speedup",
    is_flag=True,
    help="Run SCRIPT once more on one virtual processor, and print the speed-up T(1)/T(P).",
)
@option(
    "--repeat",
    type=Whole(1),
    default=1,
    help="Run SCRIPT N times into one trace, so that a report can say how sure its figures are.",
)
@option("--hash-seed", hidden=True, help="Seed of hash() of a text, the same in all ranks.")
@script_parameters
def command(  # noqa: PLR0913  # each is an option
    script: str,
    arguments: tuple[str, ...],
    *,
    profile: Path | None,
    no_lines: bool,
    mpiexec: str | None,
    speedup: bool,
    repeat: int,
    hash_seed: str | None,
    is_module: bool,
    **given: Any,
) -> None:
    """Run a script on real processes, on virtual processors or on a cluster.

    SCRIPT is a Python file that calls bsplib.run; it gets ARGUMENTS. The options
    replace the arguments that the script gives to bsplib.run and bsplib.Pool; so do the
    environment variables named below, where an option is not given. Each line that a
    process prints begins with its pid. With --backend sim, the virtual time of
    the run and the total computation of all processes are printed at the end.

    While it runs, Ctrl-\\ (SIGQUIT) prints where every process is: its superstep, its line of the
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
    backend, nprocs = given["backend"], given["nprocs"]
    if backend is not None:
        choose(backend=backend, nprocs=nprocs, machine=given["machine"])
    enter(backend, nprocs, "--hash-seed", seed(), command=mpiexec)
    override(
        profile=None if profile is None else str(profile.absolute()),
        lines=not no_lines,
        label=True,
        report_times=_print_times,
        called=calls.append,
        **given,
    )
    answer_questions()
    sys.argv = [script, *arguments]
    file, once = ready_to_run(script, arguments, is_module=is_module)
    run = once if repeat == 1 else partial(_run_again, once, repeat)
    _run_script(file, partial(_run_with_speedup, run) if speedup else run)
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
    script: str, arguments: Sequence[str], *, is_module: bool
) -> tuple[str, Callable[[], object]]:
    """Let a script import what is beside it, and name an option that it gets by mistake.

    Args:
        script: the file, or the name of a module.
        arguments: what follows it on the command line.
        is_module: whether it is a module.

    Returns:
        Its file, and what runs it once.
    """
    put_first(Path.cwd() if is_module else Path(script).absolute().parent)
    file = _file_of(script) if is_module else script
    if (sentence := _misplaced(file, arguments)) and not backends.own_rank():
        click.echo(sentence, err=True)
    if is_module:
        return file, partial(runpy.run_module, script, run_name="__main__", alter_sys=True)
    return file, partial(run_file, script)


def _file_of(module: str) -> str:
    """Return the file that ``python -m`` runs for a module."""
    reason: object = "there is none of this name"
    spec = None
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            reason = "it is a package without a __main__.py"
            spec = importlib.util.find_spec(f"{module}.__main__")
    except (ImportError, ValueError) as error:
        reason = error
    if spec is None or spec.origin is None:
        raise click.ClickException(
            f"{module!r} is no module that can be run: {reason}; name it as in an import, without "
            f".py, from the folder in which its package is"
        )
    return spec.origin


def _run_again(run: Callable[[], object], repeats: int) -> None:
    """Run a script ``repeats`` times; the runs of each repeat are marked in the trace."""
    for number in range(repeats):
        override(repeat=(number, repeats))
        run()


def run_to_end(run: Callable[[], object]) -> None:
    """Run a script; to exit with status 0 is no other end than its last line.

    Raises:
        SystemExit: it exited with another status.
        BaseException: it raised that.
    """
    try:
        run()
    except SystemExit as status:
        if status.code not in (None, 0):
            raise


def _run_script(file: str, run: Callable[[], object]) -> None:
    """Run the program of a file, which has the frames of the program for tracebacks."""
    try:
        run_to_end(run)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the script may raise any
        sys.exit(backends.end_by(error, partial(show_error, error, file)))
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


def _misplaced(file: str, arguments: Sequence[str]) -> str:
    """Return a sentence about an option that the script gets and does not read; empty if none.

    A script that runs bsplib itself, imports no parser of options and does not contain the
    option as a text makes nothing of it.

    Args:
        file: file of the script.
        arguments: what follows the script.
    """
    command = click.get_current_context().command
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


def _run_with_speedup(run: Callable[[], object]) -> None:
    """Run a script, then run it on one processor, and print the speedup of each of its runs.

    The total computation of a parallel program is not the time of one processor: with one process
    a program sends nothing, sorts in one piece, and takes another path. The second time nothing is
    recorded, and what the script prints is dropped; files that it writes are written again.
    """
    parallel: list[Times] = []
    alone: list[Times] = []

    def report(times: Times) -> None:
        parallel.append(times)
        _print_times(times)

    with overriding(report_times=report):
        run_to_end(run)
    if not parallel:
        option = " or ".join(f"--backend {name}" for name in backends.virtual_names())
        _tell(f"no speedup: the script ran nothing on virtual processors; use {option}")
        return
    silent = overriding(
        nprocs=1, profile=None, records=False, report_times=alone.append, label=False
    )
    try:
        with silent, redirect_stdout(StringIO()):
            run_to_end(run)
        ended = f"made {len(alone)} runs on virtual processors instead of {len(parallel)}"
        reason = ended if len(alone) != len(parallel) else ""
    except SystemExit as status:
        reason = f"exited with status {status.code!r}"
    except Exception as error:  # noqa: BLE001  # any error means only that there is no speedup
        reason = f"ended by {type(error).__name__}: {error}"
    if reason:
        _tell(f"no speedup: with nprocs = 1 the script {reason}")
        return
    for one, many in zip(alone, parallel, strict=True):
        _tell(_speedup(one.parallel_s, many.parallel_s))


def _speedup(alone_s: float, parallel_s: float) -> str:
    if not parallel_s:
        return "no speedup: the run took no virtual time"
    return f"speedup: T(1) {alone_s:.4g} s / T(P) {parallel_s:.4g} s = {alone_s / parallel_s:.3g}"
