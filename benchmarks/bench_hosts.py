"""Applications on MPI across four hosts, each of which moves more than 100 MB between them.

``python -m benchmarks.bench_hosts`` writes ``benchmarks/results/hosts.json``. The hosts are on
this computer (:mod:`tests.hosts`), share its cores, and are joined by links of 1 Gbit/s with a
delay of 1 ms. The seconds are those of the program, from the beginning of ``main`` on all
processes to its end, without their start. With each case stands in ``facts`` how many bytes it
moved between hosts, and whether each of its runs returned what it returns over shared memory,
and was recorded with the same h as in the simulator at every function and cost centre.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command import Benchmark, run
from benchmarks.harness import Case, Section
from bsplib.profiler.survey import elapsed_s
from tests.hosts import applications
from tests.hosts.applications import APPLICATIONS, HOSTS, Outcome
from tests.hosts.hosts import Hosts, why_not
from tests.mpi_installations import ALL

SIZE = "large"
RATE = 1e9
DELAY_S = 1e-3
REPEATS = 3


class Runs:
    """The runs of an application in one way.

    Args:
        start: runs it and records it in a file.
        trace: the file.
        expected: digests of the right results; and the h that it should have.
    """

    def __init__(
        self, start: Callable[[Path], Outcome], trace: Path, expected: Outcome, virtual: Path
    ) -> None:
        self._start = start
        self._trace = trace
        self._expected = expected
        self._virtual = applications.centres(applications.read(virtual))
        self._facts: dict[str, Any] = {"results_of_shm": True, "h_of_sim": True}

    def sample(self) -> float:
        """Run it; return the seconds of the program."""
        self._trace.unlink(missing_ok=True)
        outcome = self._start(self._trace)
        done = applications.read(self._trace)
        self._facts["results_of_shm"] &= outcome.results == self._expected.results
        self._facts["h_of_sim"] &= applications.centres(done) == self._virtual
        self._facts["cost_centres"] = applications.cost_centres(done)
        if "hosts" in done.meta:
            self._facts["bytes_between_hosts"] = applications.bytes_between_hosts(done)
        return elapsed_s(done)

    def facts(self) -> dict[str, Any]:
        """Return what is known of all runs."""
        return self._facts


def ways(name: str, stack: ExitStack) -> Sequence[Case]:
    """Run an application over shared memory, and on each MPI across hosts."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    here = partial(applications.run, name, SIZE)
    expected = here("shm", folder / "expected.bsp")
    here("sim", virtual := folder / "sim.bsp")
    hosts = stack.enter_context(Hosts(HOSTS, RATE, DELAY_S))
    starts: dict[str, Callable[[Path], Outcome]] = {"shm, one host": partial(here, "shm")}
    for mpi in filter(lambda mpi: mpi.is_here(), ALL):
        across = partial(applications.run_across, hosts, mpi, name, SIZE)
        starts[f"{mpi.name}, {HOSTS} hosts"] = across
    cases = []
    for number, (title, start) in enumerate(starts.items()):
        runs = Runs(start, folder / f"{number}.bsp", expected, virtual)
        cases.append(Case(title, runs.sample, facts=runs.facts))
    return cases


SECTIONS = tuple(
    Section(
        f"{one.title}, p = {one.nprocs}, across {HOSTS} hosts at 1 ms and 1 Gbit/s",
        "run",
        partial(ways, name),
        repeats=REPEATS,
        warm_up=0,
    )
    for name, one in APPLICATIONS.items()
)

BENCHMARK = Benchmark("hosts", SECTIONS)

if __name__ == "__main__":
    if reason := why_not():
        raise SystemExit(reason)
    run([BENCHMARK])
