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
    origins = callgraph.origin_of_records()
    profiles = [_losses(request, stacks)]
    spent = spent_by_phase(run)
    order = np.lexsort((run.records["end"], run.records["pid"]))
    bounds = np.searchsorted(run.records["pid"][order], np.arange(run.nprocs + 1))
    for pid in range(run.nprocs):
        rows = order[bounds[pid] : bounds[pid + 1]]
        rows, phases = np.repeat(rows, len(PHASES)), np.tile(np.arange(len(PHASES)), len(rows))
        times = spent[rows, phases]
        kept = times > 0
        samples = [
            below[origin][phase]
            for origin, phase in zip(origins[rows[kept]], phases[kept], strict=True)
        ]
        profiles.append(_sampled(processes_named(run, [pid]), samples, times[kept].tolist()))
    return profiles


def _losses(request: Request, stacks: list[list[int]]) -> dict[str, Any]:
    """Return what is lost and has its root at each call stack."""
    lost = request.profile.book().book.sums.by_origin[list(LOST)].sum(axis=0)
    sums = np.rint(lost / request.profile.run.nprocs).astype(np.int64)
    kept = np.flatnonzero(sums)
    return _sampled("losses", [stacks[row] for row in kept], sums[kept].tolist())


def _sampled(name: str, samples: list[list[int]], weights: list[int]) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
