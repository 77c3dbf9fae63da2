"""A run with the times that it would have on another Machine, superstep by superstep.

Computation is scaled by the ratio of the rates, and the end of a superstep takes g h + l, with
the greatest h, on all its processes. What a process was blocked, or had no core, stays. The
clock of a sub-group begins at 0: only durations have a meaning there. Who waited for whom by the
trace itself stays, too: it tells whether processes wait for messages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.account import Account
from bsplib.profiler.costs import group_columns, superstep_numbers
from bsplib.recording.records import NOT_MEASURED
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.account import Ints
    from bsplib.profiler.rates import Rates
    from bsplib.recording.records import Run


def retimed(run: Run, rates: Rates) -> Run:
    """Return a run with the times that it would have at some rates."""
    account = Account(run, rates)
    records = run.records.copy()
    computing = account.computing
    core = np.rint(rates.ratio * computing.core).astype(np.int64)
    records["comp_cpu"], records["comp_ready"] = core, computing.waited
    records["comm_calls"] = records["recording"] = 0
    records["comm_cpu"] = records["comm_ready"] = NOT_MEASURED
    own = core + computing.waited + computing.blocked
    price = account.price_ns()
    step = superstep_numbers(run)
    sub = np.zeros(len(records), np.int64)
    depth = group_columns(run).depth[records["group"]]
    for level in range(int(depth.max(initial=0)), -1, -1):
        rows = np.flatnonzero(depth == level)
        _set_times(records, rows, step[rows], own[rows] + sub[rows], price[rows])
        inside = rows[account.owner[rows] >= 0]
        lasted = records["end"][inside] - records["start"][inside]
        np.add.at(sub, account.owner[inside], lasted)
    records["sub"] = sub
    records.setflags(write=False)
    meta = run.meta | {"virtual_time": "priced"}
    return replace(run, records=records, lifetime=None, meta=meta)


def _set_times(records: NDArray[np.void], rows: Ints, step: Ints, lasts: Ints, price: Ints) -> None:
    """Set the times of the records of some groups, whose supersteps begin together."""
    count = int(step.max(initial=-1)) + 1
    slowest, priced, group = np.zeros((3, count), np.int64)
    np.maximum.at(slowest, step, lasts)
    priced[step], group[step] = price, records["group"][rows]
    ends = np.cumsum(slowest + priced)
    # The groups are numbered one after the other: what was before the first of each is left out.
    begun = ends - slowest - priced
    first = np.flatnonzero(np.diff(group, prepend=-1))
    begun -= np.repeat(begun[first], np.diff(np.append(first, count)))
    records["start"][rows] = begun[step]
    records["arrive"][rows] = begun[step] + lasts
    synced = records["kind"][rows] != Kind.END
    released = np.where(synced, begun[step] + slowest[step], records["arrive"][rows])
    records["released"][rows], records["end"][rows] = released, released + price
