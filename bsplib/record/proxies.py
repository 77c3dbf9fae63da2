"""Records without a C compiler: classes of mpi4py in Python, around the methods of their bases.

mpi4py's classes cannot be changed, but they can be subclassed. ``MPI.COMM_WORLD`` and
``MPI.COMM_SELF`` become objects of subclasses, and so do communicators that are made from them, and
requests. ``MPI.Request`` itself is replaced, for its class methods. What this does not see is named
in :data:`NOT_COVERED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np

from bsplib.record import proxy_methods
from bsplib.record.events import (
    ANY_SOURCE,
    ANY_TAG,
    CREATES,
    IN_PLACE,
    NOBODY,
    PROC_NULL,
)
from bsplib.record.python_rows import PythonRows

NOT_COVERED = (
    "calls of MPI by code in C, such as h5py and petsc4py",
    "windows",
    "files",
    "matched messages",
    "persistent and partitioned requests",
    "intercommunicators",
    "the bytes of each partner in v and w variants and in neighbourhood collectives",
)

_MESSAGES = (
    *("Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend"),
    *("send", "bsend", "ssend", "isend", "ibsend", "issend"),
    *("Recv", "recv", "Irecv", "irecv"),
    *("Sendrecv", "sendrecv", "Isendrecv", "Sendrecv_replace", "Isendrecv_replace"),
    *("Probe", "probe", "Iprobe", "iprobe"),
)
_COLLECTIVES = (
    *("Gather", "Gatherv", "Reduce", "Bcast", "Scatter", "Scatterv"),
    *("Barrier", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw", "Allreduce"),
    *("Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan"),
)
_NEIGHBOURS = tuple(
    f"Neighbor_all{end}" for end in ("gather", "gatherv", "toall", "toallv", "toallw")
)
_OBJECTS = (
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
)
_MAKERS = {
    "Dup": "Comm_dup",
    "Clone": "Comm_dup",
    "Dup_with_info": "Comm_dup_with_info",
    "Create": "Comm_create",
    "Create_group": "Comm_create_group",
    "Split": "Comm_split",
    "Split_type": "Comm_split_type",
    "Create_cart": "Cart_create",
    "Create_graph": "Graph_create",
    "Create_dist_graph": "Dist_graph_create",
    "Create_dist_graph_adjacent": "Dist_graph_create_adjacent",
    "Sub": "Cart_sub",
}


class Proxies:
    """Makes the subclasses of one ``mpi4py.MPI``, and puts them into it.

    Args:
        mpi: the module.
        rows: where calls are written.
        moved: the bytes of objects that were sent and received, which are counted from what the
            proxies set.
        aborts: is told the error code before a communicator is aborted.
    """

    def __init__(
        self, mpi: Any, rows: PythonRows, moved: list[int], aborts: Callable[[int], None]
    ) -> None:
        self._mpi = mpi
        self._rows = rows
        self._aborts = aborts
        self._in_place_type = type(mpi.IN_PLACE)
        self._byte = mpi.BYTE
        self._codes = {mpi.ANY_SOURCE: ANY_SOURCE, mpi.PROC_NULL: PROC_NULL}
        self._names = self._names_of_methods(moved)
        self._classes = {
            base: self._subclass(base)
            for base in (mpi.Cartcomm, mpi.Graphcomm, mpi.Distgraphcomm, mpi.Intracomm)
        }
        self._request = self._names["request"] = self._request_class(mpi.Request)

    def _names_of_methods(self, moved: list[int]) -> dict[str, Any]:
        """Return what the methods use."""
        rows, mpi = self._rows, self._mpi
        return {
            **rows.names_of_methods(),
            "moved": moved,
            "codes": self._codes,
            "ndarray": np.ndarray,
            "byte": self._byte,
            "own_status": mpi.Status(),
            "own_statuses": _Statuses(mpi.Status),
            "volume": self._volume,
            "sizes": self._sizes,
            "created": self._created,
            "completed": self._completed,
            "repeat": repeat,
        }

    def install(self) -> None:
        """Replace the communicators of the module and its class of requests."""
        world, self_ = self._mpi.COMM_WORLD, self._mpi.COMM_SELF
        intra = self._classes[self._mpi.Intracomm]
        for name, comm, kind in (("COMM_WORLD", world, "world"), ("COMM_SELF", self_, "self")):
            recorded = intra(comm)
            recorded.bsp_number = self._rows.add_comm(
                NOBODY, 0, kind, self._world_ranks(comm, world)
            )
            recorded.bsp_children = 0
            setattr(self._mpi, name, recorded)
        self._mpi.Request = self._request

    # -- communicators ----------------------------------------------------------------------------

    def _subclass(self, base: Any) -> Any:
        members: dict[str, Any] = {
            "bsp_number": NOBODY,
            "bsp_children": 0,
            "__module__": base.__module__,
        }
        for name, call, lines in self._recorded(base):
            members[name] = self._method(getattr(base, name), call, lines)
        members["Abort"] = self._aborting(base.Abort)
        return type(base.__name__, (base,), members)

    def _recorded(self, base: Any) -> Iterator[tuple[str, str, proxy_methods.Lines]]:
        """Yield the methods of a class: name, name of the call, and what is recorded of it."""
        for name in _MESSAGES:
            if hasattr(base, name):
                lines = proxy_methods.of_message(name, getattr(base, name))
                yield name, f"{name[0].upper()}{name[1:]}", lines
        with_requests = (f"I{name.lower()}" for name in (*_COLLECTIVES, *_NEIGHBOURS))
        for name in (*_COLLECTIVES, *_NEIGHBOURS, *with_requests, *_OBJECTS):
            if hasattr(base, name):
                lines = proxy_methods.of_collective(name, getattr(base, name))
                yield name, name.capitalize(), lines
        for name, call in _MAKERS.items():
            if hasattr(base, name):
                yield name, call, proxy_methods.of_maker(name)

    def _method(self, base: Any, call: str, lines: proxy_methods.Lines) -> Any:
        return proxy_methods.method(base, call, lines, self._names)

    def _aborting(self, base: Any) -> Any:
        aborts = self._aborts

        def method(comm: Any, errorcode: int = 0) -> Any:
            aborts(errorcode)
            return base(comm, errorcode)

        return proxy_methods.named(method, base)

    def _created(self, comm: Any, result: Any, by_all: bool) -> tuple[Any, int]:
        """Return a new communicator as an object of a subclass, and flags."""
        comm.bsp_children += by_all
        base = next((base for base in self._classes if isinstance(result, base)), None)
        if base is None or result == self._mpi.COMM_NULL:
            return result, 0
        members = self._world_ranks(result, self._mpi.COMM_WORLD)
        parent = comm.bsp_number
        ordinal = (
            comm.bsp_children - 1 if by_all else self._rows.ordinal_among_same(parent, members)
        )
        recorded = self._classes[base](result)
        recorded.bsp_number = self._rows.add_comm(
            parent, ordinal, self._kind(result), members, *self._neighbours(result)
        )
        recorded.bsp_children = 0
        return recorded, CREATES

    def _world_ranks(self, comm: Any, world: Any) -> list[int]:
        group, all_ranks = comm.Get_group(), world.Get_group()
        ranks = group.Translate_ranks(list(range(group.Get_size())), all_ranks)
        group.Free()
        all_ranks.Free()
        return [rank if rank >= 0 else -1 for rank in ranks]

    def _kind(self, comm: Any) -> str:
        kinds = {
            self._mpi.CART: "cart",
            self._mpi.GRAPH: "graph",
            self._mpi.DIST_GRAPH: "dist_graph",
        }
        return kinds.get(comm.Get_topology(), "intra")

    def _neighbours(self, comm: Any) -> tuple[list[int], list[int]]:
        if comm.Get_topology() == self._mpi.UNDEFINED:
            return [], []
        sources, destinations = comm.inoutedges
        return [self._code(each) for each in sources], [self._code(each) for each in destinations]

    def _code(self, rank: int) -> int:
        return self._codes.get(rank, rank)

    # -- what a call moves ------------------------------------------------------------------------

    def _sizes(
        self, comm: Any, mine: Any, others: Any, gathers: bool, has_blocks: bool
    ) -> tuple[int, int, int]:
        """Return flags, and the bytes of both buffers, as if none was MPI_IN_PLACE."""
        out, into = self._volume(mine), self._volume(others)
        blocks = comm.size if has_blocks else 1
        if self._is_in_place(mine):
            return IN_PLACE, into // blocks if gathers else into, into
        if self._is_in_place(others):
            return IN_PLACE, out, out // blocks
        return 0, out, into

    def _is_in_place(self, data: Any) -> bool:
        return type(data) is self._in_place_type and bool(data == self._mpi.IN_PLACE)

    def _volume(self, data: Any) -> int:
        """Return the bytes that a buffer describes; 0 for one without, such as an object."""
        size = getattr(data, "nbytes", None)
        if type(size) is int:
            return size
        if isinstance(data, (list, tuple)) and data:
            return self._volume_of_list(data)
        try:
            return memoryview(data).nbytes
        except TypeError:
            return 0

    def _volume_of_list(self, data: list[Any] | tuple[Any, ...]) -> int:
        datatype = next((each for each in data[1:] if isinstance(each, self._mpi.Datatype)), None)
        counts = next(
            (each for each in data[1:] if not isinstance(each, (str, self._mpi.Datatype))), None
        )
        if isinstance(counts, (list, tuple)) and counts and isinstance(counts[0], (list, tuple)):
            counts = counts[0]
        if datatype is None or counts is None:
            return self._volume(data[0])
        total = counts if isinstance(counts, int) else sum(counts)
        return int(total) * int(datatype.Get_size())

    # -- requests ---------------------------------------------------------------------------------

    def _request_class(self, base: Any) -> Any:
        members: dict[str, Any] = {
            "__slots__": ("bsp_receives", "bsp_request"),
            "__module__": base.__module__,
        }
        for name in ("Wait", "Test", "wait", "test"):
            lines = proxy_methods.of_request(name)
            members[name] = self._method(getattr(base, name), name.capitalize(), lines)
        for each in ("all", "any", "some"):
            for name in (f"{way}{each}" for way in ("Wait", "Test", "wait", "test")):
                if hasattr(base, name):
                    lines = proxy_methods.of_requests(name)
                    method = self._method(getattr(base, name), name.capitalize(), lines)
                    members[name] = staticmethod(method)
        return type(base.__name__, (base,), members)

    def _completed(self, requests: Iterable[Any], statuses: Iterable[Any]) -> bool:
        """Note which requests are completed; return whether any is."""
        add_done, code, found = self._rows.add_done, self._codes.get, False
        for request, status in zip(requests, statuses, strict=False):
            number = getattr(request, "bsp_request", 0)
            if number and not request:
                found, request.bsp_request = True, 0
                if request.bsp_receives and not status.Is_cancelled():
                    size = status.Get_elements(self._byte)
                    source = status.Get_source()
                    add_done(number, code(source, source), status.Get_tag(), size)
                else:
                    add_done(number, NOBODY, ANY_TAG, 0)
        return found


class _Statuses(dict[int, list[Any]]):
    """Lists of statuses of our own, by their lengths."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __missing__(self, count: int) -> list[Any]:
        found = self[count] = [self._make() for _ in range(count)]
        return found
