"""What a superstep, a transfer, a machine's start and a record cost, at the user's call.

``python -m benchmarks.bench_superstep`` writes ``benchmarks/results/superstep.json``.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bsplib
from apps import bitonic_sort, broadcast
from benchmarks import peers, programs
from benchmarks.harness import Case, Section, measure

MIB = 2**20


def on(nprocs: int, program: Callable[..., float], *args: Any, **kwargs: Any) -> float:
    """Run a program; return what its process 0 measured."""
    seconds: float = bsplib.run(program, *args, nprocs=nprocs, **kwargs)[0]
    return seconds


def timed(call: Callable[..., Any], *args: Any, **kwargs: Any) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    call(*args, **kwargs)
    return time.perf_counter() - began


def empty_supersteps(_: ExitStack) -> Sequence[Case]:
    """Compare a sync that delivers nothing with barriers."""
    counts = {1: 20_000, 2: 4_000, 4: 1_000, 16: 200}
    cases = [
        Case(f"multiprocessing.Barrier, p = {p}", partial(peers.library_barrier, p, counts[p] // 4))
        for p in (2, 4, 16)
    ]
    cases.append(Case("spin barrier, p = 2", partial(peers.spin_barrier, 2, counts[2])))
    for p, count in counts.items():
        against = [case.name for case in cases if case.name.endswith(f"p = {p}")]
        sample = partial(on, p, programs.supersteps, count)
        cases.append(Case(f"sync, p = {p}", sample, tuple(against)))
    return cases


def virtual_supersteps(_: ExitStack) -> Sequence[Case]:
    """Measure a sync of virtual processors."""

    def sample(nprocs: int) -> float:
        return on(nprocs, programs.supersteps, 20, backend="sim") / nprocs

    return [Case(f"sim, p = {p}", partial(sample, p)) for p in (16, 512)]


def one_put(nbytes: int, count: int, _: ExitStack) -> Sequence[Case]:
    """Compare a put and a sync with a copy between two barriers, and with a copy alone."""
    copy, limit = "np.copyto alone", "np.copyto between two spin barriers"
    return [
        Case(copy, partial(peers.plain_copy, nbytes, count)),
        Case(limit, partial(peers.copy_between_barriers, nbytes, count)),
        Case("put, sync", partial(on, 2, programs.puts, count, nbytes), (limit, copy)),
        Case(
            "hpput, sync",
            partial(on, 2, programs.puts, count, nbytes, unbuffered=True),
            (limit, copy),
        ),
    ]


def many_puts(_: ExitStack) -> Sequence[Case]:
    """Compare many puts of a word, by offset and into views, with one put_at of as many."""
    at_once, by_offset = "put_at of 1000 words, sync", "1000 puts by offset, sync"
    return [
        Case(at_once, partial(on, 2, programs.small_puts_at, 50, 1000)),
        Case(by_offset, partial(on, 2, programs.small_puts, 20, 1000), (at_once,)),
        Case(
            "1000 puts into views, sync",
            partial(on, 2, programs.small_puts_into_views, 10, 1000),
            (by_offset,),
        ),
    ]


def many_messages(_: ExitStack) -> Sequence[Case]:
    """Compare many messages with those of a pipe."""
    pipe = "multiprocessing.Pipe, send_bytes and recv_bytes"
    return [
        Case(pipe, partial(peers.pipe_messages, 1000, 10)),
        Case(
            "1000 sends, sync, messages()",
            partial(on, 2, programs.small_messages, 20, 1000),
            (pipe,),
        ),
    ]


def starts(_: ExitStack) -> Sequence[Case]:
    """Compare the start of four processes, an empty program and their end."""
    pool = "multiprocessing.Pool(4), map, join"
    return [
        Case(pool, partial(timed, peers.library_pool, 4)),
        Case("bsplib.run, p = 4", partial(timed, bsplib.run, programs.nothing, nprocs=4), (pool,)),
    ]


def pool_runs(stack: ExitStack) -> Sequence[Case]:
    """Compare an empty program in a pool of four processes that are there already."""
    ours = stack.enter_context(bsplib.Pool(4))  # forks: before the other one has its threads
    theirs = stack.enter_context(multiprocessing.get_context("fork").Pool(4))
    library = "multiprocessing.Pool.map, p = 4"

    def map_nothing() -> None:
        theirs.map(peers.empty, range(4), chunksize=1)

    return [
        Case(library, lambda: peers.per_turn(50, map_nothing)),
        Case(
            "bsplib.Pool.run, p = 4",
            lambda: peers.per_turn(50, lambda: ours.run(programs.nothing)),
            (library,),
        ),
    ]


def records_of(
    nprocs: int, program: Callable[..., float], args: tuple[int, ...], stack: ExitStack
) -> Sequence[Case]:
    """Compare a program with records and without."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def recorded() -> float:
        path = folder / "trace.bsp"
        try:
            return on(nprocs, program, *args, profile=path)
        finally:
            path.unlink()  # a trace of a program is added to

    return [
        Case("off", partial(on, nprocs, program, *args)),
        Case("on", recorded, ("off",)),
    ]


def figure_3(_: ExitStack) -> Sequence[Case]:
    """Measure the whole run of Jarvis et al., Figure 3: 1500 supersteps, 4096 values."""
    return [Case(f"p = {p}", partial(timed, bsplib.run, broadcast.main, nprocs=p)) for p in (2, 16)]


def virtual_sort(_: ExitStack) -> Sequence[Case]:
    """Measure the whole run of a sort on virtual processors."""
    run = partial(bsplib.run, bitonic_sort.main, 2**16, nprocs=512, backend="sim")
    return [Case("sim, p = 512", partial(timed, run))]


def real_sort(_: ExitStack) -> Sequence[Case]:
    """Compare the whole run of a sort with numpy's in one process."""
    keys = bitonic_sort.random_keys(0, 2**22, 0)

    def sort(bsp: bsplib.Group) -> float:
        bsp.sync()
        began = time.perf_counter()
        bitonic_sort.main(bsp, keys)
        bsp.sync()
        return time.perf_counter() - began

    return [
        Case("np.sort", lambda: timed(np.sort, keys)),
        *(Case(f"bitonic_sort, p = {p}", partial(on, p, sort), ("np.sort",)) for p in (1, 2, 4)),
    ]


SECTIONS = (
    Section("Empty superstep", "superstep", empty_supersteps),
    Section("Empty superstep of a virtual processor", "superstep", virtual_supersteps, 5),
    Section("Put of 8 B, p = 2", "superstep", partial(one_put, 8, 2000)),
    Section("Put of 1 MiB, p = 2", "superstep", partial(one_put, MIB, 100)),
    Section("Put of 16 MiB, p = 2", "superstep", partial(one_put, 16 * MIB, 10)),
    Section("Puts of 8 B, p = 2", "put", many_puts),
    Section("Messages of 8 B, p = 2", "message", many_messages),
    Section("Start, empty program and end of a machine", "run", starts),
    Section("Empty program in a pool", "run", pool_runs),
    Section(
        "Recording of supersteps, p = 1",
        "superstep",
        partial(records_of, 1, programs.supersteps, (10_000,)),
    ),
    Section(
        "Recording of supersteps, p = 2",
        "superstep",
        partial(records_of, 2, programs.supersteps, (4_000,)),
    ),
    Section(
        "Recording of puts, p = 1", "put", partial(records_of, 1, programs.small_puts, (20, 1000))
    ),
    Section("Broadcasts of Jarvis et al. (2002), Figure 3", "run", figure_3, 5),
    Section("Bitonic sort of 2^22 float64", "sort", real_sort, 5),
    Section("Bitonic sort of 2^16 float64 on virtual processors", "run", virtual_sort, 3, 0),
)


def main() -> None:
    """Measure everything."""
    print(f"wrote {measure('superstep', SECTIONS).name}")


if __name__ == "__main__":
    main()
