"""How steady verdicts are: whether they name what was planted, and tell what its mending brings.

- *Planted*: programs with one fault each (``tests/profiler/causes.py``), and such programs of
  mpi4py on both MPIs (``tests/record/faults.py``). The first sentence has to name the fault, with
  its line and its seconds; in the former nothing else may be named above 3% of the elapsed time.
- *Mended*: between which times a further run would lie if the first sentence of five repeats were
  mended, against runs of the same program without what was planted, in turns with these, so that
  the computer is as busy for both.
- *Recordings*: a program is recorded ten times, with five repeats each. The kinds of sentences
  that hold in most repeats have to be the same in all.
- *Unexplained*: what the accounts of the gallery's programs, the Fourier transforms, the sample
  sort and the queries do not explain.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import bsplib
from benchmarks.cases.queries import Input, queries
from benchmarks.cases.sorts import sorts
from benchmarks.cases.transforms import transforms
from benchmarks.measure import Finding, Study
from bsplib.apps import gallery
from bsplib.apps.fourier import fft, fft_barrier_free, fft_cyclic
from bsplib.apps.gallery import word_count
from bsplib.apps.sql.generate import Generator
from bsplib.profiler.kinds import CORE
from bsplib.profiler.profile import Profile
from bsplib.profiler.repeats import Repeats, gathered
from bsplib.profiler.survey import elapsed_s
from bsplib.recording.records import Run, Trace
from bsplib.recording.trace import read_trace
from tests.mpi_installations import ALL, Mpi
from tests.profiler import causes
from tests.record.expected_faults import FAULTS, PROGRAM, is_possible, line_of

CORES = len(os.sched_getaffinity(0))
ROUNDS = 20
WORK_S = 0.01
"""What each process computes in a superstep, and the straggler twice."""
REPEATS = 5
RECORDINGS = 10
MENDS, LEAST_TOLD = 5, 0.9
"""How often each program is judged, and the part of its mended runs that have to be inside."""
PLANTED = 20
"""How often each program with a fault is judged."""
DIFFERENCE = 0.05
"""Part of the seconds of a fault by which a sentence may miss them."""


def straggling(bsp: bsplib.Group, is_mended: bool = False) -> float:
    """Compute longer on process 1."""
    for _ in range(ROUNDS):
        causes.busy(WORK_S + _extra_s(bsp, 1, is_mended))
        bsp.sync()
    return 0.0


def rotating(bsp: bsplib.Group, is_mended: bool = False) -> float:
    """Compute longer on another process each time."""
    for number in range(ROUNDS):
        causes.busy(WORK_S + _extra_s(bsp, number % bsp.nprocs, is_mended))
        bsp.sync()
    return 0.0


def asleep(bsp: bsplib.Group, is_mended: bool = False) -> float:
    """Sleep on process 1."""
    for _ in range(ROUNDS):
        causes.busy(WORK_S)
        if bsp.pid == 1 and not is_mended:
            time.sleep(WORK_S)
        bsp.sync()
    return 0.0


def one_off(bsp: bsplib.Group, is_mended: bool = False) -> float:
    """Compute longer once, on process 0."""
    for number in range(ROUNDS):
        is_late = number == ROUNDS // 2
        causes.busy(WORK_S + (ROUNDS * _extra_s(bsp, 0, is_mended) if is_late else 0))
        bsp.sync()
    return 0.0


def in_a_branch(bsp: bsplib.Group, is_mended: bool = False) -> float:
    """Compute longer on process 1, which syncs at another line."""
    for _ in range(ROUNDS):
        causes.busy(WORK_S)
        if bsp.pid == 1:
            causes.busy(_extra_s(bsp, 1, is_mended))
            bsp.sync()
        else:
            causes.busy(_extra_s(bsp, 1, is_mended))
            bsp.sync()
    return 0.0


def _extra_s(bsp: bsplib.Group, late: int, is_mended: bool) -> float:
    """Return how much longer a process computes: one of them, or all with an even share."""
    return WORK_S / bsp.nprocs if is_mended else WORK_S * (bsp.pid == late)


PROGRAMS: dict[str, Callable[..., float]] = {
    each.__name__: each for each in (straggling, rotating, asleep, one_off, in_a_branch)
}
"""Programs that can be mended: an even share of computation, and no sleep."""


def recorded(main: Callable[..., Any], *args: float, nprocs: int = 2) -> tuple[Run, list[Any]]:
    """Record a run; return it with its results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.bsp"
        found = bsplib.run(main, *args, nprocs=nprocs, backend="shm", profile=path)
        (run,) = read_trace(path).runs
        assert len(run.records)  # they are read while the file is there
        return run, found


def repeated(main: Callable[..., float]) -> Repeats:
    """Record a program several times, as ``bsp run --repeat`` does."""
    return _gathered([recorded(main)[0] for _ in range(REPEATS)])


def _gathered(runs: Sequence[Run]) -> Repeats:
    marked = [
        replace(run, meta=run.meta | {"repeat": [number, REPEATS]})
        for number, run in enumerate(runs)
    ]
    (repeats,) = gathered(Profile(Trace(tuple(marked))).runs)
    return repeats


# -- recordings and mended runs -------------------------------------------------------------------


def recordings(quick: bool) -> Iterator[Finding]:
    """Compare the kinds of the sentences of several recordings."""
    count, same = 2 if quick else RECORDINGS, 0
    for main in PROGRAMS.values():
        found = [_kinds(repeated(main)) for _ in range(count)]
        same += max(map(found.count, found))
    whole = count * len(PROGRAMS)
    what = "recordings of five programs with the same kinds of sentences"
    yield Finding(what, f"{same} of {whole}", "all", same == whole)


def _kinds(repeats: Repeats) -> tuple[str, ...]:
    return tuple(sorted({each.sentence.kind for each in repeats.intervals() if each.is_sure}))


def mended(quick: bool) -> Iterator[Finding]:
    """Compare what a run would take if it were mended with what it takes when it is."""
    every = [_mend(main) for main in PROGRAMS.values() for _ in range(1 if quick else MENDS)]
    inside, whole = sum(each for each, _ in every), REPEATS * len(every)
    width = median(each for _, each in every)
    yield Finding(
        "mended runs inside of the interval that was told, and how wide it is (median)",
        f"{inside} of {whole}, {width:.1%}",
        f"at least {LEAST_TOLD:.0%}",
        inside >= LEAST_TOLD * whole,
    )


def _mend(main: Callable[..., float]) -> tuple[int, float]:
    """Record a program several times, in turns with runs in which it is mended.

    Returns:
        How many of the mended runs are in the interval, and its width as a part of its middle.
    """
    runs, mended_s = [], []
    for _ in range(REPEATS):
        runs.append(recorded(main)[0])
        mended_s.append(elapsed_s(recorded(main, True)[0]))
    first = next(each for each in _gathered(runs).intervals() if each.sentence.kind != CORE)
    if first.without_s is None:
        return 0, 0.0
    least_s, greatest_s = first.without_s
    inside = sum(least_s <= each <= greatest_s for each in mended_s)
    return inside, 2 * (greatest_s - least_s) / (greatest_s + least_s)


# -- planted faults -------------------------------------------------------------------------------


def planted(quick: bool) -> Iterator[Finding]:
    """Compare verdicts with the fault that each program has."""
    repeats = 1 if quick else PLANTED
    found = [_judged(cause) for cause in causes.CAUSES.values() for _ in range(repeats)]
    yield _summed_up(f"programs with one of {len(causes.CAUSES)} faults", found)


def planted_in_mpi4py(quick: bool) -> Iterator[Finding]:
    """Compare verdicts about programs of mpi4py with the fault that each has."""
    told = [
        _first_of(mpi, FAULT_PROCESSES, fault)
        for mpi in filter(Mpi.is_here, ALL)
        for fault in FAULTS
        if is_possible(fault, FAULT_PROCESSES)
        for _ in range(1 if quick else PLANTED)
    ]
    if told:
        yield _summed_up(f"programs of mpi4py with one fault, p = {FAULT_PROCESSES}", told)


def _summed_up(what: str, told: Sequence[tuple[bool, bool]]) -> Finding:
    named, right = (sum(each) for each in zip(*told, strict=True))
    return Finding(
        f"{what}: named first; with its seconds",
        f"{named} of {len(told)}; {right}",
        f"all, within {DIFFERENCE:.0%}",
        right == len(told),
    )


def _judged(cause: causes.Cause) -> tuple[bool, bool]:
    """Record a program; tell whether its fault is named first, and whether nothing is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        book, planted_s = causes.recorded(cause, Path(folder) / "run.bsp")
        first = causes.first_about(cause, book.verdict())
        return first is not None, not causes.doubts_about(cause, book, planted_s)


FAULT_ROUNDS, FAULT_PROCESSES = 20, 2
CORE_FAULT = "core"
"""The fault of processes that have one core together."""
DEADLINE_S = 300.0


def _first_of(mpi: Mpi, nprocs: int, fault: str) -> tuple[bool, bool]:
    """Record a program; tell whether its fault is named first, and whether with its seconds.

    That processes wait for a core is true, too, where there are more of them than cores.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.bsp"
        words = ("-m", "bsplib", "record", str(out), str(PROGRAM), fault, str(FAULT_ROUNDS))
        ran = subprocess.run(
            mpi.start(nprocs, sys.executable, *words),
            env=mpi.whole_environment(nprocs),
            stdout=subprocess.PIPE,
            timeout=DEADLINE_S,
            check=True,
            text=True,
        )
        told = Profile(read_trace(out)).runs[0].verdict().sentences
    first = next((each for each in told if each.kind != CORE or fault == CORE_FAULT), told[0])
    expected, line, measured_s = FAULTS[fault], line_of(fault), float(ran.stdout.split()[0])
    named = (first.kind, first.pids) == (expected.kind, expected.pids)
    named &= expected.word in first.text
    named &= line is None or f"({PROGRAM.name} line {line} " in first.text
    return named, named and abs(first.seconds / measured_s - 1) <= DIFFERENCE


# -- what accounts do not explain -----------------------------------------------------------------

GALLERY = Path(gallery.__file__).parent
MEDIAN, GREATEST = 0.02, 0.05
"""What may be unexplained of the elapsed time."""
PROCESSES = {"cannon": 4}
"""Numbers of processes of programs that do not run on any number."""


def unexplained(_: bool) -> Iterator[Finding]:
    """Find the share of the elapsed time that the account of each program does not explain."""
    shares = []
    for name, (main, args) in _programs().items():
        run, _ = recorded(main, *args, nprocs=PROCESSES.get(name, CORES))
        (profile,) = Profile(Trace((run,))).runs
        whole = profile.book().book.whole()
        shares.append(whole["unexplained"] / sum(whole.values()))
    middle, most = median(shares), max(shares)
    yield Finding(
        f"elapsed time of {len(shares)} programs that is not explained: median and greatest part",
        f"{middle:.2%}, {most:.2%}",
        f"{MEDIAN:.0%}, {GREATEST:.0%}",
        middle < MEDIAN and most < GREATEST,
    )


def _programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the programs of the gallery and of the apps, with their arguments."""
    given = {"word_count": (word_count.text(2_000_000),)}
    names = sorted(file.stem for file in GALLERY.glob("*.py"))
    others = ("__", "_mpi4py", "_multiprocessing", "references", "map_files")  # no programs of bsp
    taught = [name for name in names if not name.endswith(others)]
    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        name: (import_module(f"{gallery.__name__}.{name}").main, given.get(name, ()))
        for name in taught
    }
    for algorithm in (fft_cyclic, fft, fft_barrier_free):
        found[algorithm.__name__] = transforms, (algorithm, 2**20)
    found["sample sort"] = sorts, (4_000_000,)
    found["queries"] = queries, (Input(Generator(1_000_000)),)
    return found


SECTIONS = (
    Study("who wants to know why a run is slow", planted),
    Study("who wants to know why a program of mpi4py is slow", planted_in_mpi4py),
    Study("who wants to know what mending brings", mended),
    Study("who compares recordings", recordings),
    Study("who reads the account of a run", unexplained),
)
