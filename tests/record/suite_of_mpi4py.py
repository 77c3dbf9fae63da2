"""Runs the tests of mpi4py with and without the recorder, and compares what they say.

``python -m tests.record.suite_of_mpi4py FOLDER`` takes the folder of mpi4py's source distribution,
of the version that is installed::

    pip download mpi4py==VERSION --no-binary mpi4py --no-deps && tar xf mpi4py-VERSION.tar.gz

It is long, and no part of ``make test``. Each test has to pass, fail or be skipped as it does
without the recorder, on both MPIs and with each number of processes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from tests.mpi_installations import ALL, Mpi

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


def _run(
    mpi: Mpi, nprocs: int, folder: Path, options: list[str], limit: float, *, recorded: bool
) -> _Outcomes:
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        program = temporary / "each_rank.py"
        program.write_text(_EACH_RANK, encoding="utf-8")
        recorder = ["-m", "bsplib.record", str(temporary / "out.bsp")] * recorded
        words = [sys.executable, *recorder, str(program), name, "-v", *options]
        begin = time.monotonic()
        try:
            subprocess.run(
                mpi.start(nprocs, *words),
                cwd=folder,
                env=mpi.whole_environment(nprocs),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"  ended after {limit:.0f} s")
        found = {
            (path.stem, test): outcome
            for path in temporary.glob("*.txt")
            for test, outcome in outcomes(path.read_text(errors="replace")).items()
        }
    kind = "recorded" if recorded else "bare"
    seconds = time.monotonic() - begin
    print(f"  {kind}: {len(found)} tests of all ranks, {seconds:.0f} s", flush=True)
    return found


def _compare(mpi: Mpi, nprocs: int, folder: Path, options: list[str], limit: float) -> int:
    """Return how many tests end otherwise under the recorder."""
    print(f"{mpi.title}, p = {nprocs}", flush=True)
    bare, recorded = (
        _run(mpi, nprocs, folder, options, limit, recorded=recorded) for recorded in (False, True)
    )
    different = [
        test for test in bare.keys() | recorded.keys() if bare.get(test) != recorded.get(test)
    ]
    failed = sum(outcome == "failed" for outcome in recorded.values())
    print(f"  {failed} fail under the recorder; {len(different)} end otherwise than without")
    for rank, name in sorted(different):
        words = (each.get((rank, name), "absent") for each in (bare, recorded))
        print(f"    rank {rank}, {name}: {' and recorded '.join(words)}")
    return len(different)


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("-p", "counts", type=int, multiple=True, default=(1, 2, 4), show_default=True)
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
    different = sum(
        _compare(mpi, nprocs, folder, list(options), limit)
        for mpi in ALL
        if mpi.is_here() and (not names or mpi.distribution in names)
        for nprocs in counts
    )
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
