"""What is recorded, where, and by which rank; known before MPI is."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, NamedTuple

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
