"""What a cell of a notebook leaves in each process, for later cells on the same processes.

The names that a cell assigns are local names of its function, as in every program. At its end they
are noted here, in the process, and a later cell that names them is given them when it begins.
Registered arrays are allocated and registered anew then, since a registration is of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bsplib.errors import UsageError
from bsplib.group import Group

_values: dict[int, dict[str, Any]] = {}
"""By pid, since all virtual processors are in one process, and by name."""


class Left(NamedTuple):
    """What the notebook is told at the end of a cell by one process."""

    result: Any
    registered: set[str]
    """Names of registered arrays."""


class Kept(NamedTuple):
    """What a cell takes when it begins, and keeps at its end."""

    taken: Sequence[str]
    """Names of values that earlier cells have left."""
    assigned: frozenset[str]
    """Names that the cell assigns."""
    registered: frozenset[str] = frozenset()
    """Names that stand for registered arrays on all processes."""

    def take(self, bsp: Group) -> list[Any]:
        """Return the values by their names.

        Raises:
            UsageError: this process did not execute the cell that assigned them.
        """
        mine = _values.get(bsp.pid, {})
        for name in self.taken:
            if name not in mine:
                raise UsageError(
                    f"%%bsp: process {bsp.pid} has no {name!r} of an earlier cell: it was not "
                    f"assigned there, or the processes were started anew since"
                )
        return [
            bsp.array(mine[name]) if name in self.registered else mine[name] for name in self.taken
        ]

    def keep(self, bsp: Group, result: Any, found: dict[str, Any]) -> Left:
        """Keep what the names of a cell stand for at its end."""
        registered = set()
        mine = _values.setdefault(bsp.pid, {})
        for name in self.assigned.union(self.taken).intersection(found):
            value = found[name]
            if isinstance(value, np.ndarray):
                if bsp._registry.named_by(value) is not None:
                    registered.add(name)
                if not value.flags.owndata:  # the memory may be that of the run
                    value = value.copy()
            mine[name] = value
        return Left(result, registered)


def forget() -> None:
    """Drop all values: the processes end."""
    _values.clear()
