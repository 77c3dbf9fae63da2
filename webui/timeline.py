"""The data of the view "Timeline": a window of the heat map of processes and supersteps.

Amounts are sent as whole numbers of 16 bits, in base 64, with the unit of each column: a
window of a thousand columns and a hundred rows has close to a million amounts.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.profiler.account import PARTS
from bsplib.profiler.heatmap import LAYERS, Heatmap
from bsplib.profiler.rates import rates_of_run
from bsplib.profiler.spending import Spending, SpendingSums
from bsplib.webui.opened_runs import AddressError, OpenRun, number_in, records_through

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from bsplib.profiler.account import Account
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.heatmap import Window
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.window import RunWindow

    Floats = NDArray[np.float64]

Json = dict[str, Any]

MOST_ROWS = 128
"""Greatest number of rows of a window on a served page."""
SAVED_ROWS = 48
SAVED_CELLS = 4000
SAVED_COLUMNS = 200, 1600
"""How many rows the windows of a saved page have at most; about how many cells, and how many
columns at least and at most. ``heatdata.js`` computes the same."""
MOST_RANGES = 1000
"""Greatest number of ranges of supersteps by which a node is marked."""

_UNITS = {"h": ("h", "over_h"), "time": ("comp", "comm", "idle", "waiting", "over")}
"""The layers with a common unit: bytes, and seconds."""
_MOST = 2**16 - 1
_MOST_SHARE = 2**8 - 1


def timeline(opened: OpenRun, query: Mapping[str, str]) -> Json:
    """Return a window: ``axis``, ``low``, ``high`` (supersteps, or seconds) and ``columns``.

    Without ``low`` and ``high`` the window is the whole run; ``rows`` is the greatest number
    of rows. With ``parts`` it also says what cells were used for, by the parts of the account.

    Raises:
        QueryError: a value of the query means nothing.
    """
    rows = number_in(query, "rows") or MOST_ROWS
    columns = number_in(query, "columns") or SAVED_COLUMNS[0]
    axis = query.get("axis", "superstep")
    if axis not in AXES:
        raise AddressError(f"axis is {axis[:40]!r}: give {' or '.join(AXES)}.")
    window_of, unit = AXES[axis]
    heatmap = _heatmap(opened, min(rows, MOST_ROWS))
    window = window_of(heatmap, query, columns)
    described = describe(opened.callgraph(opened.whole(query)), heatmap, window, unit)
    return described | (_parts(opened, heatmap, window, axis) if number_in(query, "parts") else {})


def saved(opened: OpenRun) -> Iterable[Mapping[str, str]]:
    """Return the queries of a saved page: coarse windows of the whole run, by both axes."""
    rows = min(SAVED_ROWS, opened.run.nprocs)
    least, most = SAVED_COLUMNS
    columns = min(max(SAVED_CELLS // rows, least), most)
    size = {"columns": str(columns), "rows": str(SAVED_ROWS), "parts": "1"}
    return [{"axis": axis, **size} for axis in AXES]


def marks(opened: OpenRun, query: Mapping[str, str]) -> Json:
    """Return the supersteps in which the node ``node`` ended one: first and last of ranges."""
    chosen = records_through(opened.callgraph(opened.whole(query)), query.get("node", ""))
    return {"ranges": _heatmap(opened, MOST_ROWS).steps.ranges(chosen, MOST_RANGES)}


def describe(callgraph: CallGraph, heatmap: Heatmap, window: Window, unit: float) -> Json:
    """Return a window as values for JSON, with edges in supersteps or, by ``unit``, seconds."""
    leaves = [origin.chain[-1] for origin in callgraph.origins]
    origins = callgraph.origin_of(window.ended_at)
    layers, units = _compact(window.layers)
    return {
        "nprocs": heatmap.run.nprocs,
        "block": heatmap.block,
        "rows": heatmap.rows,
        "total": heatmap.steps.count,
        "begin_s": heatmap.begin_ns / 1e9,
        "end_s": heatmap.end_ns / 1e9,
        "edges": (window.edges * unit).tolist(),
        "supersteps": [float(f"{count:.6g}") for count in window.supersteps],
        "first": window.first.tolist(),
        "last": window.last.tolist(),
        "longest": window.longest.tolist(),
        "centres": [leaves[origin] for origin in origins.tolist()],
        "late": window.ended_at["pid"].tolist(),
        "began_s": (window.began_ns / 1e9).tolist(),
        "finished_s": (window.ended_ns / 1e9).tolist(),
        "layers": layers,
        "units": units,
    }


def _heatmap(opened: OpenRun, rows: int) -> Heatmap:
    return opened.once(f"heatmap of {rows} rows", lambda: Heatmap(opened.run, most_rows=rows))


def _spending(
    opened: OpenRun, heatmap: Heatmap, rates: Rates, booked: SpendingSums | None = None
) -> Spending:
    run, steps, block = opened.run, heatmap.steps, heatmap.block
    name = f"spending of {heatmap.rows} rows"
    return opened.once(name, lambda: Spending(run, rates, steps, block, booked=booked))


class SavedTimeline:
    """Takes in the windows of a run for the answers to :func:`saved`."""

    def __init__(self, opened: OpenRun, rates: Rates) -> None:
        query, *_ = saved(opened)
        self._opened, self._rates = opened, rates
        self._heatmap = _heatmap(opened, int(query["rows"]))
        self._whole = self._heatmap.whole(int(query["columns"]))
        self._booked = SpendingSums(opened.run, self._heatmap.steps, self._heatmap.block)

    def add(self, window: RunWindow, account: Account) -> None:
        """Take in a window with its account."""
        self._whole.add(window)
        self._booked.add(account, window)

    def keep(self) -> None:
        """Keep what was summed up with the run, when all windows have been taken in."""
        self._whole.keep()
        _spending(self._opened, self._heatmap, self._rates, self._booked)


def _parts(opened: OpenRun, heatmap: Heatmap, window: Window, axis: str) -> Json:
    """Return by part of the account which share of each cell it is, in 8 bits and base 64."""
    rates = opened.once("rates", lambda: rates_of_run(opened.run))
    spending = _spending(opened, heatmap, rates)
    by = spending.by_time if axis == "time" else spending.by_superstep
    amounts = by(window.edges)
    totals = amounts.sum(axis=1, keepdims=True)
    shares = np.rint(amounts / np.where(totals > 0, totals, 1) * _MOST_SHARE).astype(np.uint8)
    by_row = np.ascontiguousarray(shares.transpose(1, 2, 0))
    texts = (base64.b64encode(each.tobytes()).decode("ascii") for each in by_row)
    return {"parts": dict(zip(PARTS, texts, strict=True))}


def _by_superstep(heatmap: Heatmap, query: Mapping[str, str], columns: int) -> Window:
    low, high = number_in(query, "low"), number_in(query, "high")
    return heatmap.by_superstep(low or 0, heatmap.steps.count if high is None else high, columns)


def _by_time(heatmap: Heatmap, query: Mapping[str, str], columns: int) -> Window:
    low_s, high_s = _seconds_in(query, "low"), _seconds_in(query, "high")
    low_ns = heatmap.begin_ns if low_s is None else low_s * 1e9
    high_ns = heatmap.end_ns if high_s is None else high_s * 1e9
    return heatmap.by_time(low_ns, high_ns, columns)


AXES = {"superstep": (_by_superstep, 1), "time": (_by_time, 1e-9)}
"""How a window of each axis is made, and the unit of the axis in what the page gets."""


def _seconds_in(query: Mapping[str, str], key: str) -> float | None:
    try:
        value = float(query[key]) if key in query else None
    except ValueError:
        value = np.nan
    if value is not None and not abs(value) < np.inf:
        raise AddressError(f"{key} is {query[key][:40]!r}: give seconds.")
    return value


def _compact(layers: Floats) -> tuple[dict[str, str], dict[str, list[float]]]:
    """Return each layer in whole numbers of a unit for each column, row by row, in base 64."""
    compact, units = {}, {}
    for name, members in _UNITS.items():
        places = [LAYERS.index(member) for member in members]
        amounts = layers[:, places]
        unit = amounts.max(axis=(1, 2), initial=0) / _MOST
        numbers = np.rint(amounts / np.where(unit > 0, unit, 1)[:, None, None]).astype("<u2")
        for place, member in enumerate(members):
            by_row = np.ascontiguousarray(numbers[:, place].T)
            compact[member] = base64.b64encode(by_row.tobytes()).decode("ascii")
        units[name] = [float(f"{value:.6g}") for value in unit / (1e9 if name == "time" else 1)]
    return compact, units
