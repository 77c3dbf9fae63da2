"""Do two processes that store one word and then load the other's both read old values?

This is what a poster and a sleeper do, see ``bsplib/backends/shm/PROTOCOL.md``. Shown is in
how many of many tries both read old values, so that a wake-up would have been lost: without
fences, with a fence in both, and with one in the sleeper that fences the poster, too. The
figures are written to ``benchmarks/store_then_load.json``, with what the fences cost.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import numpy as np

from benchmarks import provenance
from benchmarks.document import write
from benchmarks.harness import summary
from bsplib.backends.shm.control import WORD
from bsplib.backends.shm.fences import Fences

_FILE = Path(__file__).with_suffix(".json")
_CALLS, _SAMPLES = 1000, 25
_LINE = 8
"""Words of a cache line."""
_WAYS = {
    "no fences": ("", ""),
    "a fence in both": ("full", "full"),
    "the sleeper fences for both": ("", "all_processes"),
}


def both_old(tries: int, fences: tuple[str, str]) -> int:
    """Return in how many tries both processes read old values."""
    words = memoryview(mmap.mmap(-1, (4 * _LINE + 2 * tries) * WORD)).cast("Q")  # shared by a fork
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        raise click.UsageError("one core shows nothing: allow this program to use two")
    child = os.fork()
    me = 0 if child else 1
    os.sched_setaffinity(0, {sorted(cores)[me]})
    _store_then_load(words, me, tries, fences[me])
    if not child:
        os._exit(0)
    os.sched_setaffinity(0, cores)
    os.waitpid(child, 0)
    loaded = np.array(words[4 * _LINE :]).reshape(2, tries)
    return int((loaded < np.arange(1, tries + 1)).all(axis=0).sum())


def _store_then_load(words: memoryview, me: int, tries: int, fence: str) -> None:
    mine, other = me * _LINE, (1 - me) * _LINE
    ready, is_ready = mine + 2 * _LINE, other + 2 * _LINE
    loaded = 4 * _LINE + me * tries
    process = Fences()
    between = getattr(process, fence) if fence else None
    for number in range(1, tries + 1):
        words[ready] = number
        while words[is_ready] < number:
            pass
        words[mine] = number
        if between is not None:
            between()
        words[loaded + number - 1] = words[other]


def seconds_of(call: Callable[[], object]) -> dict[str, float]:
    """Return what a call takes in seconds: median, quartiles and extremes."""
    samples = []
    for _ in range(_SAMPLES):
        began = time.perf_counter()
        for _ in range(_CALLS):
            call()
        samples.append((time.perf_counter() - began) / _CALLS)
    return summary(samples)


@click.command(help=__doc__)
@click.option("--tries", default=400_000, help="How often, for each way.")
@click.option("--rounds", default=5, help="How many times all ways are tried.")
def main(tries: int, rounds: int) -> None:
    """Print a line for each way, and keep the figures."""
    fences = Fences()
    document = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": provenance.commit(),
        "versions": provenance.versions(),
        "build": provenance.build(),
        "machine": provenance.machine(),
        "tries": tries,
        "both_old": {
            name: [both_old(tries, ways) for _ in range(rounds)] for name, ways in _WAYS.items()
        },
        "membarrier": not fences.posts_need_fence,
        "seconds": {
            "Fences.full": seconds_of(fences.full),
            "Fences.all_processes": seconds_of(fences.all_processes),
        },
    }
    for name, counts in document["both_old"].items():  # type: ignore[attr-defined]  # a dict, above
        print(f"{name}: both old in {', '.join(map(str, counts))} of {tries} tries")
    write(document, _FILE)
    print(f"wrote {_FILE}")


if __name__ == "__main__":
    main()
