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
    r"^(\w+ \([\w.]+\)) \.\.\. (ok|FAIL|ERROR|skipped|expected failure)?", re.MULTILINE
)
_BROKEN = re.compile(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", re.MULTILINE)


def outcomes(text: str) -> dict[str, str]:
    """Return how each test ended, by the worst that a rank has printed of it."""
    found: dict[str, str] = {}
    for name, outcome in _OUTCOME.findall(text):
        found[name] = found.get(name) or outcome
    return found | dict.fromkeys(_BROKEN.findall(text), "failed")


def _run(
    mpi: Mpi, nprocs: int, folder: Path, options: list[str], out: Path | None, limit: float
) -> str:
    recorder = [] if out is None else ["-m", "bsplib.record", str(out)]
    words = [sys.executable, *recorder, "test/main.py", "-v", *options]
    process = subprocess.Popen(
        mpi.start(nprocs, *words),
        cwd=folder,
        env=mpi.whole_environment(nprocs),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    begin = time.monotonic()
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        text, _ = process.communicate()
        text += f"\nended after {limit} s\n"
    kind = "bare" if out is None else "recorded"
    print(f"  {kind}: {len(outcomes(text))} tests, {time.monotonic() - begin:.0f} s", flush=True)
    return text


def _compare(mpi: Mpi, nprocs: int, folder: Path, options: list[str], limit: float) -> int:
    """Return how many tests end otherwise under the recorder."""
    print(f"{mpi.title}, p = {nprocs}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        bare = outcomes(_run(mpi, nprocs, folder, options, None, limit))
        out = Path(temporary, "out.bsp")
        text = _run(mpi, nprocs, folder, options, out, limit)
    recorded = outcomes(text)
    different = [name for name in bare if recorded.get(name) != bare[name]]
    failed = sum(outcome == "failed" for outcome in recorded.values())
    print(f"  {failed} fail under the recorder; {len(different)} end otherwise than without")
    for name in different:
        print(f"    {name}: {bare[name] or 'no word'}, recorded {recorded.get(name, 'absent')}")
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
