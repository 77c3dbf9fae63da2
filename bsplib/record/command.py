"""The command line of ``bsp record``."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import time
from pathlib import Path
from typing import NoReturn

from bsplib.output_file import TRACE, obstacle
from bsplib.record.libraries import NoShimError
from bsplib.record.program import RecordedProgram, rank_of_environment, run_program, say
from bsplib.record.recorder import ShimRecorder

ABOUT = """\
Run a program that uses mpi4py, and record it as supersteps in a trace.

OUT is the trace to write. What follows it is the command of the program as after
"python": a script and its arguments, or -m, a module and its arguments. The program
is not changed, and computes the same as without the recorder. Its supersteps end at its
collective calls.

Each rank writes a file in the folder OUT.ranks while it runs. At the end rank 0 makes the
trace from these files and removes the folder. If ranks are killed, the folder remains, with
all that was recorded until then.

The recorder sees all calls of MPI of a rank, also those of libraries in C, such as
h5py. A wheel has it for MPICH and Open MPI; otherwise it is compiled when an MPI is
used for the first time, which needs a C compiler.
"""
EXAMPLES = """\
Examples, each after "mpiexec -n 4":
  bsp record jacobi.bsp jacobi.py 1000
  bsp record jacobi.bsp -m package.jacobi 1000
"""

JOIN = "bsplib.record.join"
"""Module that makes a trace of the files of the ranks."""


def main(arguments: list[str]) -> None:
    """Run a program and record it.

    Args:
        arguments: the words of the command line, without the name of the command: OUT and what
            follows it.

    Raises:
        SystemExit: a mistake in the arguments, or the end of the program.
    """
    out, is_module, program, rest = _understood(arguments)
    if reason := obstacle(out, TRACE):
        _refuse(reason)
    recorder = _recorder(out, program, rest)
    try:
        run_program(program, rest, is_module=is_module)
    except BaseException as error:
        recorder.error = _sentence_of(error)
        raise


def _understood(arguments: list[str]) -> tuple[Path, bool, str, list[str]]:
    """Return the trace, whether the program is a module, the program and its arguments."""
    out, rest = Path(arguments[0]), arguments[1:]
    is_module = rest[:1] == ["-m"]
    rest = rest[is_module:]
    if not rest:
        _refuse("name the module after -m: bsp record OUT -m MODULE [ARGUMENTS]...")
    program = rest[0]
    if not is_module and not os.path.exists(program):
        _refuse(f"there is no program {program}; a module is named by -m")
    return out, is_module, program, rest[1:]


def _refuse(reason: str) -> NoReturn:
    """End with a sentence, which only one rank prints."""
    if rank_of_environment() == 0:
        say(reason)
    raise SystemExit(2)


def _recorder(out: Path, program: str, arguments: list[str]) -> ShimRecorder:
    """Prepare recording."""
    folder = f"{out.absolute()}.ranks"
    command = [folder, str(out.absolute())]
    there = importlib.util.find_spec(JOIN) is not None
    job = RecordedProgram(
        folder=folder,
        program=program,
        arguments=arguments,
        join=[sys.executable, "-m", JOIN, *command] if there else None,
        by_hand=shlex.join(["bsp", "recover", f"{out}.ranks"]),
        recorded=f"recorded in {out}: {shlex.join(['bsp', 'report', str(out)])}",
        begin=time.monotonic_ns(),
    )
    try:
        return ShimRecorder(job)
    except NoShimError as error:
        _refuse(f"the program was not started, since {error}")


def _sentence_of(error: BaseException) -> str:
    """Return what the traceback of an exception says of it; empty for ``sys.exit``."""
    from traceback import TracebackException  # noqa: PLC0415  # only needed after an exception

    if isinstance(error, SystemExit):
        return ""
    *_, said = TracebackException.from_exception(error).format_exception_only()
    return said.strip().partition("\n")[0]
