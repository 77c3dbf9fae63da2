"""The limit for call graphs: a small file can declare a graph that needs too much memory."""

from __future__ import annotations

from bsplib.errors import BspError

MAX_SHARES = 2**23
"""Nodes and edges of a call graph times processes, since each edge and node has a pie; what else
they take is counted in these (:meth:`bsplib.profiler._sums.RunSums.check`)."""


class TooLargeError(BspError):
    """A run is too large to be shown."""


MOST_BYTES = 200_000_000
"""What a browser opens."""


def check_file(count: int, what: str, size_bytes: int) -> None:
    """Refuse to write a file that would be too large to open.

    Args:
        count: how many of something it would have.
        what: their name.
        size_bytes: what each of them takes, about.

    Raises:
        TooLargeError: it would.
    """
    if count * size_bytes > MOST_BYTES:
        raise TooLargeError(
            f"the file would be too large to open: {count} {what} are more than "
            f"{MOST_BYTES // size_bytes}: choose a part with --supersteps A:B"
        )
