"""A backend without shared memory: forked processes that exchange everything through pipes.

The tests of the primitives run on it, and so show that the code above the ports needs neither
shared memory nor a single interpreter. docs/howto/backend.md shows it.
"""

from __future__ import annotations

import itertools
import multiprocessing
import signal
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

from bsplib.backends.launching import Backend, NothingKept, Options, Report, Work
from bsplib.backends.outcomes import Limit, await_outcomes
from bsplib.backends.stream import Workers, serve
from bsplib.backends.table import own_cores

Pair = tuple[Connection, Connection]


def process(
    pid: int, pairs: Mapping[tuple[int, int], Pair], callers: Sequence[Pair], work: Work
) -> None:
    """Do some work as one of the processes of a run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    others = {}
    for pids, ends in pairs.items():
        for number, end in zip(pids, ends, strict=True):
            if number == pid:
                others[sum(pids) - pid] = end
            else:
                end.close()
    for number, (theirs, ours) in enumerate(callers):
        theirs.close()
        if number != pid:
            ours.close()
    serve(work.alone, pid, others, callers[pid][1])


def launch(work: Work, options: Options) -> Report:
    """Start the processes for some work; return how they ended."""
    context = multiprocessing.get_context("fork")
    pids = range(options.nprocs)
    pairs = {two: context.Pipe() for two in itertools.combinations(pids, 2)}
    callers = [context.Pipe() for _ in pids]
    processes = [context.Process(target=process, args=(pid, pairs, callers, work)) for pid in pids]
    for each in processes:
        each.start()
    for end in (*itertools.chain(*pairs.values()), *(theirs for _, theirs in callers)):
        end.close()

    def status(pid: int) -> int | None:
        processes[pid].join()
        return processes[pid].exitcode

    workers = Workers({pid: callers[pid][0] for pid in pids}, work.read, status)
    try:
        return Report(await_outcomes(workers, Limit(options.timeout)))
    finally:
        workers.close()
        for pid, each in enumerate(processes):
            if pid in workers.missing:
                each.kill()
            each.join()
            each.close()


PIPES = Backend(
    name="pipes",
    summary="processes that share nothing",
    launch=launch,
    keep=lambda options: NothingKept(
        lambda work, timeout: launch(work, options._replace(timeout=timeout))
    ),
    most_processes=64,
    usual_processes=own_cores,
    machine="shared-memory",
    source=__file__,
)
