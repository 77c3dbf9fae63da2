"""Runs on the ranks that a launcher has started, and the command that starts them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from bsplib.backends import hash_seed
from bsplib.backends.blas import set_by_user
from bsplib.backends.launching import KeptProcesses, NothingKept, Options, Report, Work
from bsplib.backends.mpi import ranks
from bsplib.backends.mpi.installations import chosen
from bsplib.errors import StartError
from bsplib.visible import as_command


def launch(work: Work, options: Options) -> Report:
    """Do some work in the first ranks; see :attr:`Backend.launch`."""
    return _leading(options.nprocs).launch(work, options)


def keep(options: Options) -> KeptProcesses:
    """Return what runs work in the first ranks; see :attr:`Backend.keep`."""
    leading = _leading(options.nprocs)
    return NothingKept(
        lambda work, timeout: leading.launch(work, options._replace(timeout=timeout))
    )


def _leading(nprocs: int) -> ranks.AllRanks:
    """Return the ranks that this process leads.

    Raises:
        StartError: no launcher has started it.
    """
    if ranks.current is None:
        file = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c") else "prog.py"
        line = as_command("bsp", "run", "--backend", "mpi", "-n", str(nprocs), file, *sys.argv[1:])
        raise StartError(
            f"run: a launcher of MPI has to start this program for the backend mpi; type: {line}"
        )
    return ranks.current


def execute(nprocs: int, arguments: Sequence[str], command: str | None) -> NoReturn:
    """Replace this process by a launcher, whose ranks are the same command ``bsp``.

    Args:
        nprocs: number of ranks.
        arguments: of the command ``bsp``.
        command: starts ranks; None for that of the environment, or one that is found here.

    Raises:
        StartError: there is no launcher here.
    """
    starter = chosen(nprocs, command)
    threads = {} if set_by_user() else {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = os.environ | threads | _python_path() | dict(starter.variables)
    environment[hash_seed.VARIABLE] = hash_seed.seed()
    line = [*starter.command, "-n", str(nprocs), sys.executable, "-m", "bsplib", *arguments]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    try:
        os.execvpe(line[0], line, environment)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        text = shlex.join(starter.command)
        raise StartError(f"run: {text} cannot be started: {reason}") from None


def _python_path() -> dict[str, str]:
    """Return the environment in which ranks find bsplib where it is not installed."""
    folder = Path(__file__).parents[3]
    if folder.name in ("site-packages", "dist-packages"):
        return {}
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *([before] if before else [])])}
