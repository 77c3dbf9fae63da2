"""Starting a run on virtual processors."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from bsplib.backends import sigquit
from bsplib.backends.launching import Ended, NothingKept, Options, Report, Times, Work
from bsplib.backends.sim.interruption import Interruption, alarm
from bsplib.backends.sim.port import SimPort
from bsplib.backends.sim.world import Process, World


def launch(work: Work, options: Options) -> Report:
    """Do some work on virtual processors; see :attr:`Backend.launch`."""
    assert options.prices is not None  # given to every backend whose time is virtual
    world = World(options.prices, options.seed, options.scale)
    inside = work.inside()
    outcomes: dict[int, Ended] = {}
    interruption = Interruption(world)

    def body(process: Process) -> None:
        def open_port() -> SimPort:
            port = SimPort(world, process, process.pid, range(options.nprocs))
            process.superstep = port.superstep
            return port

        try:
            outcome = inside.run(process.pid, open_port)
        except BaseException as error:  # noqa: BLE001  # the caller of run raises it
            interruption.note(error)
            outcome = inside.describe(error, process.pid)
        outcomes[process.pid] = outcome
        if outcome.failed:
            world.fail()

    for _ in range(options.nprocs):
        world.add(body)
    lines = inside.whole_lines(lambda: world.current.pid if world.current else None)
    answers = sigquit.answered_at_once(interruption.now)
    with _collector_uncounted(world), lines, alarm(options.timeout), answers:
        interruption.run_to_the_end()
    interruption.raise_it()
    return Report(outcomes, _times(world))


def keep(options: Options) -> NothingKept:
    """Make virtual processors for several runs, each in microseconds; see :attr:`Backend.keep`."""
    return NothingKept(lambda work, timeout: launch(work, options._replace(timeout=timeout)))


@contextmanager
def _collector_uncounted(world: World) -> Iterator[None]:
    """Stop the clock of a process during garbage collection, which serves all processes."""

    def collect(phase: str, _: dict[str, int]) -> None:
        if world.current is not None:
            clock = world.current.clock
            (clock.pause if phase == "start" else clock.resume)()

    gc.callbacks.append(collect)
    try:
        yield
    finally:
        gc.callbacks.remove(collect)


def _times(world: World) -> Times:
    return Times(
        max(process.ended_ns for process in world.processes) * 1e-9,
        sum(process.clock.computed_ns() for process in world.processes) * 1e-9,
    )
