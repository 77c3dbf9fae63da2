"""The data of the view "Timeline": a part of the picture of processes and time, or supersteps.

Amounts are sent as whole numbers of 16 bits, in base 64, with the unit of each column: a
window of a thousand columns and a hundred rows has close to a million amounts.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.profiler.account import PARTS
from bsplib.profiler.book import book_of
from bsplib.profiler.picture import LAYERS, LEAST_BINS, TimePicture, picture_of
from bsplib.webui.machines import figure_in
from bsplib.webui.opened_runs import AddressError, OpenRun, number_in, records_through

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.picture import PictureView

    Floats = NDArray[np.float64]

Json = dict[str, Any]

MOST_ROWS = 128
"""Greatest number of rows of a window on a served page."""
USUAL_COLUMNS = 200
SAVED_PICTURE = {"most_rows": 48, "most_bins": LEAST_BINS}
SAVED_CELLS = 4000
SAVED_COLUMNS = 200, 1600
"""How many rows the windows of a saved page have at most, and of how many bins they are made; about
how many cells they have, and how many columns at least and at most."""
MOST_WAITED_FOR = 3
"""Greatest number of processes, each with a cost centre, that a cell is said to wait for."""
MOST_RANGES = 1000
"""Greatest number of ranges of supersteps by which a node is marked."""

_NS = 1e-9
_SENT = {"h": 1.0, "loss": _NS, "idle": _NS, "time": _NS}
"""The layers that the page gets, and their units: bytes, or nanoseconds."""
_MOST = 2**16 - 1
_MOST_SHARE = 2**8 - 1


def timeline(opened: OpenRun, query: Mapping[str, str]) -> Json:
    """Return a window: ``axis``, ``low``, ``high`` (supersteps, or seconds) and ``columns``.

    Without ``low`` and ``high`` the window is the whole run; ``rows`` is the greatest number
    of rows. With ``coarse`` rows and columns are as a saved page has them.

    Raises:
        QueryError: a value of the query means nothing.
    """
    axis = query.get("axis", "superstep")
    if axis not in AXES:
        raise AddressError(f"axis is {axis[:40]!r}: give {' or '.join(AXES)}.")
    view_of, unit = AXES[axis]
    picture, columns = _picture_for(opened, query), number_in(query, "columns") or USUAL_COLUMNS
    if number_in(query, "coarse"):
        least, most = SAVED_COLUMNS
        columns = min(max(SAVED_CELLS // picture.rows, least), most)
    view = view_of(picture, query, columns)
    return describe(opened.callgraph(opened.whole(query)), picture, view, unit)


def saved(opened: OpenRun) -> Iterable[Mapping[str, str]]:  # noqa: ARG001  # of every run the same
    """Return the queries of a saved page: coarse windows of the whole run, by both axes."""
    return [{"axis": axis, "coarse": "1"} for axis in AXES]


def waited(opened: OpenRun, query: Mapping[str, str]) -> Json:
    """Return for whom the processes of ``row`` are idle from ``low`` to ``high``, in seconds.

    Raises:
        QueryError: a value of the query means nothing.
    """
    picture, row = _picture_for(opened, query), number_in(query, "row")
    low_s, high_s = _seconds_in(query)
    if row is None or row >= picture.rows or low_s is None or high_s is None:
        raise AddressError(f"Give a row below {picture.rows}, and low and high in seconds.")
    origins = opened.callgraph(opened.whole(query)).origins
    known = [
        {"node": origins[origin][-1], "pid": pid, "seconds": ns / 1e9}
        for origin, pid, ns in picture.waited_for(row, low_s * 1e9, high_s * 1e9)
        if origin >= 0
    ]
    return {"waited": known[:MOST_WAITED_FOR]}


def marks(opened: OpenRun, query: Mapping[str, str]) -> Json:
    """Return the supersteps in which the node ``node`` ended one: first and last of ranges."""
    chosen = records_through(opened.callgraph(opened.whole(query)), query.get("node", ""))
    return {"ranges": _picture(opened, MOST_ROWS).steps.ranges(chosen, MOST_RANGES)}


def describe(callgraph: CallGraph, picture: TimePicture, view: PictureView, unit: float) -> Json:
    """Return a window as values for JSON, with edges in supersteps or, by ``unit``, seconds."""
    leaves = [chain[-1] for chain in callgraph.origins]
    origins = callgraph.origin_of(view.ended_at)
    layers, units = _compact(view.layers)
    return {
        "nprocs": picture.book.run.nprocs,
        "block": picture.block,
        "rows": picture.rows,
        "total": picture.steps.count,
        "begin_s": picture.begin_ns / 1e9,
        "end_s": picture.end_ns / 1e9,
        "edges": (view.edges * unit).tolist(),
        "supersteps": [float(f"{count:.6g}") for count in view.supersteps],
        "first": view.first.tolist(),
        "last": view.last.tolist(),
        "longest": view.longest.tolist(),
        "centres": [leaves[origin] for origin in origins.tolist()],
        "began_s": (view.began_ns / 1e9).tolist(),
        "finished_s": (view.ended_ns / 1e9).tolist(),
        "layers": layers,
        "units": units,
        "parts": _describe_parts(view),
    }


def _picture_for(opened: OpenRun, query: Mapping[str, str]) -> TimePicture:
    """Return the picture of as many rows as a query asks for."""
    if number_in(query, "coarse"):
        book = book_of(opened.run, opened.rates)
        return opened.once(_SAVED, lambda: picture_of(book, **SAVED_PICTURE))
    return _picture(opened, min(number_in(query, "rows") or MOST_ROWS, MOST_ROWS))


def _picture(opened: OpenRun, rows: int) -> TimePicture:
    book = book_of(opened.run, opened.rates)
    return opened.once(f"picture of {rows} rows", lambda: picture_of(book, most_rows=rows))


_SAVED = "picture of a saved page"


def keep_saved(opened: OpenRun, picture: TimePicture) -> None:
    """Keep a picture that has taken in a run for the answers to :func:`saved`."""
    opened.once(_SAVED, lambda: picture)


def _describe_parts(view: PictureView) -> Json:
    """Return by part of the account which share of each cell it is, in 8 bits and base 64."""
    amounts = view.layers[:, : len(PARTS)]
    totals = amounts.sum(axis=1, keepdims=True)
    shares = np.rint(amounts / np.where(totals > 0, totals, 1) * _MOST_SHARE).astype(np.uint8)
    by_row = np.ascontiguousarray(shares.transpose(1, 2, 0))
    texts = (base64.b64encode(each.tobytes()).decode("ascii") for each in by_row)
    return dict(zip(PARTS, texts, strict=True))


def _by_superstep(picture: TimePicture, query: Mapping[str, str], columns: int) -> PictureView:
    low, high = number_in(query, "low"), number_in(query, "high")
    return picture.by_superstep(low or 0, picture.steps.count if high is None else high, columns)


def _by_time(picture: TimePicture, query: Mapping[str, str], columns: int) -> PictureView:
    low_s, high_s = _seconds_in(query)
    low_ns = picture.begin_ns if low_s is None else low_s * 1e9
    high_ns = picture.end_ns if high_s is None else high_s * 1e9
    return picture.by_time(low_ns, high_ns, columns)


AXES = {"superstep": (_by_superstep, 1), "time": (_by_time, 1e-9)}
"""How a window of each axis is made, and the unit of the axis in what the page gets."""


def _seconds_in(query: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Return ``low`` and ``high``; the run begins before 0."""
    low, high = (figure_in(query, name, may_be_negative=True) for name in ("low", "high"))
    return low, high


def _compact(layers: Floats) -> tuple[dict[str, str], dict[str, list[float]]]:
    """Return each layer in whole numbers of a unit for each column, row by row, in base 64."""
    compact, units = {}, {}
    for name, scale in _SENT.items():
        is_time = name == "time"
        amounts = layers[:, : len(PARTS)].sum(axis=1) if is_time else layers[:, LAYERS.index(name)]
        unit = amounts.max(axis=1, initial=0) / _MOST
        numbers = np.rint(amounts / np.where(unit > 0, unit, 1)[:, None]).astype("<u2")
        by_row = np.ascontiguousarray(numbers.T)
        compact[name] = base64.b64encode(by_row.tobytes()).decode("ascii")
        units[name] = [float(f"{value:.6g}") for value in unit * scale]
    return compact, units
