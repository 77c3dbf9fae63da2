"""How steady verdicts are: between numbers of processes, between recordings, and when it is mended.

``python -m benchmarks.verdicts`` prints four experiments, or those that are named: ``processes``,
``recordings``, ``mended`` and ``planted``. It takes minutes, and needs a computer that does
nothing else.

- ``processes``: the same work per process on as many processes as cores, and on four times as many.
  The first sentence about the program has to be the same. The time without a core and the
  computation have to be what the kernel counted. (In the account, *waiting for a core* is more:
  also what others wait for a process that has none.)
- ``recordings``: a program is recorded ten times, with five repeats each. The kinds of sentences
  that hold in most repeats have to be the same in all.
- ``mended``: what a run would take if its first sentence were mended, against the same program
  without what was planted. It has to be inside the interval over five repeats.
- ``planted``: programs of mpi4py with one fault each (``tests/record/faults.py``), on both MPIs
  with the numbers of processes of ``-p``, ``--repeats`` times. The first sentence has to be about
  the fault, with its line and with the seconds that the program itself measured.
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
from pathlib import Path
from statistics import median
from typing import Any

import bsplib
from bsplib.profiler.kinds import CORE
from bsplib.profiler.profile import Profile, RunProfile
from bsplib.profiler.repeats import Repeats, gathered
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
DIFFERENCE = 0.05
"""Part of the time without a core by which the account may miss it."""


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


def straggling(bsp: bsplib.Group, extra_s: float = WORK_S) -> float:
    """Compute longer on process 1."""
    for _ in range(ROUNDS):
        causes.busy(WORK_S + (extra_s if bsp.pid == 1 else 0))
        bsp.sync()
    return 0.0


def rotating(bsp: bsplib.Group, extra_s: float = WORK_S) -> float:
    """Compute longer on another process each time."""
    for number in range(ROUNDS):
        causes.busy(WORK_S + (extra_s if bsp.pid == number % bsp.nprocs else 0))
        bsp.sync()
    return 0.0


def asleep(bsp: bsplib.Group, extra_s: float = WORK_S) -> float:
    """Sleep on process 1."""
    for _ in range(ROUNDS):
        causes.busy(WORK_S)
        if bsp.pid == 1 and extra_s:
            time.sleep(extra_s)
        bsp.sync()
    return 0.0


def one_off(bsp: bsplib.Group, extra_s: float = WORK_S) -> float:
    """Compute longer once, on process 0."""
    for number in range(ROUNDS):
        late = number == ROUNDS // 2 and bsp.pid == 0
        causes.busy(WORK_S + (ROUNDS * extra_s if late else 0))
        bsp.sync()
    return 0.0


def in_a_branch(bsp: bsplib.Group, extra_s: float = WORK_S) -> float:
    """Compute longer on process 1, which syncs at another line."""
    for _ in range(ROUNDS):
        causes.busy(WORK_S)
        if bsp.pid == 1:
            causes.busy(extra_s)
            bsp.sync()
        else:
            bsp.sync()
    return 0.0


PROGRAMS: dict[str, Callable[..., float]] = {
    each.__name__: each for each in (straggling, rotating, asleep, one_off, in_a_branch)
}
"""Programs whose planted time can be left out."""


def recorded(main: Callable[..., Any], *args: float, nprocs: int = 2) -> tuple[Run, list[Any]]:
    """Record a run; return it with its results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.bsp"
        found = bsplib.run(main, *args, nprocs=nprocs, backend="shm", profile=path)
        (run,) = read_trace(path).runs
        assert len(run.records)  # they are read while the file is there
        return run, found


def repeated(main: Callable[..., float], *args: float) -> Repeats:
    """Record a program several times, as ``bsp run --repeat`` does."""
    runs = [recorded(main, *args)[0] for _ in range(REPEATS)]
    marked = [
        replace(run, meta=run.meta | {"repeat": [number, REPEATS]})
        for number, run in enumerate(runs)
    ]
    (repeats,) = gathered(Profile(Trace(tuple(marked))).runs)
    return repeats


def processes() -> Iterator[str]:
    """Compare as many processes as cores with four times as many."""
    kinds = []
    for nprocs in (CORES, 4 * CORES):
        run, found = recorded(crowded, nprocs=nprocs)
        (profile,) = Profile(Trace((run,))).runs
        about = [each for each in profile.verdict().sentences if each.kind != CORE]
        kinds.append((about[0].kind, about[0].who) if about else ("balanced", ()))
        yield f"{nprocs} processes on {CORES} cores: {', '.join(map(str, kinds[-1]))}"
        computed, ready = (sum(each) for each in zip(*found, strict=True))
        waited = (run.records[name].clip(min=0) for name in ("comp_ready", "comm_ready"))
        useful = profile.ledger().account.whole()["useful"] / 1e9
        without = sum(int(each.sum()) for each in waited) / 1e9
        yield f"  without a core {_compared(without, ready)}"
        yield f"  useful computation {_compared(useful, computed)}"
    yield f"the same verdict: {_said(kinds[0] == kinds[1])}"


def _compared(told_s: float, counted_s: float) -> str:
    missed = abs(told_s - counted_s) / counted_s if counted_s else 0.0
    counted = f"{told_s:.3f} s of {counted_s:.3f} s that the kernel counted"
    return f"{counted} ({missed:.1%}: {_said(missed <= DIFFERENCE)})"


def recordings() -> Iterator[str]:
    """Compare the kinds of the sentences of several recordings."""
    for name, main in PROGRAMS.items():
        found = [_kinds(repeated(main)) for _ in range(RECORDINGS)]
        usual = max(found, key=found.count)
        count = found.count(usual)
        said = _said(count == RECORDINGS)
        yield f"{name}: {', '.join(usual) or 'balanced'} in {count} of {RECORDINGS} ({said})"


def _kinds(repeats: Repeats) -> tuple[str, ...]:
    return tuple(sorted({each.sentence.kind for each in repeats.intervals() if each.is_sure}))


def mended() -> Iterator[str]:
    """Compare what a run would take with what it takes without what was planted."""
    for name, main in PROGRAMS.items():
        told = [_told_s(run) for run in repeated(main).runs]
        without = median(run.elapsed_s for run in repeated(main, 0.0).runs)
        low, high = min(told), max(told)
        said = _said(low <= without <= high)
        yield f"{name}: told {low:.3f} to {high:.3f} s, took {without:.3f} s ({said})"


def _told_s(run: RunProfile) -> float:
    """Return what a run would take if its first sentence about the program were mended."""
    about = (each for each in run.verdict().sentences if each.kind != CORE)
    first = next(about, None)
    if first is None or first.without_s is None:
        return run.elapsed_s
    return first.without_s


# -- faults in programs of mpi4py -----------------------------------------------------------------

FAULT_ROUNDS = 20
DEADLINE_S = 300.0


def planted(counts: Sequence[int], repeats: int) -> Iterator[str]:
    """Compare the first sentence about programs of mpi4py with the fault that each has."""
    for mpi in filter(Mpi.is_here, ALL):
        for nprocs in counts:
            for fault in FAULTS:
                if is_possible(fault, nprocs):
                    told = [_first_of(mpi, nprocs, fault) for _ in range(repeats)]
                    yield f"{mpi.name}, p = {nprocs}, {fault}: {_summed_up(told)}"


def _first_of(mpi: Mpi, nprocs: int, fault: str) -> tuple[bool, float]:
    """Record a program; tell whether its fault is named first, and how far the seconds are off."""
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
        first = Profile(read_trace(out)).runs[0].verdict().sentences[0]
    expected, line, measured_s = FAULTS[fault], line_of(fault), float(ran.stdout.split()[0])
    named = (first.kind, first.who) == (expected.kind, expected.who) and expected.word in first.text
    named &= line is None or f"({PROGRAM.name} line {line} " in first.text
    return named, first.seconds / measured_s - 1


def _summed_up(told: Sequence[tuple[bool, float]]) -> str:
    off = [difference for named, difference in told if named]
    near = sum(abs(difference) <= DIFFERENCE for difference in off)
    seconds = f", {min(off):+.1%} to {max(off):+.1%}" if off else ""
    return (
        f"named first {len(off)} of {len(told)}, seconds within {DIFFERENCE:.0%} "
        f"{near} of {len(told)}{seconds} ({_said(near == len(told))})"
    )


def _said(holds: bool) -> str:
    return "holds" if holds else "MISSED"


EXPERIMENTS: dict[str, Callable[..., Iterator[str]]] = {
    each.__name__: each for each in (processes, recordings, mended, planted)
}


def main() -> None:
    """Print the experiments that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(EXPERIMENTS), metavar="EXPERIMENT")
    parser.add_argument("-p", dest="counts", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--repeats", type=int, default=20, help="of planted")
    given = parser.parse_args()
    experiments = EXPERIMENTS | {"planted": partial(planted, given.counts, given.repeats)}
    for name in given.names:
        if name not in experiments:
            parser.error(f"no experiment is called {name!r}: give {', '.join(experiments)}")
        print(f"{name}:", flush=True)
        for line in experiments[name]():
            print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
