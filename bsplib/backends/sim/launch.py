"""Starting a run on virtual processors."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import cloudpickle

from bsplib.backends.base import Stopped
from bsplib.backends.sim.alarm import alarm
from bsplib.backends.sim.interruption import Interruption
from bsplib.backends.sim.port import SimPort
from bsplib.backends.sim.world import Process, World
from bsplib.running.failures import halt_of, raise_first, unpicklable_result
from bsplib.running.labels import whole_lines
from bsplib.running.task import Task, describe_failure, run_task

MOST_PROCESSES = 4096


class Times(NamedTuple):
    """What a run would take, in seconds, on processors that are not there.

    Source: Chittor 1995, section 5.1: what the simulator Multi reports.
    """

    parallel_s: float
    """Of the run: T(p)."""
    computation_s: float
    """All that the processes computed, added up. A program for one process may need more
    or less than that."""

    def __str__(self) -> str:
        return (
            f"virtual time: parallel {self.parallel_s:.4g} s, total computation "
            f"{self.computation_s:.4g} s"
        )


def launch(
    task: Task, nprocs: int, seed: int, scale: float = 1.0, timeout: float | None = None
) -> tuple[list[Any], Times]:
    """Run a task on ``nprocs`` virtual processors.

    Args:
        task: what to run; its arguments are copied for each process, its Machine
            prices communication.
        nprocs: 1 to 4096.
        seed: of the order in which the processes run.
        scale: virtual seconds for each second of CPU time that a process computes here.
        timeout: real seconds that the run may take; None for as long as it takes.

    Returns:
        Results by pid, and the virtual times.

    Raises:
        RunTimeoutError: the run took longer than ``timeout``.
        BaseException: the error of the lowest (superstep, pid), in its own type.
    """
    world = World(task.machine, seed, scale)
    outcomes: dict[int, Any] = {}  # pid -> (result,) or Failure or Halt
    interruption = Interruption(world)
    arguments = cloudpickle.dumps((task.args, task.kwargs))

    def body(process: Process) -> None:
        try:
            outcomes[process.pid] = (_run(task, arguments, world, process, nprocs),)
        except Stopped as stopped:
            outcomes[process.pid] = halt_of(stopped)
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is the run's
            interruption.note(error)
            outcomes[process.pid] = describe_failure(error, process.pid)
            world.failed = True

    for _ in range(nprocs):
        world.add(body)
    lines = whole_lines(lambda: world.current.pid if world.current else None, label=task.label)
    with _collector_uncounted(world), lines, alarm(timeout):
        interruption.run_to_the_end()
    interruption.raise_it(timeout)
    raise_first(outcomes)
    return [outcomes[pid][0] for pid in range(nprocs)], _times(world)


@contextmanager
def _collector_uncounted(world: World) -> Iterator[None]:
    """Stop the clock of a process while Python collects garbage, that of all processes."""

    def collect(phase: str, _: dict[str, int]) -> None:
        if world.current is not None:
            clock = world.current.clock
            (clock.pause if phase == "start" else clock.resume)()

    gc.callbacks.append(collect)
    try:
        yield
    finally:
        gc.callbacks.remove(collect)


def _run(task: Task, arguments: bytes, world: World, process: Process, nprocs: int) -> Any:
    args, kwargs = pickle.loads(arguments)  # made above
    own = replace(task, args=args, kwargs=kwargs)
    port = SimPort(world, process, process.pid, range(nprocs))
    process.superstep = port.superstep
    result = run_task(own, port)
    try:
        return pickle.loads(pickle.dumps(result, 5))
    except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        raise unpicklable_result(process.pid, reason) from None


def _times(world: World) -> Times:
    clocks = [process.clock for process in world.processes]
    return Times(
        max(clock.now() for clock in clocks) * 1e-9,
        sum(clock.computed_ns() for clock in clocks) * 1e-9,
    )
