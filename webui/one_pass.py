"""What a saved page contains of a run, summed up in one pass over its windows.

Each answer would read the whole run again otherwise, which takes as long as to sum it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.errors import BspError
from bsplib.profiler import loss_records
from bsplib.profiler.book import book_of
from bsplib.profiler.picture import TimePicture
from bsplib.webui.timeline import SAVED_PICTURE, keep_saved
from bsplib.webui.traffic import SavedTraffic

if TYPE_CHECKING:
    from bsplib.webui.opened_runs import OpenRun


def sum_up(opened: OpenRun) -> None:
    """Sum up a run for the answers of a saved page, before these are made.

    Where that is not possible, each answer sums up for itself, and says what is wrong.
    """
    try:
        _sum_up(opened)
    except BspError:
        return


def _sum_up(opened: OpenRun) -> None:
    book, traffic = book_of(opened.run, opened.rates), SavedTraffic(opened)
    picture = TimePicture(book, **SAVED_PICTURE)
    loss_records.sum_up(book, picture.add, lambda booked: traffic.add(booked.account.window))
    keep_saved(opened, picture)
    traffic.keep()
