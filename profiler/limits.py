"""The limit for call graphs: a small file can declare a graph that needs too much memory."""

from __future__ import annotations

from bsplib.errors import BspError

MAX_SHARES = 2**23
"""Nodes and edges of a call graph times processes, since each edge and node has a pie; what else
they take is counted in these (:meth:`bsplib.profiler._sums.RunSums.check`)."""


class TooLargeError(BspError):
    """A run is too large to be shown."""
