"""Runs a program as ``python prog.py`` and ``python -m module`` do; says what is recorded of it.

The program has a fresh ``__main__``, its own ``sys.argv`` and ``sys.path[0]``, and its errors show
its own frames only. Nothing of how it ends is changed: an exception, ``sys.exit`` and Ctrl-C leave
this module as they leave the program.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any, NamedTuple


def run_program(program: str, arguments: list[str], *, is_module: bool) -> None:
    """Run a script, a folder or archive with a ``__main__``, or a module.

    Raises:
        BaseException: what the program raises.
    """
    main = ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    sys.argv[:] = [program, *arguments]
    try:
        if is_module:
            sys.path[0] = os.getcwd()
            runpy._run_module_as_main(program)  # type: ignore[attr-defined]  # as python -m
        elif os.path.isfile(program) and not program.endswith((".zip", ".pyz", ".pyc")):
            if not sys.flags.safe_path:
                sys.path[0] = os.path.dirname(os.path.realpath(program))
            _run_script(program, main)
        else:
            runpy.run_path(program, run_name="__main__")
    except BaseException:
        _show_only_the_program()
        raise


def _run_script(program: str, main: ModuleType) -> None:
    path = os.path.abspath(program)
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__spec__ = None
    main.__cached__ = None  # type: ignore[attr-defined]
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _show_only_the_program() -> None:
    """Let the report of an exception begin with the frames of the program."""
    hook = sys.excepthook
    own = {__file__, runpy.__file__, "<frozen runpy>"}

    def shown(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        sys.excepthook = hook
        first = trace
        while first is not None and first.tb_frame.f_code.co_filename != __file__:
            first = first.tb_next
        while first is not None and first.tb_frame.f_code.co_filename in own:
            first = first.tb_next
        value.__traceback__ = first or trace
        hook(kind, value, value.__traceback__)

    sys.excepthook = shown


# -- what is recorded, where, and by which rank; known before MPI is ------------------------------


PATIENCE_MS = 10_000
"""How long rank 0 waits at the end for the files of the others."""

_JOBS = ("PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID")
"""Variables of the environment that are the same for all ranks of a job, and differ by job."""
RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")

OF_BSPLIB = "a program that uses bsplib is recorded by `bsp run --profile FILE`"
NO_CALL = f"nothing was recorded, since the program did not call MPI; {OF_BSPLIB}"


def say(sentence: str) -> None:
    """Print a sentence on the standard error."""
    print(f"bsp record: {sentence}", file=sys.stderr, flush=True)


def rank_of_environment() -> int:
    """Return the rank that the launcher has told; 0 if it has told none."""
    return next((int(os.environ[name]) for name in RANKS if os.environ.get(name, "").isdigit()), 0)


class RecordedProgram(NamedTuple):
    """What is recorded, and where."""

    folder: str
    """Folder of the files of the ranks."""
    program: str
    arguments: list[str]
    join: list[str] | None
    """Command that joins the files; None: there is none."""
    by_hand: str
    """The command with which a user joins the files."""
    recorded: str
    """What is printed when the trace has been made."""
    begin: int
    """When the program begins, in nanoseconds of the system's monotonic clock."""

    def header(self, mpi: str) -> dict[str, Any]:
        """Return what is known before MPI is."""
        return {
            "run": " ".join(os.environ[name] for name in _JOBS if name in os.environ),
            "mpi": mpi,
            "started": time.time(),
            "program": self.program,
            "arguments": self.arguments,
            "python": sys.version.split()[0],
            "mpi4py": sys.modules["mpi4py"].__version__,
        }
