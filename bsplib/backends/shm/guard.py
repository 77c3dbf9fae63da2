"""Scripts that call ``run`` when they are imported: ``if __name__ == "__main__"`` is missing.

A process that is not forked imports the script of its caller before anything else. If the
script calls ``run`` outside the guard, each process would start a run of its own. Instead,
it exits with a special status, for which its caller raises an error that explains this.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

from bsplib.errors import UsageError

STATUS = 97
"""Exit status of a process that imports such a script."""
PREFIX = "bsp-"
"""Beginning of the names of processes of a run."""


def check_guard() -> None:
    """End this process, or raise, if it is importing the script of its caller.

    Raises:
        UsageError: it is, and was not started by bsplib.
    """
    process = multiprocessing.current_process()
    if not getattr(process, "_inheriting", False):
        return
    if process.name.startswith(PREFIX):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STATUS)
    raise missing_guard()


def missing_guard() -> UsageError:
    """Return the error for the caller of such a script."""
    return UsageError(
        "run: the script calls bsplib.run as it is imported, and each process that is not "
        'forked imports it; write the call below if __name__ == "__main__":'
    )
