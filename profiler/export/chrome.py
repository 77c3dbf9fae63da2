"""The course of a run in the Trace Event Format, for Perfetto and Chrome.

Each process is a thread with its supersteps as slices. Inside, its computation, waiting for
a core, communication and idle time follow one another: how the first three were mixed was
not recorded. Arrows lead from the process with the most computation of a superstep to
that of the next one, and a counter shows the h-relation.

Source: Trace Event Format, Google; times are microseconds, here with three decimals.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import (
    PHASES,
    computation_ns,
    h_relation,
    record_around,
    spent_by_phase,
    uninterrupted,
)
from bsplib.profiler.format import processes_named, title_lines
from bsplib.profiler.limits import check_file
from bsplib.profiler.window import root_supersteps
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsplib.profiler.export.table import Request
    from bsplib.recording.records import Run

    Event = dict[str, Any]


def write(request: Request, file: BinaryIO) -> None:
    """Write the course of the run of a request.

    Raises:
        TooLargeError: there are too many records.
    """
    run = request.profile.run
    check_file(len(run.records), "records", size_bytes=500)
    file.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
    separator = b""
    for event in _events(request):
        file.write(separator + json.dumps(event, ensure_ascii=False).encode())
        separator = b",\n"
    file.write(b"\n]}\n")


def _events(request: Request) -> Iterator[Event]:
    run = request.profile.run
    yield from _names(run)
    yield from _slices(request)
    yield from _h_counter(run)
    yield from _arrows(run)


def _names(run: Run) -> Iterator[Event]:
    """Yield the names of the tracks, and their order."""
    yield _meta("process_name", 0, {"name": title_lines(run)[0]})
    for pid in range(run.nprocs):
        yield _meta("thread_name", pid, {"name": processes_named(run, [pid])})
        yield _meta("thread_sort_index", pid, {"sort_index": pid})


def _meta(name: str, pid: int, args: dict[str, Any]) -> Event:
    return _event("M", name, tid=pid, args=args)


def _slices(request: Request) -> Iterator[Event]:
    """Yield the supersteps of each process, each followed by what is inside it."""
    run = request.profile.run
    before = spent_by_phase(run)
    before[:, 2] = run.records["comm_calls"]  # the rest of the communication follows the release
    amounts = before.tolist()
    moments = np.stack([run.records[name] for name in _MOMENTS], axis=1).tolist()
    pids = run.records["pid"].tolist()
    parts: defaultdict[int, list[list[float]]] = defaultdict(list)
    around, busy = record_around(run), (run.records["start"], run.records["arrive"])
    found = uninterrupted(run.records, around, *busy)
    for row, *part in zip(*(column.tolist() for column in found), strict=True):
        parts[row].append(part)
    described = list(_described(request))
    for row in _in_order(run):
        pid, (start, arrive, released, end) = pids[row], moments[row]
        name, args = described[row]
        yield _slice("superstep", name, pid, (start, end)) | {"args": args}
        for at, until, share in parts[row]:
            ends = itertools.accumulate((share * each for each in amounts[row][:3]), initial=at)
            for phase, (begun, ended) in zip(PHASES, itertools.pairwise(ends), strict=False):
                if begun < (ended := min(ended, until)):
                    yield _slice("phase", phase, pid, (begun, ended))
        for phase, begun, ended in ((PHASES[3], arrive, released), (PHASES[2], released, end)):
            if begun < ended:
                yield _slice("phase", phase, pid, (begun, ended))


_MOMENTS = ("start", "arrive", "released", "end")


def _described(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the arguments of the slice of each record."""
    callgraph, run = request.profile.callgraph, request.profile.run
    records = run.records
    leaves = [callgraph.graph.nodes[chain[-1]]["node"] for chain in callgraph.origins]
    labels = [fmt.label(leaf) for leaf in leaves]
    kinds = {kind.value: kind.name.lower() for kind in Kind}
    numbers = (records["superstep"], records["group"], records["kind"], *h_relation(run))
    columns = [column.astype(np.int64).tolist() for column in numbers]
    origins = callgraph.origin_of_records().tolist()
    for origin, superstep, group, kind, h_out, h_in in zip(origins, *columns, strict=True):
        yield (
            labels[origin],
            {
                "superstep": superstep,
                "group": group,
                "sync": kinds[kind],
                "h_out_bytes": h_out,
                "h_in_bytes": h_in,
                "node": leaves[origin].id,
            },
        )


def _event(kind: str, name: str, **more: Any) -> Event:
    """Return an event; all processes of a run are threads of one process of the format."""
    return {"ph": kind, "name": name, "pid": 1, **more}


def _slice(category: str, name: str, pid: int, span: Sequence[float]) -> Event:
    start, end = (round(ns) for ns in span)
    began, lasted = _us(start), _us(end - start)
    while began + lasted > _us(end):  # by rounding: it would be drawn inside the next one
        lasted = math.nextafter(lasted, 0.0)
    return _event("X", name, cat=category, tid=pid, ts=began, dur=lasted)


def _us(ns: float) -> float:
    return round(ns) / 1000


def _in_order(run: Run) -> list[int]:
    """Return the records by process and start; one that contains others is before them."""
    records = run.records
    keys = (records["group"], -records["end"], records["start"], records["pid"])
    order: list[int] = np.lexsort(keys).tolist()
    return order


def _h_counter(run: Run) -> Iterator[Event]:
    """Yield the h-relation of the supersteps of all processes, with that of their sub-groups."""
    records = run.records
    if len(records) == 0:
        return
    numbers, step = np.unique(root_supersteps(run), return_inverse=True)
    sums = np.bincount(
        step * run.nprocs + records["pid"],
        np.maximum(*h_relation(run)),
        len(numbers) * run.nprocs,
    ).reshape(len(numbers), run.nprocs)
    starts = np.full(len(numbers), np.iinfo(np.int64).max)
    np.minimum.at(starts, step, records["start"].copy())  # aligned: fast
    for start, greatest, mean in zip(starts, sums.max(axis=1), sums.mean(axis=1), strict=True):
        yield _counter(start, float(greatest), float(mean))
    yield _counter(records["end"].max(), 0.0, 0.0)


def _counter(ns: int, greatest: float, mean: float) -> Event:
    args = {"maximum": greatest, "average": mean}
    return _event("C", "h-relation in bytes", ts=_us(ns), args=args)


def _arrows(run: Run) -> Iterator[Event]:
    """Yield arrows between the processes that computed most in one superstep and the next."""
    rows = np.flatnonzero(run.records["group"] == 0)
    records, comp = run.records[rows], computation_ns(run)[rows]
    order = np.lexsort((records["pid"], -comp, records["superstep"]))
    first = np.flatnonzero(np.diff(records["superstep"][order], prepend=-1))
    greatest = records[order[first]]
    middle = (greatest["start"] + greatest["arrive"]) // 2
    ends = list(zip(greatest["pid"].tolist(), middle.tolist(), strict=True))
    for number, (source, target) in enumerate(itertools.pairwise(ends)):
        for kind, (pid, ns), more in (("s", source, {}), ("f", target, {"bp": "e"})):
            times = {"tid": pid, "ts": _us(ns), **more}
            yield _event(kind, "most computation", cat="critical", id=number, **times)
