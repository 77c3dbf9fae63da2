"""The data of the view "Traffic": the matrix of bytes of a node, and departures from g h + l."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.profiler.departures import SIDES, DepartureSums, summed_up, thinned
from bsplib.profiler.rates import fitted_to
from bsplib.profiler.traffic import Matrix, matrix_of
from bsplib.webui.opened_runs import records_through

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.traffic import Sums
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.tables import Columns
    from bsplib.webui.opened_runs import OpenRun, RunPart

Json = dict[str, Any]

MOST_POINTS = 2000
"""Number of points of a scatter that are sent, roughly."""
MOST_LISTED = 10
"""Number of cost centres that are listed."""


def traffic(opened: OpenRun, query: Mapping[str, str]) -> Json:
    """Return the matrix of a node, ``node``; without it that of the whole run."""
    part = opened.part(query)
    callgraph = opened.callgraph(part)
    chosen = records_through(callgraph, query["node"]) if "node" in query else None
    return describe_matrix(matrix_of(callgraph.run, chosen), callgraph.run.nprocs)


def describe_matrix(matrix: Matrix, nprocs: int) -> Json:
    """Return a matrix as values for JSON; only its cells that are not 0."""
    sender, receiver = np.nonzero(matrix.messages)
    return {
        "nprocs": nprocs,
        "block": matrix.block,
        "cells": {
            "sender": sender.tolist(),
            "receiver": receiver.tolist(),
            "bytes": matrix.bytes[sender, receiver].tolist(),
            "messages": matrix.messages[sender, receiver].tolist(),
        },
        "h_out": _describe_sums(matrix.h_out),
        "h_in": _describe_sums(matrix.h_in),
        "self": matrix.self_bytes.tolist(),
        "bytes": matrix.total_bytes,
        "messages": matrix.total_messages,
    }


def scatter(opened: OpenRun, query: Mapping[str, str]) -> Json:
    """Return how far supersteps depart from g h + l, fitted to the whole run."""
    part = opened.part(query)
    callgraph, rates = opened.callgraph(part), _fitted(opened)
    sums = opened.once(
        _departures_of(part), lambda: summed_up(callgraph.run, rates.g, rates.l, rates.rule)
    )
    found = sums.rows()
    supersteps = int(found["count"].sum())
    points = found if supersteps <= MOST_POINTS else thinned(found)
    return {
        "g": rates.g,
        "l": rates.l,
        "rule": rates.rule,
        "note": rates.note,
        "supersteps": supersteps,
        "patterns": list(SIDES),
        "points": _describe_points(callgraph, points),
        "centres": _describe_centres(callgraph, sums),
    }


def _fitted(opened: OpenRun) -> Rates:
    return opened.once("rates fitted to the run", lambda: fitted_to(opened.run))


def _departures_of(part: RunPart) -> str:
    return f"departures in supersteps {part.supersteps}"


class SavedTraffic:
    """Takes in the windows of a run for the answers of a saved page about its traffic."""

    def __init__(self, opened: OpenRun) -> None:
        self._opened, rates = opened, _fitted(opened)
        self._matrix = Matrix(opened.run)
        self._departures = DepartureSums(opened.run, rates.g, rates.l, rates.rule)

    def add(self, window: RunWindow) -> None:
        """Take in a window."""
        self._matrix.add(window)
        self._departures.add(window)

    def keep(self) -> None:
        """Keep what was summed up with the run, when all windows have been taken in."""
        self._matrix.keep(self._opened.run)
        self._opened.once(_departures_of(self._opened.part({})), lambda: self._departures)


def _describe_points(callgraph: CallGraph, found: Columns) -> Json:
    times = {name: found[name] for name in ("comm_s", "predicted_s")}
    others = ("h", "pattern", "root", "superstep", "group", "count")
    return {
        **{name: found[name].tolist() for name in others},
        **{name: [float(f"{value:.6g}") for value in each] for name, each in times.items()},
        "node": [callgraph.origins[number][-1] for number in found["origin"].tolist()],
    }


def _describe_centres(callgraph: CallGraph, sums: DepartureSums) -> list[Json]:
    """Return the cost centres whose supersteps depart most in sum, in either direction."""
    leaves = [chain[-1] for chain in callgraph.origins]
    place = {leaf: number for number, leaf in enumerate(dict.fromkeys(leaves))}
    number = np.array([place[leaf] for leaf in leaves], np.int64)
    over_s, count = (np.bincount(number, each, len(place)) for each in sums.by_origin())
    order = np.argsort(-np.abs(over_s), kind="stable")[:MOST_LISTED]
    names = list(place)
    return [
        {"node": names[at], "over_s": float(over_s[at]), "supersteps": int(count[at])}
        for at in order.tolist()
        if count[at]
    ]


def _describe_sums(sums: Sums) -> Json:
    total, most, pid = sums
    return {"total": total.tolist(), "most": most.tolist(), "pid": pid.tolist()}
