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
from bsplib.profiler.costs import METRICS, by_superstep, group_columns, record_costs
from bsplib.profiler.format import host_names, hosts_of
from bsplib.profiler.rows import COLUMNS, MEASURES, METRIC_UNITS, row_of, row_of_call
from bsplib.profiler.survey import elapsed_s
from bsplib.profiler.system_time import KINDS, page_faults
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsplib.profiler._arrays import Floats
    from bsplib.profiler.book import Book
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.rows import Row
    from bsplib.recording.records import Run


Columns = dict[str, Any]
"""Lists or arrays of equal length, by name."""

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


def nodes(book: GraphBook) -> Columns:
    """Return the functions and cost centres, in the order of the call tree.

    Columns: id, name, kind (``function`` or ``cost_centre``), sync, file, line, and those of
    ``bsplib.profiler.rows.COLUMNS``; where they were measured, minor_faults and major_faults, of
    all processes together.
    """
    found = [row_of(book, name) for name in book.nodes]
    faults = page_faults(book.callgraph) or {}
    identities = {
        "id": [row.node.id for row in found],
        "name": [fmt.visible(row.node.name) for row in found],
        "kind": [row.node.kind for row in found],
        "sync": [row.node.sync for row in found],
        "file": [fmt.visible(row.node.file) for row in found],
        "line": [row.node.line for row in found],
    }
    counted = {
        f"{kind}_faults": [sum(faults[name][kind]) for name in book.nodes]
        for kind in KINDS
        if faults
    }
    return identities | _numbers(found) | counted


def edges(book: GraphBook) -> Columns:
    """Return the calls: caller and callee as ids of nodes, and what came through.

    The other columns are those of ``bsplib.profiler.rows.COLUMNS``.
    """
    names = {
        "caller": [caller for caller, _ in book.edges],
        "callee": [callee for _, callee in book.edges],
    }
    return names | _numbers([row_of_call(book, *edge) for edge in book.edges])


def _numbers(found: Sequence[Row]) -> Columns:
    return {name: [of(row) for row in found] for name, of in COLUMNS.items()}


def processes(callgraph: CallGraph) -> Columns:
    """Return what each process has of each node: one row for each of both.

    Columns: id and name of the node, pid, and comp_s, comm_s, idle_s and h_bytes. Their sums
    over the processes are the averages of the node times the number of processes. Where the
    processes ran on several hosts, host is a column, too, and where page faults were measured,
    minor_faults and major_faults are.
    """
    every, nprocs = callgraph.graph.nodes, callgraph.run.nprocs
    table: Columns = {
        "id": [name for name in every for _ in range(nprocs)],
        "name": [fmt.label(node) for _, node in every(data="node") for _ in range(nprocs)],
        "pid": np.tile(np.arange(nprocs), len(every)),
    }
    if hosts := hosts_of(callgraph.run):
        table["host"] = list(hosts) * len(every)
    for metric, unit in METRIC_UNITS.items():
        pies = [cost[metric].pie for _, cost in every(data="cost")]
        table[f"{metric}_{unit}"] = np.concatenate(pies)
    if faults := page_faults(callgraph):
        for kind in KINDS:
            table[f"{kind}_faults"] = [n for name in every for n in faults[name][kind]]
    return table


def supersteps(book: GraphBook) -> Columns:
    """Return the supersteps of all groups, one row each, by group and number.

    Columns: group (position in the run's list, 0 for all processes), superstep (from 0 in its
    group), id and name of the cost centre at which its process of the least pid ended it,
    sync, processes (how many of the group have a record), start_s and end_s (of the first and
    the last process), and for each metric maximum, average and minimum over the processes of
    the group, such as comp_max_s, with the least pid of the greatest computation
    (comp_max_pid) and the greatest h (h_max_pid); at the end loss_s, what is lost and has its root
    in the superstep, on average over the processes of the run.
    """
    callgraph, run = book.callgraph, book.callgraph.run
    records, by = run.records, by_superstep(run)
    firsts = records[by.leader(-records["pid"].astype(np.int64))]
    at_end = [callgraph.graph.nodes[chain[-1]]["node"] for chain in callgraph.origins]
    leaves = [at_end[origin] for origin in callgraph.origin_of(firsts).tolist()]
    present = by.sums(np.ones(len(records))).astype(np.int64)
    table: Columns = {
        "group": firsts["group"].astype(np.int64),
        "superstep": firsts["superstep"],
        "id": [node.id for node in leaves],
        "name": [fmt.label(node) for node in leaves],
        "sync": [Kind(kind).name.lower() for kind in firsts["kind"]],
        "processes": present,
        "start_s": by.least(records["start"]) / 1e9,
        "end_s": by.greatest(records["end"]) / 1e9,
    }
    sizes = group_columns(run).size[firsts["group"]]
    for metric, values in zip(METRICS, record_costs(run), strict=True):
        unit = 1 if metric == "h" else 1e9
        low = np.where(present < sizes, 0.0, by.least(values))
        measured = by.greatest(values) / unit, by.sums(values) / sizes / unit, low / unit
        names = (f"{metric}_{measure}_{METRIC_UNITS[metric]}" for measure in MEASURES)
        table |= dict(zip(names, measured, strict=True))
        if metric in WHO:
            table[f"{metric}_max_pid"] = records["pid"][by.leader(values)].astype(np.int64)
    return table | {"loss_s": by.sums(lost_by_record(book.book)) / run.nprocs / 1e9}


def lost_by_record(book: Book) -> Floats:
    """Return what is lost and has its root in each record of a run, in nanoseconds.

    What has its root so long ago that its record is not known any more has none here, either.
    """
    found = [(booked.account.position, booked.lost) for booked in book.by_window()]
    positions = np.sort(np.concatenate([np.zeros(0, np.int64), *(each for each, _ in found)]))
    sums = np.zeros(len(positions))
    for _, lost in found:
        inside = lost.is_lost & (lost.position >= 0)
        np.add.at(sums, np.searchsorted(positions, lost.position[inside]), lost.ns[inside])
    return sums


# -- the call graph as a networkx graph -----------------------------------------------------------


def plain_graph(book: GraphBook) -> networkx.DiGraph:
    """Return a call graph whose attributes are texts and numbers only.

    Nodes are the ids. Their attributes are the other columns of :func:`nodes`, those of an edge the
    columns of :func:`edges`. Attributes of the graph: root, program, nprocs, backend.
    """
    run = book.callgraph.run
    facts = {key: fmt.said(run, key) for key in ("program", "backend")}
    graph = networkx.DiGraph()
    graph.graph |= {"root": book.callgraph.root, "nprocs": run.nprocs, **facts}
    for row in rows(nodes(book)):
        graph.add_node(row.pop("id"), **row)
    for row in rows(edges(book)):
        graph.add_edge(row.pop("caller"), row.pop("callee"), **row)
    return graph


def rows(columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, as dicts of texts and numbers of Python."""
    values = [np.asarray(column, object).tolist() for column in columns.values()]
    for row in zip(*values, strict=True):
        yield dict(zip(columns, row, strict=True))
