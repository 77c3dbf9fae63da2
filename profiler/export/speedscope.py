"""The profile for speedscope: what was lost by call stack, and the time of each process.

The times of a process are in the order of its supersteps, so that speedscope's view in order
of time is the course of the process. Below a cost centre stands what was done there.

Source: file format of speedscope, version 0.0.1, ``SampledProfile``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.book import LOST
from bsplib.profiler.costs import PHASES, spent_by_phase
from bsplib.profiler.format import processes_named, title_lines
from bsplib.profiler.limits import check_file

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.export.table import Request

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(request: Request, file: BinaryIO) -> None:
    """Write the losses of a request, and a profile of each process.

    Raises:
        TooLargeError: there are too many records.
    """
    callgraph = request.profile.callgraph
    samples = len(PHASES) * len(callgraph.run.table("records"))
    check_file(samples, "samples", size_bytes=30)
    document = {
        "$schema": SCHEMA,
        "exporter": "bsplib",
        "name": title_lines(callgraph.run)[0],
        "activeProfileIndex": 0,
        "shared": {"frames": _frames(callgraph)},
        "profiles": _profiles(request),
    }
    file.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def _frames(callgraph: CallGraph) -> list[dict[str, Any]]:
    """Return the nodes as frames, and after them the phases."""
    frames: list[dict[str, Any]] = []
    for _, node in callgraph.graph.nodes(data="node"):
        place = {"file": fmt.visible(node.file), "line": node.line} if node.file else {}
        frames.append({"name": fmt.label(node), **place})
    return frames + [{"name": phase} for phase in PHASES]


def _profiles(request: Request) -> list[dict[str, Any]]:
    """Return the losses by call stack, and the time of each process in order."""
    callgraph, run = request.profile.callgraph, request.profile.run
    frame = {name: number for number, name in enumerate(callgraph.graph)}
    stacks = [[frame[name] for name in chain] for chain in callgraph.origins]
    below = [[[*stack, len(frame) + phase] for phase in range(len(PHASES))] for stack in stacks]
    lost = request.profile.book().book.sums.by_origin[list(LOST)].sum(axis=0)
    profiles = [_sampled("losses", stacks, np.rint(lost / run.nprocs).astype(np.int64).tolist())]
    origins, spent, pid = callgraph.origin_of_records(), spent_by_phase(run), run.records["pid"]
    order = np.lexsort((run.records["end"], pid))
    by_pid = np.split(order, np.searchsorted(pid[order], np.arange(1, run.nprocs)))
    for number, rows in enumerate(by_pid):
        samples = [each for origin in origins[rows].tolist() for each in below[origin]]
        name = processes_named(run, [number])
        profiles.append(_sampled(name, samples, spent[rows].ravel().tolist()))
    return profiles


def _sampled(name: str, samples: list[list[int]], weights: list[int]) -> dict[str, Any]:
    kept = [position for position, weight in enumerate(weights) if weight > 0]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights[each] for each in kept),
        "samples": [samples[each] for each in kept],
        "weights": [weights[each] for each in kept],
    }
