"""What is too large to show: a small file can declare more than any memory holds."""

from __future__ import annotations

from bsplib.errors import BspError

MAX_SHARES = 2**23
"""Nodes and edges of a call graph times processes: each edge and node has a pie."""
MAX_VISITS = 2**33
"""Nodes and edges times records: the cost of each is one pass over the records."""


class TooLargeError(BspError):
    """A run is too large to be shown."""


def check_graph(parts: int, nprocs: int, records: int) -> None:
    """Refuse a call graph that would take gigabytes of memory or minutes.

    Args:
        parts: nodes and edges of the call graph.
        nprocs: processes of the run.
        records: records of the run.

    Raises:
        TooLargeError: it is too large.
    """
    check_product("nodes and edges", parts, "processes", nprocs, MAX_SHARES)
    check_product("nodes and edges", parts, "records", records, MAX_VISITS)


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
