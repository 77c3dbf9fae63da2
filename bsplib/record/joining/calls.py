"""What each call of MPI does to supersteps: who waits in it for whom, and what ends there."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from bsplib.record.events import CALLS


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
    """It waits for requests or for the end of an epoch, or tests them."""
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

_COLLECTIVES = {
    **dict.fromkeys(("Barrier", "Allgather", "Allgatherv", "Allreduce"), Role.ALL),
    **dict.fromkeys(("Alltoall", "Alltoallv", "Alltoallw"), Role.ALL),
    **dict.fromkeys(("Reduce_scatter", "Reduce_scatter_block"), Role.ALL),
    **dict.fromkeys(("Bcast", "Scatter", "Scatterv"), Role.FROM_ROOT),
    **dict.fromkeys(("Reduce", "Gather", "Gatherv"), Role.TO_ROOT),
    **dict.fromkeys(("Scan", "Exscan"), Role.PREFIX),
}
_NEIGHBOURS = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
_CREATIONS = (
    *("Comm_dup", "Comm_dup_with_info", "Comm_create", "Comm_split", "Comm_split_type"),
    *("Cart_create", "Cart_sub", "Graph_create", "Dist_graph_create"),
    *("Dist_graph_create_adjacent", "Intercomm_merge"),
)
_WINDOWS = (
    *("Win_create", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic"),
    *("Win_free", "Win_fence"),
)
_ROLES: dict[str, Role] = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend"), Role.SEND),
    **dict.fromkeys(("Recv", "Mrecv"), Role.RECEIVE),
    **dict.fromkeys(("Sendrecv", "Sendrecv_replace"), Role.BOTH),
    **dict.fromkeys(("Isend", "Ibsend", "Issend", "Irsend"), Role.SEND_START),
    **dict.fromkeys(("Irecv", "Imrecv"), Role.RECEIVE_START),
    **dict.fromkeys(("Isendrecv", "Isendrecv_replace"), Role.BOTH_START),
    "Start": Role.START,
    **dict.fromkeys(("Wait", "Waitall", "Waitany", "Waitsome"), Role.COMPLETE),
    **dict.fromkeys(("Test", "Testall", "Testany", "Testsome"), Role.COMPLETE),
    **dict.fromkeys(("Win_wait", "Win_test"), Role.COMPLETE),
    **dict.fromkeys(("Probe", "Mprobe"), Role.PROBE),
    **dict.fromkeys(("Iprobe", "Improbe"), Role.POLL),
    **dict.fromkeys(("Put", "Rput", "Accumulate", "Raccumulate"), Role.PUT),
    **dict.fromkeys(("Get", "Rget"), Role.GET),
    **dict.fromkeys(("Get_accumulate", "Rget_accumulate"), Role.GET_AND_PUT),
    **dict.fromkeys(("Fetch_and_op", "Compare_and_swap"), Role.GET_AND_PUT),
    **dict.fromkeys(("Win_lock", "Win_unlock", "Win_flush"), Role.TARGET),
    **{name: Role.FILE for name in CALLS if name.startswith("File_")},
    "Init": Role.INIT,
    "Finalize": Role.FINALIZE,
    **_COLLECTIVES,
    **{"I" + name.lower(): role for name, role in _COLLECTIVES.items()},
    **{"Neighbor_" + name: Role.NEIGHBOURS for name in _NEIGHBOURS},
    **{"Ineighbor_" + name: Role.NEIGHBOURS for name in _NEIGHBOURS},
    **dict.fromkeys((*_CREATIONS, *_WINDOWS), Role.ALL),
    **dict.fromkeys(("Comm_idup", "Comm_idup_with_info"), Role.ALL),
}

ROLE: NDArray[np.int64] = np.array([_ROLES.get(name, Role.OTHER) for name in CALLS], np.int64)
"""The role of each call, by its number."""


def _blocking(name: str) -> str:
    blocking = name[1:].capitalize()
    return blocking if blocking in _ROLES and _ROLES[blocking] >= FIRST_COLLECTIVE else name


BASE = tuple(_blocking(name) if name.startswith("I") else name for name in CALLS)
"""The name of the blocking form of each call, by its number."""

IS_START: NDArray[np.bool_] = np.array(
    [name != base or name.startswith("Comm_idup") for name, base in zip(CALLS, BASE, strict=True)]
)
"""Whether each call begins a collective that another call completes, by its number."""

_IN_PYTHON = {
    "Comm_dup": "Dup",
    "Comm_dup_with_info": "Dup",
    "Comm_idup": "Idup",
    "Comm_idup_with_info": "Idup",
    "Comm_create": "Create",
    "Comm_split": "Split",
    "Comm_split_type": "Split_type",
    "Cart_create": "Create_cart",
    "Cart_sub": "Sub",
    "Graph_create": "Create_graph",
    "Dist_graph_create": "Create_dist_graph",
    "Dist_graph_create_adjacent": "Create_dist_graph_adjacent",
    "Intercomm_merge": "Merge",
    "Win_fence": "Fence",
    "Win_post": "Post",
    "Win_start": "Win.Start",
    "Win_complete": "Complete",
    "Win_wait": "Win.Wait",
    "Win_test": "Win.Test",
    "Win_lock": "Lock",
    "Win_unlock": "Unlock",
    "Win_flush": "Flush",
}
SHOWN = tuple(_IN_PYTHON.get(name, name) for name in CALLS)
"""How pages call each call: by its name in mpi4py where that is short."""
