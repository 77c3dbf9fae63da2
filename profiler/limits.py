"""Limits for call graphs: a small file can declare a graph that needs too much memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.errors import BspError

if TYPE_CHECKING:
    from bsplib.recording.records import Run

MAX_SHARES = 2**23
"""Nodes and edges of a call graph times processes, since each edge and node has a pie."""
MAX_VISITS = 2**33
"""Nodes and edges times records or groups, since the cost of each takes one pass over them."""
MAX_LEVELS = 2**19
"""Nodes and edges times levels of nested groups, since levels are processed one by one."""


class TooLargeError(BspError):
    """A run is too large to be shown."""


def check_graph(parts: int, run: Run, levels: int) -> None:
    """Refuse a call graph that would need gigabytes of memory or minutes.

    Args:
        parts: number of nodes and edges of the call graph.
        run: the run of the call graph.
        levels: greatest number of sub-groups that are nested in one another.

    Raises:
        TooLargeError: the call graph is too large.
    """
    what = "nodes and edges"
    check_product(what, parts, "processes", run.nprocs, MAX_SHARES)
    check_product(what, parts, "records", len(run.records), MAX_VISITS)
    check_product(what, parts, "groups", len(run.groups), MAX_VISITS)
    check_product(what, parts, "levels of groups", levels, MAX_LEVELS)


def check_product(what: str, count: int, factor: str, times: int, most: int) -> None:
    """Refuse a product of two counts that is greater than ``most``.

    Args:
        what: name of what is counted first.
        count: its number.
        factor: name of what is counted second.
        times: its number.
        most: greatest product that is allowed.

    Raises:
        TooLargeError: the product is greater.
    """
    if count * times > most:
        raise TooLargeError(
            f"the call graph is too large to show: {count} {what} times {times} {factor} are more "
            f"than {most}"
        )
