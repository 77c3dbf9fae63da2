"""What a saved page contains of a run, summed up in one pass over its windows.

Each answer would read the whole run again otherwise, which takes as long as to sum it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.errors import BspError
from bsplib.profiler.rates import rates_of_run
from bsplib.profiler.run_account import account_of
from bsplib.webui.timeline import SavedTimeline
from bsplib.webui.traffic import SavedTraffic

if TYPE_CHECKING:
    from bsplib.webui.opened_runs import OpenRun


def sum_up(opened: OpenRun) -> None:
    """Sum up a run for the answers of a saved page, before these are made.

    Where that is not possible, each answer sums up for itself, and says what is wrong.
    """
    if not opened.run.is_fixed:
        return
    try:
        _sum_up(opened)
    except BspError:
        return


def _sum_up(opened: OpenRun) -> None:
    rates = opened.once("rates", lambda: rates_of_run(opened.run))
    account = account_of(opened.run, rates)
    sums, timeline, traffic = (
        account.no_sums(),
        SavedTimeline(opened, account),
        SavedTraffic(opened),
    )
    for window, booked in account.by_window():
        sums.add(booked)
        timeline.add(window, booked)
        traffic.add(window)
    account.take_over(sums)
    timeline.keep()
    traffic.keep()
