"""Damaged files in great number, of every kind that a command reads.

``python -m tests.profiler.fuzz`` damages sound files at random, from seeds, and gives them to the
commands that read them. A file that is read has to be shown, and one that is refused has to be
refused in a sentence. Anything else is an accident: a traceback, an endless loop, much memory for
a small file, or a character in the output that controls a terminal. ``make soak`` runs it.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import click

from tests.profiler.fuzz.sound import Kind, kinds

MOST_S = 30
"""Of CPU time, so that a busy computer does not matter."""
MOST_BYTES = 200 << 20
"""A command may take as much beside what the process has already: so it stays below 300 MB."""
ADDRESSES = 4 << 30
"""Beyond this, memory is refused, so that an accident does not take that of the computer."""


class AccidentError(Exception):
    """What a command must not do."""


def late(*_: object) -> None:
    """End what takes too long."""
    raise AccidentError(f"it took {MOST_S} s")


def memory_of(name: str) -> int:
    """Return bytes of memory that this process has (VmRSS), or had at most (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:", 1)[1].split(None, 1)[0]) << 10


def try_one(kind: Kind, number: int, folder: Path) -> str:
    """Read one damaged file; return how that ended.

    Raises:
        Exception: it was an accident.
    """
    draw = random.Random(f"{kind.name} {number}")
    path = kind.damaged(draw, folder)
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
    before = memory_of("VmRSS")
    signal.setitimer(signal.ITIMER_PROF, MOST_S)
    try:
        shown = draw.choice(kind.reads)(path)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if (taken := memory_of("VmHWM") - before) > MOST_BYTES:
        raise AccidentError(f"it took {taken >> 20} MiB")
    if control := {char for char in shown if not char.isprintable() and char != "\n"}:
        raise AccidentError(f"the output has {control}")
    return "refused" if "Error: " in shown else "shown"


def place_of(error: BaseException) -> str:
    """Return where an error was raised, and what it is."""
    steps = traceback.extract_tb(error.__traceback__)
    at = next((each for each in reversed(steps) if "bsplib" in each.filename), steps[-1])
    return f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}"


@click.command()
@click.option("--count", default=15_000, show_default=True, help="Files of each kind.")
@click.option("--seed", default=0, show_default=True, help="Number of the first file.")
@click.option("--kind", "only", help="Only files of this kind.")
def command(count: int, seed: int, only: str | None) -> None:
    """Read damaged files, and count how they end."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    signal.signal(signal.SIGPROF, late)
    warnings.simplefilter("ignore")
    accidents = Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        sound, folder = Path(name, "sound"), Path(name, "damaged")
        sound.mkdir()
        folder.mkdir()
        for kind in kinds(sound):
            if only not in (None, kind.name):
                continue
            ends, begun_s = Counter[str](), time.monotonic()
            for number in range(seed, seed + count):
                try:
                    ends[try_one(kind, number, folder)] += 1
                except BaseException as error:  # that is what is looked for
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    ends["accidents"] += 1
                    place = f"{kind.name}: {place_of(error)}"
                    accidents[place] += 1
                    if accidents[place] == 1:
                        click.echo(f"{place}: seed {number}: {str(error)[:300]!a}")
            took_s = time.monotonic() - begun_s
            click.echo(f"{kind.name}: {dict(ends)} in {took_s:.0f} s")
    for place, number in accidents.items():
        click.echo(f"{number} times {place}")
    sys.exit(bool(accidents))


if __name__ == "__main__":
    command()
