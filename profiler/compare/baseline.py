"""What a run repeats exactly: h and supersteps of each node, kept in a file and compared.

For given data, seed and number of processes these figures do not depend on the computer or
its load, so that a test can demand that they stay. The keys of nodes contain no line: they
stay the same when a program is edited elsewhere.
"""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from typing import TYPE_CHECKING, Any

from bsplib.output_file import OutputKind
from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import build
from bsplib.profiler.compare.matching import call_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bsplib.profiler.callgraph import CallGraph, Node
    from bsplib.recording.records import Run

FORMAT, VERSION = "bsplib baseline", 1
BASELINE = OutputKind("a baseline of bsplib", lambda head: FORMAT.encode() in head[:100])
"""What a new baseline may replace."""
_FIGURES = {"supersteps": "supersteps", "h": "h", "h_mean": "mean h"}
"""What is kept of a node, with its name in sentences; h and its mean are bytes."""

Facts = dict[str, Any]
"""The facts of a run: ``nprocs``, and ``nodes``, which has the figures of each by its key."""


def facts_of(run: Run) -> Facts:
    """Return what a run repeats exactly.

    Args:
        run: a complete run.

    Returns:
        ``{"nprocs": 4, "nodes": {"cg.py: solve": {"supersteps": 5, "h": 96, "h_mean": 96}}}``;
        a cost centre has a key such as ``cg.py: solve > allreduce (2)``, where it is the
        second of its function. A node without supersteps and h is left out.
    """
    callgraph = build(run)
    nodes = {}
    for key, name in _keys(callgraph):
        cost = callgraph.graph.nodes[name]["cost"]
        if cost.count or cost.h.maximum:
            mean = round(cost.h.average, 3)
            figures = cost.count, int(cost.h.maximum), int(mean) if mean.is_integer() else mean
            nodes[key] = dict(zip(_FIGURES, figures, strict=True))
    return {"nprocs": run.nprocs, "nodes": nodes}


def changes(before: list[Facts], after: list[Facts]) -> list[str]:
    """Return what changed between the facts of the runs of a test, one sentence a node.

    Args:
        before: the facts in the file.
        after: the facts now.

    Returns:
        Sentences such as ``cg.py: solve: supersteps 5 instead of 4, h 400 instead of 320 bytes``;
        empty if all are equal.
    """
    if len(before) != len(after):
        return [f"{fmt.counted(len(after), 'run')} instead of {len(before)}"]
    found = []
    for number, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        run = f"run {number}, " if len(after) > 1 else ""
        found += [f"{run}{change}" for change in _changes_of_run(old, new)]
    return found


def dump(tests: Mapping[str, list[Facts]]) -> str:
    """Return the text of a baseline file: sorted, with one figure a line.

    Args:
        tests: the facts of the runs of each test, by its id.
    """
    content = {"format": FORMAT, "version": VERSION, "tests": tests}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def load(text: str) -> dict[str, list[Facts]]:
    """Return the facts of the tests in a baseline file, by their ids.

    Args:
        text: the content of the file.

    Raises:
        ValueError: it is no baseline file of this version.
    """
    try:
        content = json.loads(text)
        sound = (content["format"], content["version"]) == (FORMAT, VERSION)
        tests: dict[str, list[Facts]] = content["tests"]
        sound = sound and all(_is_sound(run) for runs in tests.values() for run in runs)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is no baseline of bsplib: {error}") from None
    if not sound:
        raise ValueError(f"it is no {FORMAT} of version {VERSION}")
    return tests


def _is_sound(run: Facts) -> bool:
    nodes = run["nodes"].values()
    return type(run["nprocs"]) is int and all(
        isinstance(node[figure], int | float) for node in nodes for figure in _FIGURES
    )


def _keys(callgraph: CallGraph) -> Iterator[tuple[str, str]]:
    """Yield key and id of each node; equal keys are numbered in the order of their lines."""
    nodes = [node for _, node in callgraph.graph.nodes(data="node")]
    seen: Counter[str] = Counter()
    for node in sorted(nodes, key=lambda node: (node.file, node.line)):
        key = _key(callgraph, node)
        seen[key] += 1
        yield (f"{key} ({seen[key]})" if seen[key] > 1 else key), node.id


def _key(callgraph: CallGraph, node: Node) -> str:
    function = callgraph.function_of(node)
    name = f"{posixpath.basename(function.file)}: {function.name}"
    if node.kind == "function":
        return name
    return f"{name} > {call_at(node) or node.sync}"


def _changes_of_run(old: Facts, new: Facts) -> Iterator[str]:
    if old["nprocs"] != new["nprocs"]:
        yield f"{fmt.processes(new['nprocs'])} instead of {old['nprocs']}"
        return
    before, after = old["nodes"], new["nodes"]
    for key in sorted(before.keys() | after.keys()):
        if key not in after:
            yield f"{key}: is gone, which had {_told(before[key])}"
        elif key not in before:
            yield f"{key}: is new, with {_told(after[key])}"
        elif before[key] != after[key]:
            yield f"{key}: {_difference(before[key], after[key])}"


def _told(figures: Mapping[str, Any]) -> str:
    return f"{fmt.counted(figures['supersteps'], 'superstep')} and an h of {figures['h']} bytes"


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {after[figure]} instead of {before[figure]}{' bytes' * (figure != 'supersteps')}"
        for figure, name in _FIGURES.items()
        if before[figure] != after[figure]
    )
