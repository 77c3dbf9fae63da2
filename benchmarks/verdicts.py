"""How steady verdicts are: between numbers of processes, between recordings, and when it is mended.

``python -m benchmarks.verdicts`` does six experiments, or those that are named: ``processes``,
``recordings``, ``mended``, ``causes``, ``planted`` and ``unexplained``. It takes minutes, needs a
computer that does nothing else, and writes a file ``benchmarks/results/verdicts_NAME.json`` for
each.

- ``processes``: the same work per process on as many processes as cores, and on four times as many.
  The first sentence about the program has to be the same. The time without a core and the
  computation have to be what the kernel counted. (In the account, *waiting for a core* is more:
  also what others wait for a process that has none.)
- ``recordings``: a program is recorded ten times, with five repeats each. The kinds of sentences
  that hold in most repeats have to be the same in all.
- ``mended``: between which times a further run would lie if the first sentence of five repeats were
  mended, against runs of the same program without what was planted, in turns with these, so that
  the computer is as busy for both. Nine of ten have to be inside.
- ``causes``: programs with one fault each (``tests/profiler/causes.py``), ``--repeats`` times. The
  first sentence has to name the fault, with its line and its seconds, and nothing else may be
  named above 3% of the elapsed time.
- ``planted``: programs of mpi4py with one fault each (``tests/record/faults.py``), on both MPIs
  with the numbers of processes of ``-p``, ``--repeats`` times. The first sentence has to be about
  the fault, with its line and with the seconds that the program itself measured. With more
  processes than cores a program probably measures more: the time in which it polls MPI for a
  partner without a core, which the account books as waiting for a core.
- ``unexplained``: each program of the gallery, the Fourier transforms, the sample sort and the
  queries on as many processes as cores. What accounts do not explain has to be under 2% of the
  elapsed time in the median, and under 5% in each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import bsplib
from benchmarks import apps_recording
from benchmarks.accuracy import AccuracyGoal, keep
from benchmarks.apps_fft import transforms
from benchmarks.provenance import Circumstances
from bsplib.apps import gallery
from bsplib.apps.fourier import fft, fft_barrier_free, fft_cyclic
from bsplib.apps.gallery import word_count
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
DIFFERENCE = 0.05
"""Part of the time without a core by which the account may miss it."""
LEAST_S = 0.01
"""Of less, the same number of seconds may be missed."""


def crowded(bsp: bsplib.Group) -> tuple[float, float]:
    """Compute in each superstep, on process 1 twice as long.

    Returns:
        What it computed, and the time without a core, in seconds as the kernel counted them.
    """
    before, computed = causes.Spent.now(), 0.0
    for _ in range(ROUNDS):
        computed += causes.busy(WORK_S * (2 if bsp.pid == 1 else 1))
        bsp.sync()
    return computed, causes.Spent.now().since(before).ready


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


Found: TypeAlias = Iterator[AccuracyGoal]
"""What an experiment finds."""


def processes() -> Found:
    """Compare as many processes as cores with four times as many."""
    kinds = []
    for nprocs in (CORES, 4 * CORES):
        run, found = recorded(crowded, nprocs=nprocs)
        (profile,) = Profile(Trace((run,))).runs
        about = [each for each in profile.verdict().sentences if each.kind != CORE]
        kinds.append((about[0].kind, about[0].who) if about else ("balanced", ()))
        computed, ready = (sum(each) for each in zip(*found, strict=True))
        waited = (run.records[name].clip(min=0) for name in ("comp_ready", "comm_ready"))
        useful = profile.book().book.whole()["useful"] / 1e9
        without = sum(int(each.sum()) for each in waited) / 1e9
        crowd = f"{nprocs} processes on {CORES} cores"
        yield _compared(f"{crowd}: without a core", without, ready)
        yield _compared(f"{crowd}: useful computation", useful, computed)
    told = [" ".join(map(str, (kind, *who))) for kind, who in kinds]
    yield AccuracyGoal("the verdict", ", ".join(told), "the same", kinds[0] == kinds[1])


def _compared(what: str, told_s: float, counted_s: float) -> AccuracyGoal:
    missed = abs(told_s - counted_s) / max(counted_s, LEAST_S)
    reached = f"{told_s:.3f} s, counted by the kernel {counted_s:.3f} s ({missed:.1%})"
    return AccuracyGoal(what, reached, f"within {DIFFERENCE:.0%}", missed <= DIFFERENCE)


def recordings() -> Found:
    """Compare the kinds of the sentences of several recordings."""
    for name, main in PROGRAMS.items():
        found = [_kinds(repeated(main)) for _ in range(RECORDINGS)]
        usual = max(found, key=found.count)
        count = found.count(usual)
        reached = f"{', '.join(usual) or 'balanced'} in {count} of {RECORDINGS}"
        yield AccuracyGoal(name, reached, "in all", count == RECORDINGS)


def _kinds(repeats: Repeats) -> tuple[str, ...]:
    return tuple(sorted({each.sentence.kind for each in repeats.intervals() if each.is_sure}))


def mended() -> Found:
    """Compare what a run would take if it were mended with what it takes when it is."""
    every: list[Mend] = []
    for name, main in PROGRAMS.items():
        found = [_mend(main) for _ in range(MENDS)]
        yield AccuracyGoal(name, _counted(found), "", None)
        every += found
    inside = sum(each.inside for each in every)
    least = LEAST_TOLD * REPEATS * len(every)
    yield AccuracyGoal("all", _counted(every), f"{LEAST_TOLD:.0%}", inside >= least)


class Mend(NamedTuple):
    """Runs of a mended program against what a verdict told of them."""

    inside: int
    """How many of ``REPEATS`` runs are in the interval."""
    width: float
    """Of the interval, as a part of its middle."""


def _counted(mends: Sequence[Mend]) -> str:
    inside, width = sum(each.inside for each in mends), median(each.width for each in mends)
    count = REPEATS * len(mends)
    return f"in the interval {inside} of {count} times, which is {width:.1%} wide (median)"


def _mend(main: Callable[..., float]) -> Mend:
    """Record a program several times, in turns with runs in which it is mended."""
    runs, mended_s = [], []
    for _ in range(REPEATS):
        runs.append(recorded(main)[0])
        mended_s.append(elapsed_s(recorded(main, True)[0]))
    first = next(each for each in _gathered(runs).intervals() if each.sentence.kind != CORE)
    if first.without_s is None:
        return Mend(0, 0.0)
    least_s, greatest_s = first.without_s
    return Mend(
        sum(least_s <= each <= greatest_s for each in mended_s),
        2 * (greatest_s - least_s) / (greatest_s + least_s),
    )


def causes_planted(repeats: int) -> Found:
    """Compare verdicts with the fault that each program has."""
    for name, cause in causes.CAUSES.items():
        found = [_judged(cause) for _ in range(repeats)]
        first, right = (sum(each) for each in zip(*found, strict=True))
        reached = f"named first {first} of {repeats}, with its seconds and alone {right}"
        yield AccuracyGoal(name, reached, f"all within {DIFFERENCE:.0%}", right == repeats)


def _judged(cause: causes.Cause) -> tuple[bool, bool]:
    """Record a program; tell whether its fault is named first, and whether nothing is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        book, planted_s = causes.recorded(cause, Path(folder) / "run.bsp")
        first = causes.first_about(cause, book.verdict())
        return first is not None, not causes.doubts_about(cause, book, planted_s)


# -- faults in programs of mpi4py -----------------------------------------------------------------

FAULT_ROUNDS = 20
CORE_FAULT = "core"
"""The fault of processes that have one core together."""
DEADLINE_S = 300.0


def planted(counts: Sequence[int], repeats: int) -> Found:
    """Compare the first sentence about programs of mpi4py with the fault that each has."""
    for mpi in filter(Mpi.is_here, ALL):
        for nprocs in counts:
            for fault in FAULTS:
                if is_possible(fault, nprocs):
                    told = [_first_of(mpi, nprocs, fault) for _ in range(repeats)]
                    yield _summed_up(f"{mpi.name}, p = {nprocs}, {fault}", told)


def _first_of(mpi: Mpi, nprocs: int, fault: str) -> tuple[bool, float]:
    """Record a program; tell whether its fault is named first, and how far the seconds are off.

    That processes wait for a core is true, too, where there are more of them than cores.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.bsp"
        words = ("-m", "bsplib.record", str(out), str(PROGRAM), fault, str(FAULT_ROUNDS))
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
    named = (first.kind, first.who) == (expected.kind, expected.who) and expected.word in first.text
    named &= line is None or f"({PROGRAM.name} line {line} " in first.text
    return named, first.seconds / measured_s - 1


def _summed_up(what: str, told: Sequence[tuple[bool, float]]) -> AccuracyGoal:
    off = [difference for named, difference in told if named]
    near = sum(abs(difference) <= DIFFERENCE for difference in off)
    seconds = f", seconds off by {min(off):+.1%} to {max(off):+.1%}" if off else ""
    reached = f"named first {len(off)} of {len(told)}, near {near}{seconds}"
    return AccuracyGoal(what, reached, f"all within {DIFFERENCE:.0%}", near == len(told))


# -- what accounts do not explain -----------------------------------------------------------------

GALLERY = Path(gallery.__file__).parent
MEDIAN, GREATEST = 0.02, 0.05
"""What may be unexplained of the elapsed time."""
SIZES = {"transforms": 2**20, "sort": 4_000_000, "rows": 1_000_000, "words": 2_000_000}


def unexplained() -> Found:
    """Find the share of the elapsed time that the account of each program does not explain."""
    shares = []
    for name, (main, args) in _programs().items():
        run, _ = recorded(main, *args, nprocs=PROCESSES.get(name, CORES))
        (profile,) = Profile(Trace((run,))).runs
        whole = profile.book().book.whole()
        shares.append(whole["unexplained"] / sum(whole.values()))
        reached = f"{shares[-1]:.2%} of {profile.elapsed_s:.3f} s"
        yield AccuracyGoal(name, reached, f"under {GREATEST:.0%}", shares[-1] < GREATEST)
    middle = median(shares)
    yield AccuracyGoal("median", f"{middle:.2%}", f"under {MEDIAN:.0%}", middle < MEDIAN)


PROCESSES = {"cannon": 4}
"""Numbers of processes of programs that do not run on any number."""


def _programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the programs of the gallery and of the apps, with their arguments."""
    given = {"word_count": (word_count.text(SIZES["words"]),)}
    names = sorted(file.stem for file in GALLERY.glob("*.py"))
    taught = [name for name in names if not name.endswith(("__", "_mpi4py", "references"))]
    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        name: (import_module(f"{gallery.__name__}.{name}").main, given.get(name, ()))
        for name in taught
    }
    for algorithm in (fft_cyclic, fft, fft_barrier_free):
        name = algorithm.__name__.rpartition(".")[2]
        found[f"fourier.{name}"] = transforms, (algorithm, SIZES["transforms"])
    found["sorting.sample_sort"] = apps_recording.sorts, (SIZES["sort"],)
    found["sql.queries"] = apps_recording.queries, (SIZES["rows"],)
    return found


EXPERIMENTS: dict[str, Callable[..., Found]] = {
    "processes": processes,
    "recordings": recordings,
    "mended": mended,
    "causes": causes_planted,
    "planted": planted,
    "unexplained": unexplained,
}


def main() -> None:
    """Do the experiments that are asked for, and keep what they find."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(EXPERIMENTS), metavar="EXPERIMENT")
    parser.add_argument("-p", dest="counts", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--repeats", type=int, default=20, help="of causes and planted")
    parser.add_argument("--trial", action="store_true", help="write to out/benchmarks instead")
    given = parser.parse_args()
    experiments = EXPERIMENTS | {
        "causes": partial(causes_planted, given.repeats),
        "planted": partial(planted, given.counts, given.repeats),
    }
    for name in given.names:
        if name not in experiments:
            parser.error(f"no experiment is called {name!r}: give {', '.join(experiments)}")
        circumstances, found = Circumstances(), list(experiments[name]())
        keep(circumstances.document(f"verdicts_{name}"), {}, found, trial=given.trial)


if __name__ == "__main__":
    main()
