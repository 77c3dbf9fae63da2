"""Tables of a run as pandas DataFrames (extra ``notebook``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.extras import need
from bsplib.profiler import tables
from bsplib.profiler.booking import keep_books

if TYPE_CHECKING:
    import pandas

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.losses import Ledger
    from bsplib.profiler.rates import Rates


def nodes(callgraph: CallGraph, ledger: Ledger) -> pandas.DataFrame:
    """Return the rows of :func:`bsplib.profiler.tables.nodes` by id, the greatest loss first.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    pd = need("pandas")
    table: pandas.DataFrame = pd.DataFrame(tables.nodes(callgraph, ledger)).set_index("id")
    return table.sort_values("loss_s", ascending=False, kind="stable")


def supersteps(callgraph: CallGraph, rates: Rates) -> pandas.DataFrame:
    """Return the rows of :func:`bsplib.profiler.tables.supersteps`, with cost and loss.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    pd = need("pandas")
    steps = keep_books(callgraph).supersteps
    w, h = steps.w, steps.h[rates.rule]
    prices = {
        "loss_s": rates.ratio * w.lost / 1e9 + rates.g * h.lost,
        "cost_s": rates.ratio * w.greatest / 1e9 + rates.g * h.greatest + rates.l * steps.ended,
    }
    table: pandas.DataFrame = pd.DataFrame(tables.supersteps(callgraph) | prices)
    return table
