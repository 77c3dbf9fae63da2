"""Starting a run over shared memory."""

from __future__ import annotations

from typing import Any

from bsplib.backends.shm.processes import Processes
from bsplib.backends.signals import held_back
from bsplib.running.task import Task

MOST_PROCESSES = 256


def launch(
    task: Task,
    nprocs: int,
    start_method: str | None = None,
    wait_by: str = "auto",
    timeout: float | None = None,
) -> list[Any]:
    """Run a task in processes of its own; return what they return, by pid.

    Args:
        task: what to run.
        nprocs: 1 to 256.
        start_method: of multiprocessing; None for fork where this process has one
            thread, else forkserver.
        wait_by: how they wait for each other: ``auto``, ``spin`` or ``block``.
        timeout: seconds that the run may take; None for as long as it takes.

    Raises:
        RunTimeoutError: it took longer.
        BaseException: the error of the lowest (superstep, pid), in its own type.
    """
    with held_back():
        processes = Processes(nprocs, start_method, wait_by)
        try:
            return processes.run_once(task, timeout)
        except BaseException:
            processes.stop()
            raise
        finally:
            processes.close()
