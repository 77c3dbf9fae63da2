"""What each call of MPI does to supersteps: who waits in it for whom, and what ends there."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from bsplib.record.events import CALLS
from bsplib.record.shim import functions


class Role(IntEnum):
    """What a call does. Those from ``ALL`` on are collectives, which end supersteps."""

    OTHER = 0
    SEND = 1
    """It sends a message and returns when the buffer can be used again."""
    RECEIVE = 2
    BOTH = 3
    """It sends and receives."""
    SEND_START = 4
    RECEIVE_START = 5
    BOTH_START = 6
    START = 7
    """It starts a persistent request, which may send or receive."""
    COMPLETE = 8
    """It waits for requests, or tests them."""
    PROBE = 9
    """It waits for a message, and leaves it there."""
    POLL = 10
    """It looks for a message, and does not wait."""
    PUT = 11
    GET = 12
    GET_AND_PUT = 13
    TARGET = 14
    """It waits until the process whose window it is has answered."""
    FILE = 15
    INIT = 16
    FINALIZE = 17
    ALL = 18
    """Each process waits for all."""
    FROM_ROOT = 19
    """Each process waits for the root."""
    TO_ROOT = 20
    """The root waits for all, and nobody else waits."""
    PREFIX = 21
    """Each process waits for those of lower rank."""
    NEIGHBOURS = 22
    """Each process waits for its neighbours in the topology."""


FIRST_COLLECTIVE = Role.ALL

_ROLES = {call.name: Role[call.role] for call in functions.CALLS}
ROLE: NDArray[np.int64] = np.array(list(_ROLES.values()), np.int64)
"""The role of each call, by its number."""


def _blocking(name: str) -> str:
    blocking = name[1:].capitalize()
    return blocking if _ROLES.get(blocking, Role.OTHER) >= FIRST_COLLECTIVE else name


BASE = tuple(_blocking(name) if name.startswith("I") else name for name in CALLS)
"""The name of the blocking form of each call, by its number."""

IS_START: NDArray[np.bool_] = np.array(
    [name != base or name.startswith("Comm_idup") for name, base in zip(CALLS, BASE, strict=True)]
)
"""Whether each call begins a collective that another call completes, by its number."""

_IN_PYTHON = {
    "Cart_create": "Create_cart",
    "Cart_sub": "Sub",
    "Graph_create": "Create_graph",
    "Dist_graph_create": "Create_dist_graph",
    "Dist_graph_create_adjacent": "Create_dist_graph_adjacent",
    "Intercomm_merge": "Merge",
}


def _shown(name: str) -> str:
    of, _, method = name.partition("_")
    if of not in {"Comm", "Win"}:
        return _IN_PYTHON.get(name, name)
    plain = method.capitalize()
    others = {plain, f"Comm_{method}"} - {name}
    return plain if others.isdisjoint(_ROLES) else f"{of}.{plain}"


SHOWN = tuple(map(_shown, CALLS))
"""How pages call each call: by its name in mpi4py where that is short."""
