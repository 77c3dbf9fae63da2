"""What is too large to show: a small file can declare more than any memory holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.errors import BspError

if TYPE_CHECKING:
    from bsplib.recording.records import Run

MAX_SHARES = 2**23
"""Nodes and edges of a call graph times processes: each edge and node has a pie."""
MAX_VISITS = 2**33
"""Nodes and edges times records, or groups: the cost of each is one pass over them."""
MAX_LEVELS = 2**19
"""Nodes and edges times levels of groups inside one another, which are gone through one
by one."""


class TooLargeError(BspError):
    """A run is too large to be shown."""


def check_graph(parts: int, run: Run, levels: int) -> None:
    """Refuse a call graph that would take gigabytes of memory or minutes.

    Args:
        parts: nodes and edges of the call graph.
        run: what it is made of.
        levels: how many sub-groups are inside one another at most.

    Raises:
        TooLargeError: it is too large.
    """
    these = "nodes and edges"
    check_product(these, parts, "processes", run.nprocs, MAX_SHARES)
    check_product(these, parts, "records", len(run.records), MAX_VISITS)
    check_product(these, parts, "groups", len(run.groups), MAX_VISITS)
    check_product(these, parts, "levels of groups", levels, MAX_LEVELS)


def check_product(these: str, many: int, those: str, more: int, most: int) -> None:
    """Refuse more than ``most`` combinations of one thing and another.

    Raises:
        TooLargeError: there are more.
    """
    if many * more > most:
        raise TooLargeError(
            f"the call graph is too large to show: {many} {these} times {more} {those} are more "
            f"than {most}"
        )
