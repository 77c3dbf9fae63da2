"""A profile as tables of plain values: one column a name, with the unit at its end.

The columns are lists and numpy arrays of equal length, so that
``pandas.DataFrame(nodes(callgraph))`` is a table. Names are made visible, but are still
untrusted text: markup in them is not escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx
import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.account import PARTS
from bsplib.profiler.book import LOSS_CAUSES
from bsplib.profiler.costs import METRICS, record_costs, superstep_numbers
from bsplib.profiler.hosts import host_names, hosts_of
from bsplib.profiler.page_faults import KINDS, page_faults
from bsplib.profiler.survey import elapsed_s
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from bsplib.profiler.book import Book, Time
    from bsplib.profiler.callgraph import CallGraph, Cost, Node
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.recording.records import Run


Columns = dict[str, Any]
"""Lists or arrays of equal length, by name."""

UNITS = {"comp": "s", "comm": "s", "idle": "s", "h": "bytes"}
"""Unit of each metric, at the end of the names of its columns."""
MEASURES = ("max", "avg", "min")
"""Maximum, average and minimum, in the names of columns."""
WHO = ("comp", "h")
"""Metrics for which the process with the greatest value is named."""


def facts(run: Run, number: int) -> dict[str, str | int | float | bool]:
    """Return what a run was: its number in the trace, program, processes, time.

    Texts that the trace does not have are ``unknown``.
    """
    return {
        "run": number,
        "program": fmt.program(run, most=10_000),
        "host": host_names(run),
        "backend": fmt.said(run, "backend"),
        "started": fmt.said(run, "started"),
        "nprocs": run.nprocs,
        "elapsed_s": elapsed_s(run),
        "complete": run.complete,
        "error": "" if run.complete else fmt.said(run, "error"),
    }


def nodes(callgraph: CallGraph, book: GraphBook | None = None) -> Columns:
    """Return the functions and cost centres, in the order of the call tree.

    Columns: id, name, kind (``function`` or ``cost_centre``), sync, file, line, supersteps,
    elapsed_s, and for each of comp, comm, idle and h maximum, average and minimum, such as
    comp_max_s and h_avg_bytes. With a book, the columns of :func:`times` follow; and where
    they were measured, minor_faults and major_faults, of all processes together.
    """
    found, values = _nodes_and_costs(callgraph)
    booked = {} if book is None else times([book.nodes[node.id] for node in found])
    faults = page_faults(callgraph) or {}
    counted = {
        f"{kind}_faults": [sum(faults[node.id][number]) for node in found]
        for number, kind in enumerate(KINDS)
        if faults
    }
    return _identities(found) | costs(values) | booked | counted


def edges(callgraph: CallGraph, book: GraphBook | None = None) -> Columns:
    """Return the calls: caller and callee as ids of nodes, and the cost that came through.

    The columns of the costs are those of :func:`nodes`.
    """
    rows = list(callgraph.graph.edges(data="cost"))
    names = {"caller": [row[0] for row in rows], "callee": [row[1] for row in rows]}
    booked = {} if book is None else times([book.edges[row[:2]] for row in rows])
    return names | costs([row[2] for row in rows]) | booked


def processes(callgraph: CallGraph) -> Columns:
    """Return what each process has of each node: one row for each of both.

    Columns: id and name of the node, pid, and comp_s, comm_s, idle_s and h_bytes. Their sums
    over the processes are the averages of the node times the number of processes. Where the
    processes ran on several hosts, host is a column, too, and where page faults were measured,
    minor_faults and major_faults are.
    """
    found, values = _nodes_and_costs(callgraph)
    nprocs = callgraph.run.nprocs
    table: Columns = {
        "id": [node.id for node in found for _ in range(nprocs)],
        "name": [fmt.label(node) for node in found for _ in range(nprocs)],
        "pid": np.tile(np.arange(nprocs), len(found)),
    }
    if hosts := hosts_of(callgraph.run):
        table["host"] = list(hosts) * len(found)
    for metric in METRICS:
        pies = [cost[metric].pie for cost in values]
        table[f"{metric}_{UNITS[metric]}"] = np.concatenate(pies)
    if faults := page_faults(callgraph):
        for number, kind in enumerate(KINDS):
            table[f"{kind}_faults"] = [n for node in found for n in faults[node.id][number]]
    return table


def supersteps(callgraph: CallGraph, book: Book) -> Columns:
    """Return the supersteps of all groups, one row each, by group and number.

    Columns: group (position in the run's list, 0 for all processes), superstep (from 0 in its
    group), id and name of the cost centre at which its process of the least pid ended it,
    sync, processes (how many of the group have a record), start_s and end_s (of the first and
    the last process), and for each metric maximum, average and minimum over the processes of
    the group, such as comp_max_s, with the least pid of the greatest computation
    (comp_max_pid) and the greatest h (h_max_pid); at the end loss_s, what is lost and has its root
    in the superstep, on average over the processes of the run.
    """
    run = callgraph.run
    numbers = superstep_numbers(run)
    order = np.lexsort((run.records["pid"], numbers))
    records, numbers = run.records[order], numbers[order]
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    present = np.diff(starts, append=len(records))
    firsts = records[starts]
    leaves = _leaves(callgraph)[callgraph.origin_of_records()[order][starts]]
    table: Columns = {
        "group": firsts["group"].astype(np.int64),
        "superstep": firsts["superstep"],
        "id": [node.id for node in leaves],
        "name": [fmt.label(node) for node in leaves],
        "sync": [Kind(kind).name.lower() for kind in firsts["kind"]],
        "processes": present,
        "start_s": np.minimum.reduceat(records["start"], starts) / 1e9,
        "end_s": np.maximum.reduceat(records["end"], starts) / 1e9,
    }
    sizes = np.array([group.size for group in run.groups])[firsts["group"]]
    for metric, values in zip(METRICS, record_costs(run)[:, order], strict=True):
        scaled = values / (1 if metric == "h" else 1e9)
        low = np.where(present < sizes, 0.0, np.minimum.reduceat(scaled, starts))
        measured = np.maximum.reduceat(scaled, starts), np.add.reduceat(scaled, starts) / sizes, low
        table |= dict(zip(_names(metric), measured, strict=True))
        if metric in WHO:
            greatest = np.lexsort((records["pid"], -values, numbers))[starts]
            table[f"{metric}_max_pid"] = records["pid"][greatest].astype(np.int64)
    lost = np.add.reduceat(lost_by_record(book)[order], starts) if len(starts) else np.zeros(0)
    return table | {"loss_s": lost / run.nprocs / 1e9}


def lost_by_record(book: Book) -> NDArray[np.float64]:
    """Return what is lost and has its root in each record of a run, in nanoseconds.

    What has its root so long ago that its record is not known any more has none here, either.
    """
    found = [(booked.account.position, booked.lost) for booked in book.by_window()]
    positions = np.sort(np.concatenate([np.zeros(0, np.int64), *(each for each, _ in found)]))
    sums = np.zeros(len(positions))
    for _, lost in found:
        inside = (lost.cause < LOSS_CAUSES) & (lost.origin >= 0) & (lost.position >= 0)
        np.add.at(sums, np.searchsorted(positions, lost.position[inside]), lost.ns[inside])
    return sums


def costs(values: Sequence[Cost]) -> Columns:
    """Return costs as columns: supersteps, elapsed_s, and three measures of each metric."""
    table: Columns = {
        "supersteps": [cost.count for cost in values],
        "elapsed_s": [cost.elapsed_s for cost in values],
    }
    for metric in METRICS:
        summaries = [cost[metric] for cost in values]
        measured = zip(*((x.maximum, x.average, x.minimum) for x in summaries), strict=True)
        table |= dict(zip(_names(metric), map(list, measured), strict=False))
    return table


def times(values: Sequence[Time]) -> Columns:
    """Return what is booked as columns: time_s, loss_s, and the parts of the account.

    The parts add up to time_s, and loss_s is the sum of imbalance_s, transfer_imbalance_s,
    blocked_s and core_s.
    """
    parts = {
        f"{part}_s": [time.part_s(number) for time in values] for number, part in enumerate(PARTS)
    }
    return {
        "time_s": [time.time_s for time in values],
        "loss_s": [time.loss_s for time in values],
        **parts,
    }


def _nodes_and_costs(callgraph: CallGraph) -> tuple[list[Node], list[Cost]]:
    data = [data for _, data in callgraph.graph.nodes(data=True)]
    return [item["node"] for item in data], [item["cost"] for item in data]


def _identities(found: Sequence[Node]) -> Columns:
    """Return what identifies nodes, as columns."""
    return {
        "id": [node.id for node in found],
        "name": [fmt.visible(node.name) for node in found],
        "kind": [node.kind for node in found],
        "sync": [node.sync for node in found],
        "file": [fmt.visible(node.file) for node in found],
        "line": [node.line for node in found],
    }


def _leaves(callgraph: CallGraph) -> NDArray[np.object_]:
    """Return the cost centre of each origin."""
    found = np.empty(len(callgraph.origins), object)
    for position, origin in enumerate(callgraph.origins):
        found[position] = callgraph.graph.nodes[origin.chain[-1]]["node"]
    return found


def _names(metric: str) -> list[str]:
    """Return the names of the columns of a metric."""
    return [f"{metric}_{measure}_{UNITS[metric]}" for measure in MEASURES]


# -- the call graph as a networkx graph -----------------------------------------------------------


def plain_graph(callgraph: CallGraph, book: GraphBook | None = None) -> networkx.DiGraph:
    """Return a call graph whose attributes are texts and numbers only.

    Nodes are the ids. Their attributes are the other columns of ``bsplib.profiler.tables.nodes``,
    those of an edge the columns of ``bsplib.profiler.tables.edges``: seconds, bytes and counts with
    the unit in the name; with a book also times and losses. Attributes of the graph:
    root, program, nprocs, backend.
    """
    run = callgraph.run
    facts = {key: str(run.meta.get(key, "unknown")) for key in ("program", "backend")}
    visible = {key: fmt.visible(value) for key, value in facts.items()}
    graph = networkx.DiGraph()
    graph.graph |= {"root": callgraph.root, "nprocs": run.nprocs, **visible}
    for row in rows(nodes(callgraph, book)):
        graph.add_node(row.pop("id"), **row)
    for row in rows(edges(callgraph, book)):
        graph.add_edge(row.pop("caller"), row.pop("callee"), **row)
    return graph


def rows(columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, as dicts of texts and numbers of Python."""
    values = [np.asarray(column, object).tolist() for column in columns.values()]
    for row in zip(*values, strict=True):
        yield dict(zip(columns, row, strict=True))
