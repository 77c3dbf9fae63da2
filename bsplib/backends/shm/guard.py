"""Scripts that call run as they are imported: ``if __name__ == "__main__"`` is missing.

A process that is not forked imports the script of its caller before anything else. If the
script calls ``run`` outside the guard, each process would start a run of its own. It ends
with a status instead by which its caller knows what to say.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

from bsplib.errors import UsageError

STATUS = 97
"""How a process ends that finds itself importing such a script."""
PREFIX = "bsp-"
"""Names of processes of a run begin so."""


def check_guard() -> None:
    """End this process, or raise, if it imports the script of its caller just now.

    Raises:
        UsageError: it does, and its caller is another program than bsplib.
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
