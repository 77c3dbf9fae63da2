"""Starting a run over shared memory."""

from __future__ import annotations

from typing import Any

from bsplib.backends.shm.processes import Processes
from bsplib.backends.shm.signals import held_back
from bsplib.body import Task

MOST_PROCESSES = 256


def launch(
    task: Task, nprocs: int, start_method: str | None = None, wait_by: str = "auto"
) -> list[Any]:
    """Run a task in processes of its own; return what they return, by pid.

    Args:
        task: what to run.
        nprocs: 1 to 256.
        start_method: of multiprocessing; None for fork where this process has one
            thread, else forkserver.
        wait_by: how they wait for each other: ``auto``, ``spin`` or ``block``.

    Raises:
        BaseException: the error of the lowest (superstep, pid), in its own type.
    """
    with held_back():
        processes = Processes(nprocs, start_method, wait_by)
        try:
            return processes.run_once(task)
        except BaseException:
            processes.stop()
            raise
        finally:
            processes.close()
