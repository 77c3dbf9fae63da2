"""Supersteps across four hosts and what a probe finds of their links, beside mpi4py alone.

``python -m benchmarks.bench_links`` writes ``benchmarks/results/links.json``. The hosts are on
this computer (:mod:`tests.hosts`), share its cores with the switch that joins them, and have one
process each. Where much is sent, the switch keeps a core busy: all ways wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from benchmarks.across import PoolAcross, RanksAcross
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from tests.hosts.hosts import Hosts, why_not
from tests.mpi_installations import ALL, Mpi

HOSTS = 4
RATE = 1e9
DELAY_S = 1e-3
ROUNDS = 5
_STREAM = 2**24


def _exchange(
    mpi: Mpi, nbytes: int, count: int, goals: dict[str, dict[str, float]], stack: ExitStack
) -> Sequence[Case]:
    """Compare a put to every process with Alltoallv, whose sizes are known or not."""
    known, unknown = f"{mpi.title}, Alltoallv", f"{mpi.title}, sizes and Alltoallv"
    hosts = stack.enter_context(Hosts(HOSTS, RATE, DELAY_S))
    theirs = stack.enter_context(RanksAcross(hosts, mpi))
    ours = stack.enter_context(PoolAcross(hosts, mpi))
    raw = partial(theirs.sample, "exchanges_with_all", count=count, nbytes=nbytes)
    put = partial(ours.sample, "puts_to_all", count=count, nbytes=nbytes)
    ways = {"put": put, "hpput": partial(put, unbuffered=True)}
    of = {"known": known, "sizes": unknown}
    return [
        Case(known, raw),
        Case(unknown, partial(raw, sizes=True)),
        *(
            Case(
                f"{way}, sync",
                ways[way],
                (known, unknown),
                tuple(Goal.times(limit, of[what]) for what, limit in limits.items()),
            )
            for way, limits in goals.items()
        ),
    ]


def _probe(mpi: Mpi, figure: str, part: float, stack: ExitStack) -> Sequence[Case]:
    """Compare a figure of a probe with the same one of mpi4py, and with a link of its own."""
    line = f"{mpi.title}, line through Alltoallv"
    link = f"{mpi.title}, {'one long message' if figure == 'g' else 'half a round trip'}"
    hosts = stack.enter_context(Hosts(HOSTS, RATE, DELAY_S))
    theirs = stack.enter_context(RanksAcross(hosts, mpi))
    ours = stack.enter_context(PoolAcross(hosts, mpi))
    alone = {
        "g": partial(theirs.sample, "streams", count=3, nbytes=_STREAM),
        "l": partial(theirs.sample, "pings", count=100),
    }
    return [
        Case(link, alone[figure]),
        Case(line, partial(theirs.sample, "lines", figure=figure, rounds=ROUNDS)),
        Case(
            f"{figure} of bsp probe",
            partial(ours.sample, "probed", figure=figure, rounds=ROUNDS),
            (link,),
            (Goal.within(part, line),),
        ),
    ]


SMALL = {"put": {"known": 1.25, "sizes": 0.65}}
LARGE = {"put": {"known": 1.1}, "hpput": {"known": 1.05}}
WHERE = f"p = {HOSTS}, across {HOSTS} hosts at 1 ms and 1 Gbit/s"


def _sections(mpi: Mpi) -> Sequence[Section]:
    def exchange(
        what: str, nbytes: int, count: int, goals: dict[str, dict[str, float]], repeats: int
    ) -> Section:
        title = f"Put of {what} to each process and sync on {mpi.name}, {WHERE}"
        prepare = partial(_exchange, mpi, nbytes, count, goals)
        return Section(title, "superstep", prepare, repeats=repeats)

    def probe(title: str, unit: str, figure: str, part: float) -> Section:
        prepare = partial(_probe, mpi, figure, part)
        return Section(f"{title} on {mpi.name}, {WHERE}", unit, prepare, repeats=5, warm_up=0)

    return (
        exchange("8 B", 8, 100, SMALL, 9),
        exchange("1 KiB", 2**10, 100, SMALL, 9),
        exchange("1 MiB", 2**20, 5, LARGE, 9),
        exchange("16 MiB", 2**24, 1, LARGE, 5),
        probe("g of a link", "byte", "g", 0.2),
        probe("l of a link", "superstep", "l", 0.3),
    )


SECTIONS = tuple(section for mpi in ALL if mpi.is_here() for section in _sections(mpi))

BENCHMARK = Benchmark("links", SECTIONS)

if __name__ == "__main__":
    if reason := why_not():
        raise SystemExit(reason)
    run([BENCHMARK])
