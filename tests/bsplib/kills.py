"""Kills at random moments: no run may hang, and nothing of it may be left.

``python tests/bsplib/kills.py`` starts a program that communicates in every way, in a pool or as
one run, with or without a recording, and kills one of its processes or its caller by a signal
after a random time. The caller has to end within the limit and to say who died; no process and
no segment of shared memory may be left. ``make soak`` runs it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
from rich.progress import track

MOST_S = 30
"""A run that takes longer hangs."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGQUIT)

PROGRAM = """
import sys
import numpy as np
import bsplib

def main(bsp, size):
    print("begun", flush=True)
    x = bsp.zeros(size)
    bsp.sync()
    for turn in range(10**6):
        bsp.put((bsp.pid + 1) % bsp.nprocs, np.full(size, turn), x)
        bsp.send(0, np.zeros(turn % 3 * size))
        with bsp.partition([1, bsp.nprocs]) as sub:
            sub.allreduce(turn)
        if bsp.pid:
            bsp.get_at([0], [turn % size], x)
        bsp.sync()
        bsp.send((bsp.pid + 1) % bsp.nprocs, turn)
        bsp.oblsync(1)

if __name__ == "__main__":
    way, nprocs, size, method, profile = sys.argv[1:]
    options = {"nprocs": int(nprocs), "start_method": method or None}
    if way == "pool":
        with bsplib.Pool(**options) as pool:
            pool.run(main, int(size), profile=profile or None)
    else:
        bsplib.run(main, int(size), profile=profile or None, **options)
"""


def family(pid: int) -> list[int]:
    """Return the processes that descend from a process."""
    children = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        children += [int(word) for word in task.read_text().split()]
    return children + [each for child in children for each in family(child)]


def is_of_run(pid: int) -> bool:
    """Tell whether a process runs the program: no helper of multiprocessing does."""
    try:
        helps = b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return not helps and not family(pid)  # the fork server is the parent of others


def in_shared_memory() -> set[str]:
    """Return the names in /dev/shm, without those of MPI libraries, which others may run."""
    names = set(os.listdir("/dev/shm"))
    return {name for name in names if not name.startswith(("sm_segment", "mpich", "psm3"))}


def lives(pid: int) -> bool:
    """Tell whether a process has not ended; what nobody has waited for has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def one_kill(seed: int, folder: Path) -> tuple[str, str]:
    """Run and kill once; return what was done, and what went wrong, empty if nothing."""
    draw = random.Random(seed)
    way, nprocs = draw.choice(("run", "pool")), draw.choice((2, 3, 4, 8))
    profile = str(folder / f"{seed}.bsp") if draw.random() < 0.3 else ""
    method = draw.choice(("", "", "forkserver", "spawn"))
    victim, number = draw.choice(("process", "process", "caller")), draw.choice(SIGNALS)
    before = in_shared_memory()
    line = [sys.executable, str(folder / "program.py"), way, str(nprocs)]
    line += [str(draw.choice((1, 100, 30_000))), method, profile]
    caller = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    caller.stdout.readline()  # one process has begun; the others may be starting
    time.sleep(draw.choice((0, draw.random() * 0.05, draw.random() * 0.5)))
    known = family(caller.pid)
    processes = list(filter(is_of_run, known))
    chosen = caller.pid if victim == "caller" or not processes else draw.choice(processes)
    os.kill(chosen, number)
    done = f"{way}, {victim}, {signal.Signals(number).name}"
    if number == signal.SIGQUIT or (number == signal.SIGINT and chosen != caller.pid):
        time.sleep(0.3)  # it asks for whereabouts, or is for the caller: the run goes on
        caller.send_signal(signal.SIGTERM)
    try:
        _, errors = caller.communicate(timeout=MOST_S)
    except subprocess.TimeoutExpired:
        for pid in (*family(caller.pid), caller.pid):
            os.kill(pid, signal.SIGKILL)
        caller.communicate()
        return done, f"hung: {line}"
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(map(lives, known)):
        time.sleep(0.01)
    if left := [pid for pid in known if lives(pid)]:
        return done, f"processes left: {left}"
    if new := in_shared_memory() - before:
        return done, f"left in /dev/shm: {new}"
    if caller.returncode == 0:
        return done, f"status 0; {errors[-300:]}"
    return done, ""


@click.command()
@click.option("--count", default=300, show_default=True, help="Number of kills.")
@click.option("--seed", default=0, show_default=True, help="Number of the first one.")
def command(count: int, seed: int) -> None:
    """Kill processes at random moments, and count what went wrong."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # a shell lets its jobs in the background ignore some
    ends, wrong = Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        for number in track(range(seed, seed + count), "kills", auto_refresh=False):
            done, why = one_kill(number, folder)
            ends[done] += 1
            if why:
                wrong += 1
                click.echo(f"seed {number}, {done}: {why}")
    for done, times in sorted(ends.items()):
        click.echo(f"{times:5} {done}")
    click.echo(f"{count} kills, {wrong} went wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    command()
