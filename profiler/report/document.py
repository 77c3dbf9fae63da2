"""A report as one document of plain values, for JSON. ``docs/reference/traces.md`` describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bsplib.profiler import format as fmt
from bsplib.profiler import tables
from bsplib.profiler.account import PARTS
from bsplib.profiler.critical import LOSS
from bsplib.profiler.efficiency import scaling_among
from bsplib.profiler.limits import check_file
from bsplib.profiler.lines import executed_below
from bsplib.profiler.named import find
from bsplib.profiler.repeats import gathered
from bsplib.profiler.rows import METRIC_UNITS, RowChoice, choose
from bsplib.profiler.survey import waiting_ns
from bsplib.profiler.system_time import own_threads_s, page_faults, steal_s
from bsplib.profiler.tables import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.efficiency import ComputationScaling
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.profile import RunProfile
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.repeats import Repeats

Json = dict[str, Any]

FORMAT, VERSION = "bsp report", 3
"""Name and version of the format. The version changes when a name or a meaning does."""


def document(
    runs: Iterable[RunProfile],
    *,
    path: str = LOSS,
    choice: RowChoice | None = None,
    node: str | None = None,
    among: Sequence[RunProfile] | None = None,
) -> Json:
    """Return verdict, losses, nodes and edges of runs.

    Args:
        runs: the runs.
        path: the path to list: ``loss``, or one of ``bsplib.profiler.critical.PATHS``.
        choice: which nodes are listed, in which order; default: all, the greatest loss first.
        node: name or id of a node: list only this one, with its callers and callees.
        among: the runs whose repeats are gathered, and to whose run with the fewest processes
            computation is compared; default: those that are listed.

    Raises:
        ValueError: there is no such path.
        UsageError: no node has this name, or several have it.
        TooLargeError: there are too many nodes and processes for a document.
    """
    runs = list(runs)
    found = None if node is None else find((entry.callgraph for entry in runs), node)
    every = gathered(runs if among is None else among)
    medians = [each.median for each in every]
    listed = [
        _run(profile, path, choice or RowChoice(), found)
        | {"computation_scaling": _scaling(scaling_among(profile, medians))}
        for profile in runs
    ]
    repeated = [each for each in every if len(each.runs) > 1]
    return {
        "format": FORMAT,
        "version": VERSION,
        "runs": listed,
        "repeats": [_repeats(each) for each in repeated],
    }


def _repeats(repeats: Repeats) -> Json:
    """Return what the repeats of a run say together: intervals over all of them."""
    times = [run.elapsed_s for run in repeats.runs]
    return {
        "runs": [run.number for run in repeats.runs],
        "median": repeats.median.number,
        "elapsed_s": [min(times), max(times)],
        "account_s": {part: list(each) for part, each in repeats.account_s().items()},
        "verdict": [
            each.sentence.as_dict()
            | {"interval_s": [each.least_s, each.greatest_s], "found": each.found}
            | {"in_most_runs": each.is_sure, "without_interval_s": each.without_s}
            for each in repeats.intervals()
        ],
    }


def _run(profile: RunProfile, path: str, choice: RowChoice, node: str | None) -> Json:
    book, verdict = profile.book(), profile.verdict()
    names, waited = _listed(profile, choice, node), waiting_ns(profile.run)
    check_file(len(names) * profile.nprocs, "nodes times processes", size_bytes=80)
    return {
        **tables.facts(profile.run, profile.number),
        "repeat": profile.run.repeat,
        "rates": _rates(book.rates),
        "time_s": book.main.time_s,
        "loss_s": book.main.loss_s,
        "waiting_for_core_s": None if waited is None else waited / 1e9,
        "steal_s": steal_s(profile.run),
        "own_threads_s": own_threads_s(profile.run),
        "balanced": verdict.balanced,
        "verdict": [entry.as_dict() for entry in verdict.sentences],
        "verdict_rest": verdict.rest.as_dict() if verdict.rest else None,
        "too_short": verdict.short.text if verdict.short else None,
        "account": account(book),
        "page_faults": (page_faults(profile.callgraph) or {}).get(profile.callgraph.root),
        "losses": [loss.as_dict() for loss in book.losses],
        "path": {"name": path, "nodes": profile.critical_path(path)},
        "root": profile.callgraph.root,
        "nodes": _nodes(profile, names),
        "edges": _edges(profile, set(names)),
        "executed": _executed(profile.callgraph),
    }


def _scaling(found: ComputationScaling | None) -> Json | None:
    """Return the computation scaling against the run with the fewest processes."""
    return None if found is None else {"fraction": found.fraction, **found._asdict()}


def _listed(profile: RunProfile, choice: RowChoice, node: str | None) -> list[str]:
    """Return the ids of the nodes to list, in order."""
    names = [row.node.id for row in choose(profile.book(), choice)[0]]
    if node is None:
        return names
    graph = profile.callgraph.graph
    near = {node, *graph.predecessors(node), *graph.successors(node)} if node in graph else set()
    return [name for name in names if name in near]


def _nodes(profile: RunProfile, names: list[str]) -> list[Json]:
    """Return listed nodes, with what each process has of each metric, as in comp_by_process_s."""
    values = {row["id"]: row for row in rows(tables.nodes(profile.book()))}
    costs = profile.callgraph.graph.nodes(data="cost")
    return [
        values[name]
        | {
            f"{metric}_by_process_{unit}": list(costs[name][metric].pie)
            for metric, unit in METRIC_UNITS.items()
        }
        for name in names
    ]


def _edges(profile: RunProfile, names: set[str]) -> list[Json]:
    """Return the edges between listed nodes."""
    every = rows(tables.edges(profile.book()))
    return [row for row in every if {row["caller"], row["callee"]} <= names]


def _executed(callgraph: CallGraph) -> list[Json]:
    """Return the functions below cost centres of a run that was sampled."""
    return [
        {
            "centre": each.centre,
            "caller": None if each.caller < 0 else each.caller,
            "name": fmt.visible(each.function),
            "file": fmt.visible(each.file),
            "line": each.first_line,
            **{f"{part}_s": value for part, value in each.seconds._asdict().items()},
            "by_process_s": list(each.by_process),
        }
        for each in executed_below(callgraph)
    ]


def account(book: GraphBook) -> Json:
    """Return what the elapsed time was used for, in nanoseconds, by process and for the run."""
    by_process = book.book.by_process()
    return {
        "elapsed_ns": book.book.elapsed_ns,
        "run_ns": dict(zip(PARTS, by_process.sum(axis=1).tolist(), strict=True)),
        "by_process_ns": dict(zip(PARTS, by_process.tolist(), strict=True)),
        "efficiency": book.efficiencies._asdict(),
    }


def _rates(rates: Rates) -> Json:
    """Return rates under names with units."""
    return {
        "g_s_per_byte": rates.g,
        "l_s_per_superstep": rates.l,
        "h_rule": rates.rule,
        "computation_ratio": rates.ratio,
        "source": fmt.visible(rates.source),
        "note": fmt.visible(rates.note),
    }
