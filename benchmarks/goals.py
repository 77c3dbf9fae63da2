"""The goals: who cares for a figure, and how great it may be.

A figure is a ratio to another case of the same section, a difference from it, seconds, or bytes of
memory. For ratios and differences the median over the turns counts: in each turn both cases were
measured, one after the other. What predictions and verdicts are to reach stands beside them, in
:mod:`benchmarks.cases.predictions` and :mod:`benchmarks.cases.verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

TIMES, MORE, SECONDS, BYTES = "times", "more_s", "seconds", "peak_bytes"
"""Kinds of figures."""


class Goal(NamedTuple):
    """A greatest value for a figure of a case."""

    section: str
    case: str
    at_most: float
    of: str = ""
    """The case of the same section that it is compared with, if any."""
    kind: str = TIMES

    def figure(self, cases: Mapping[str, Any]) -> Mapping[str, float] | None:
        """Return the figure and its quartiles; None if the other case was not measured.

        Args:
            cases: those of the section, in their form in the file of results.
        """
        case = cases[self.case]
        if self.kind == BYTES:
            return {"median": case[BYTES]}
        if self.kind == SECONDS:
            seconds: Mapping[str, float] = case["seconds"]
            return seconds
        compared: Mapping[str, Any] = case["against"].get(self.of, {})
        return compared.get(self.kind)


OPEN_MPI = "mpi4py + Open MPI"
_FENCE, _PUT = f"{OPEN_MPI}, Fence", f"{OPEN_MPI}, Put and Fence"
_ITEM = f"{OPEN_MPI}, Put of x[i:i+1]"
_COPY = "np.copyto and a barrier"
_MAP = "multiprocessing.Pool.map"
_POLARS, _DUCKDB = "polars, 2 threads", "DuckDB, 2 threads"
_OURS, _SORT = "bsplib, p = 2", "sample sort, seven stages"
_LONG = "A recording of 1e+06 supersteps, p = 2"
_LOSSES = "16 processes, 10^6 supersteps: until the losses"


def _collective(name: str, at_most: float, what: str) -> Goal:
    return Goal(what, name, at_most, f"{OPEN_MPI}, {name}")


def _seconds(section: str, case: str, at_most: float) -> Goal:
    return Goal(section, case, at_most, kind=SECONDS)


def _more(section: str, case: str, at_most: float, of: str = "off") -> Goal:
    return Goal(section, case, at_most, of, MORE)


GOALS: dict[str, tuple[Goal, ...]] = {
    "programs with many short supersteps": (
        Goal("Empty superstep, p = 2", "sync", 0.7, _FENCE),
        Goal("Empty superstep, p = 2", "sync", 0.01, "multiprocessing.Barrier"),
        Goal("Put of 8 B, p = 2", "put, sync", 0.6, _PUT),
        _seconds("Get or message of 8 B, p = 2", "get, sync", 1.2e-6),
    ),
    "programs with more processes than cores": (
        Goal("Empty superstep, p = 4", "sync", 0.5, _FENCE),
        Goal("Empty superstep, p = 16", "sync", 0.3, _FENCE),
        Goal("Put of 8 B, p = 16", "put, sync", 0.2, _PUT),
    ),
    "programs that send single numbers": (
        Goal("1000 puts of 8 B from process 0 to 1", "put with offset=i", 0.35, _ITEM),
        Goal("1000 puts of 8 B from process 0 to 1", "put into x[i:i+1]", 0.6, _ITEM),
    ),
    "programs that move large arrays": (
        Goal("Put of 64 KiB, rewritten and read, p = 2", "hpput, sync", 0.8, _PUT),
        Goal("Put of 1 MiB, rewritten and read, p = 2", "put, sync", 1.1, _COPY),
        Goal("Put of 16 MiB, rewritten and read, p = 2", "put, sync", 1.4, _COPY),
        Goal(
            *("Message of 8 MiB, rewritten and read, p = 2", "send, sync, move", 1.1),
            f"{OPEN_MPI}, Isend and Irecv",
        ),
    ),
    "programs that use collectives": (
        _collective("allreduce", 2.0, "p = 2, 8 B"),
        _collective("alltoall", 1.2, "p = 2, 64 KiB"),
        _collective("allreduce", 1.1, "p = 2, 8192 KiB"),
        _collective("broadcast", 1.1, "p = 2, 8192 KiB"),
        _collective("alltoall", 1.1, "p = 2, 8192 KiB, into given arrays"),
    ),
    "programs whose processes come late": (
        _seconds("The last of 2 processes 1 ms late", "sync, 90 %", 10e-6),
        _seconds("The last of 2 processes 5 ms late", "sync, median", 5e-6),
    ),
    "who starts a program, or many": (
        _more("Import", "and bsplib.run", 0.030, "import numpy"),
        Goal(
            *("Start, empty program and end of a machine, p = 4", "bsplib.run", 1.0),
            "multiprocessing.Pool, map, join",
        ),
        Goal("Empty program in a pool, p = 16", "bsplib.Pool.run", 0.8, _MAP),
    ),
    "who has a loop of independent calls": (
        Goal(
            *("1000 tasks of Pareto-distributed times, p = 2", "bsplib.Pool.map", 1.1),
            "max(longest task, sum / p)",
        ),
        Goal("Tasks of 100 us, p = 2", "bsplib.Pool.map", 1.0, _MAP),
    ),
    "who would write it in mpi4py": tuple(
        Goal(f"{program}, p = 2", "bsplib", 1.1, OPEN_MPI)
        for program in (
            "Heat equation, 360 steps of 1152 x 1152 values",
            "K-means, 330 rounds over 70000 points",
            "Conjugate gradients, 1440000 unknowns",
            "PageRank, 600000 pages with 6000000 links",
            "Sample sort of 16000000 records",
            "Conjugate gradients, 3600 unknowns",
            "Sample sort of 20000 records",
        )
    ),
    "who computes with numpy in a run": (
        Goal("Relaxation of 400000 values of 8 B, p = 1", "bsplib", 1.1, "Python"),
    ),
    "who sorts": (
        Goal("Sort of 2^24 int64, p = 2", _SORT, 0.55, "numpy.sort(x)"),
        Goal("Sort of 2^24 int64, p = 2, numpy without AVX-512", _SORT, 0.55, "numpy.sort(x)"),
        Goal("Sort of 2^24 int64, p = 2", _SORT, 0.9, _POLARS),
    ),
    "who queries tables": (
        Goal("Six queries, 10^7 rows of TRAN, p = 2", _OURS, 1.0, _DUCKDB),
        Goal("Six queries, 10^6 rows, scattered items, p = 2", _OURS, 0.6, _DUCKDB),
        Goal("Six queries, 10^6 rows, scattered items, p = 2", _OURS, 0.6, _POLARS),
    ),
    "who transforms signals": (
        Goal(
            *("Fourier transform of 2^22 complex128, p = 2", "dealt out, one exchange", 0.667),
            "numpy.fft.fft(x)",
        ),
        Goal(
            *("Fourier transform of 2^15 complex128, p = 2", "dealt out, one exchange", 1.0),
            "scipy.fft.fft(x)",
        ),
    ),
    "who records a run": (
        _more("Recording of empty supersteps, p = 2", "on", 500e-9),
        Goal("Recording of supersteps of 1 ms, p = 2", "on", 1.01, "off"),
        Goal("Sampling of lines, p = 2", "lines", 1.02, "off"),
        Goal("Recording of the sample sort of 2 x 10^7 int64, p = 2", "on", 1.03, "off"),
    ),
    "who records a program of mpi4py": (
        _more(f"Recorded Allreduce of 8 B, {OPEN_MPI}", "shim", 1e-6, "bare"),
        _more(f"Recorded Sendrecv of 8 B, {OPEN_MPI}", "shim", 1e-6, "bare"),
    ),
    "who reads a long recording": (
        _seconds(_LONG, "bsp report", 2.0),
        Goal(_LONG, "bsp report", 150 * 2**20, kind=BYTES),
        _seconds("A trace from the file to its losses", _LOSSES, 20.0),
        _seconds("Open a page until its graph is drawn", "1000 nodes, unfolded", 2.0),
        _seconds("Change the view of 1000 unfolded nodes", "another l", 60e-3),
        _seconds("Timeline of 10^6 records, p = 16", "zoom, a picture", 17e-3),
    ),
}
"""The goals of those who care."""


def compared_with(section: str, case: str) -> set[str]:
    """Return the cases with which a case is compared in its goals."""
    found = (goal for goals in GOALS.values() for goal in goals if goal.of)
    return {goal.of for goal in found if (goal.section, goal.case) == (section, case)}
