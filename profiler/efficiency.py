"""The efficiencies of the POP Centre of Excellence, computed from the accounts of runs.

With U_i the useful computation of process i of p, T the elapsed time, and T_0 how long the
supersteps take with their useful computation only:

- parallel efficiency: sum U_i / (p T) = load balance x communication efficiency;
- load balance: mean U_i / max U_i;
- communication efficiency: max U_i / T = serialisation x transfer;
- serialisation: max U_i / T_0;
- transfer: T_0 / T.

Of two runs of a program that do the same work in all, with U and U_r the useful computation of
all their processes, where the reference is the run with the fewest processes:

- computation scaling: U_r / U. It is below 1 where more processes compute more in all, since they
  repeat work or share caches and memory, and above 1 where the parts fit better into caches. The
  product with parallel efficiency is the global efficiency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler import format as fmt
from bsplib.profiler.account import USEFUL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.profiler.book import Book
    from bsplib.profiler.profile import RunProfile


class Efficiencies(NamedTuple):
    """Fractions from 0 to 1."""

    parallel: float
    load_balance: float
    communication: float
    serialisation: float
    transfer: float


def efficiencies(book: Book, alone_ns: int) -> Efficiencies:
    """Return the efficiencies of a run; all are 1 where nothing was computed.

    Args:
        book: the book of the run.
        alone_ns: how long the supersteps take with their useful computation only.
    """
    useful = book.by_process()[USEFUL]
    most, elapsed = int(useful.max(initial=0)), book.elapsed_ns
    if most == 0 or elapsed == 0:
        return Efficiencies(1.0, 1.0, 1.0, 1.0, 1.0)
    ideal = max(alone_ns, most)
    return Efficiencies(
        float(useful.mean()) / elapsed,
        float(useful.mean()) / most,
        most / elapsed,
        most / ideal,
        ideal / elapsed,
    )


class ComputationScaling(NamedTuple):
    """The useful computation of all processes of a run, and of its reference."""

    useful_s: float
    nprocs: int
    reference_s: float
    reference_nprocs: int

    @property
    def fraction(self) -> float:
        """Computation scaling."""
        return self.reference_s / self.useful_s

    def __str__(self) -> str:
        return (
            f"computation scaling {self.fraction:.0%}, if both do the same work: "
            f"{fmt.seconds(self.reference_s)} of useful computation in all on "
            f"{fmt.processes(self.reference_nprocs)}, {fmt.seconds(self.useful_s)} on {self.nprocs}"
        )


def computation_scaling(one: Book, other: Book) -> ComputationScaling | None:
    """Return the computation scaling of two runs of a program, in any order.

    Returns:
        None where the runs have equally many processes, or one of them computed nothing.
    """
    fewer, more = sorted((one, other), key=lambda book: book.run.nprocs)
    nprocs = fewer.run.nprocs, more.run.nprocs
    useful_s = [book.whole()["useful"] / 1e9 for book in (fewer, more)]
    if nprocs[0] == nprocs[1] or not all(useful_s):
        return None
    return ComputationScaling(useful_s[1], nprocs[1], useful_s[0], nprocs[0])


def scaling_among(run: RunProfile, runs: Iterable[RunProfile]) -> ComputationScaling | None:
    """Return the computation scaling of a run of a program among others of the same program.

    Args:
        run: the run.
        runs: runs of a trace, of any programs.

    Returns:
        None where the run itself has the fewest processes, or none of them computed anything.
    """
    alike = [each for each in runs if each.callgraph.root == run.callgraph.root]
    reference = min(alike, key=lambda each: each.nprocs, default=run)
    if reference.nprocs >= run.nprocs:
        return None
    return computation_scaling(reference.book().book, run.book().book)
