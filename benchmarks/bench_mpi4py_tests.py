"""Runs mpi4py's own tests with and without the recorder, and compares how each of them ends.

``python -m benchmarks.bench_mpi4py_tests FOLDER`` takes the folder of mpi4py's source distribution,
of the version that is installed::

    pip download mpi4py==VERSION --no-binary mpi4py --no-deps && tar xf mpi4py-VERSION.tar.gz

Each test has to pass, fail or be skipped as it does without the recorder, on both MPIs and with
each number of processes. This takes long. A run that is ended at the limit is compared as far as it
came. All of it is written to ``benchmarks/results/mpi4py_tests.json``, a part of it to
``out/benchmarks``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

from benchmarks import table
from benchmarks.goals import Goal
from benchmarks.harness import RESULTS, TRIALS, write
from benchmarks.provenance import Circumstances
from tests.mpi_installations import ALL, Mpi

COUNTS = (1, 2, 4)
_OUTCOME = re.compile(
    r"^(\w+ \([\w.]+\)) \.\.\. (?:.*\n)??.*?(ok|FAIL|ERROR|skipped|expected failure)", re.MULTILINE
)
_BROKEN = re.compile(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", re.MULTILINE)
_EACH_RANK = """
import os, runpy, sys
names = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
rank = next((os.environ[name] for name in names if name in os.environ), "0")
os.dup2(os.open(f"{sys.argv.pop(1)}/{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
sys.path[0] = os.path.abspath("test")
sys.argv[0] = "test/main.py"
runpy.run_path("test/main.py", run_name="__main__")
"""
"""Runs the tests with a file for what each rank prints: lines of several ranks would be mixed."""

_Outcomes = dict[tuple[str, str], str]
"""How a test ended, by the rank and the name of the test."""


def outcomes(text: str) -> dict[str, str]:
    """Return how each test ended."""
    return dict(_OUTCOME.findall(text)) | dict.fromkeys(_BROKEN.findall(text), "failed")


class _Suite:
    """The tests of mpi4py in a folder.

    Args:
        folder: the source distribution.
        options: for its ``test/main.py``.
        limit_s: seconds after which a run is ended.
    """

    def __init__(self, folder: Path, options: tuple[str, ...], limit_s: float) -> None:
        self._folder = folder
        self._options = options
        self._limit_s = limit_s

    def compare(self, mpi: Mpi, nprocs: int) -> dict[str, Any]:
        """Run the tests twice; return a section of the file of results."""
        title = f"mpi4py's own tests, {mpi.name}, p = {nprocs}"
        print(title, flush=True)
        bare, recorded = (self._case(mpi, nprocs, name) for name in ("bare", "recorded"))
        of_bare, of_recorded = bare.pop("outcomes"), recorded.pop("outcomes")
        compared = of_bare.keys() | of_recorded.keys()
        is_cut = None in (bare["facts"]["status"], recorded["facts"]["status"])
        if is_cut:
            title += f", as many as end in {self._limit_s:.0f} s"
            compared = of_bare.keys() & of_recorded.keys()
        different = sorted(test for test in compared if of_bare.get(test) != of_recorded.get(test))
        recorded["different"] = len(different)
        recorded["facts"]["compared"] = len(compared)
        recorded["goals"] = [_judged(recorded, is_cut=is_cut)]
        recorded["facts"]["otherwise"] = [
            [rank, test, of_bare.get((rank, test)), of_recorded.get((rank, test))]
            for rank, test in different
        ]
        print(f"  {len(different)} of {len(compared)} end otherwise under the recorder")
        for rank, test, before, now in recorded["facts"]["otherwise"]:
            print(f"  rank {rank}, {test}: {before}, and recorded {now}", flush=True)
        return {"title": title, "unit": "run", "cases": [bare, recorded]}

    def _case(self, mpi: Mpi, nprocs: int, name: str) -> dict[str, Any]:
        seconds, status, found = self._run(mpi, nprocs, recorded=name == "recorded")
        counts = dict(sorted(Counter(found.values()).items()))
        print(f"  {name}: {len(found)} tests of all ranks, {counts}, {seconds:.0f} s", flush=True)
        names = ("median", "lower_quartile", "upper_quartile", "least", "greatest")
        return {
            "name": name,
            "seconds": dict.fromkeys(names, round(seconds, 1)),
            "samples": 1,
            "against": {},
            "facts": {"status": status, "tests_of_all_ranks": len(found), "ended": counts},
            "goals": [],
            "outcomes": found,
        }

    def _run(self, mpi: Mpi, nprocs: int, *, recorded: bool) -> tuple[float, int | None, _Outcomes]:
        """Return seconds, the exit status (None: ended at the limit), and how each test ended."""
        with tempfile.TemporaryDirectory() as name:
            temporary = Path(name)
            program = temporary / "each_rank.py"
            program.write_text(_EACH_RANK, encoding="utf-8")
            recorder = ["-m", "bsplib.record", str(temporary / "out.bsp")] * recorded
            words = [sys.executable, *recorder, str(program), name, "-v", *self._options]
            begin, status = time.monotonic(), None
            try:
                status = subprocess.run(
                    mpi.start(nprocs, *words),
                    cwd=self._folder,
                    env=mpi.whole_environment(nprocs),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=self._limit_s,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                print(f"  ended after {self._limit_s:.0f} s")
            found = {
                (path.stem, test): outcome
                for path in temporary.glob("*.txt")
                for test, outcome in outcomes(path.read_text(errors="replace")).items()
            }
        return time.monotonic() - begin, status, found


def _judged(case: dict[str, Any], *, is_cut: bool) -> dict[str, Any]:
    """Return the goal of a case; a part of the tests can show that it is missed, and no more."""
    goal = Goal.different(0, "bare").judge(case)
    return goal | {"measured": None, "met": None} if is_cut and goal["met"] else goal


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("-p", "counts", type=int, multiple=True, default=COUNTS, show_default=True)
@click.option("--mpi", "names", multiple=True, help="mpich or openmpi.  [default: both]")
@click.option("--limit", default=3600.0, help="Seconds after which a run is ended.")
@click.argument("options", nargs=-1)
def main(
    folder: Path,
    counts: tuple[int, ...],
    names: tuple[str, ...],
    limit: float,
    options: tuple[str, ...],
) -> None:
    """Compare the tests of mpi4py in FOLDER; OPTIONS are those of its test/main.py."""
    chosen = [
        (mpi, nprocs)
        for mpi in ALL
        if mpi.is_here() and (not names or mpi.distribution in names)
        for nprocs in counts
    ]
    is_whole = not options and set(chosen) == {(mpi, nprocs) for mpi in ALL for nprocs in COUNTS}
    circumstances, suite = Circumstances(), _Suite(folder, options, limit)
    sections: list[dict[str, Any]] = []
    for mpi, nprocs in chosen:  # the file is written each time, so that what was measured is kept
        sections.append(suite.compare(mpi, nprocs))
        document = circumstances.document("mpi4py_tests") | {"sections": sections}
        path = write(document, RESULTS if is_whole else TRIALS)
    if is_whole:
        table.write()
    else:
        print(f"wrote {path}")
    sys.exit(any(case["different"] for part in sections for case in part["cases"][1:]))


if __name__ == "__main__":
    main()
