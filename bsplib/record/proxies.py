"""Records without a C compiler: classes of mpi4py in Python, around the methods of their bases.

mpi4py's classes cannot be changed, but they can be subclassed, and the subclasses can take their
places in the module (:mod:`bsplib.record.proxy_classes`). ``MPI.COMM_WORLD`` and ``MPI.COMM_SELF``
become objects of subclasses, and so do communicators that are made from them, and requests. What
this does not see is named in :data:`NOT_COVERED`.
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
    SELF,
    UNKNOWN,
    WORLD,
)
from bsplib.record.proxy_classes import Replacements
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
        moved: two numbers, the bytes of pickled objects that were sent and that were received. The
            proxies set both to 0 before a call, and read them after it.
        aborts: is called with the error code before a communicator is aborted.
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
        self._world = mpi.COMM_WORLD
        self._numbers = {self._world.handle: WORLD, mpi.COMM_SELF.handle: SELF}
        """Numbers of communicators by their handles."""
        self._children = [0, 0]
        """How many communicators were made from each by all of its processes."""
        self._names = self._names_of_methods(moved)
        self._replacements = Replacements(mpi)
        every = self._replacements.add(mpi.Comm, self._recording_any(mpi.Comm))
        intra = self._replacements.add(mpi.Intracomm, self._recording(mpi.Intracomm), every)
        for base in (mpi.Cartcomm, mpi.Graphcomm, mpi.Distgraphcomm):
            self._replacements.add(base, self._recording(base), intra)
        requests = self._recording_requests(mpi.Request)
        self._names["request"] = self._replacements.add(mpi.Request, requests)

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
        """Replace the classes of the module and the objects that it has of them."""
        mine = self._mpi.COMM_SELF
        for kind, comm in (("world", self._world), ("self", mine)):
            self._rows.add_comm(NOBODY, 0, kind, self._world_ranks(comm))
        self._replacements.install()

    # -- communicators ----------------------------------------------------------------------------

    def _lasting(self, base: Any) -> dict[str, Any]:
        """Return the members of any communicator: its number is that of its handle."""
        numbers = self._numbers

        def __new__(cls: Any, *comm: Any, **by_name: Any) -> Any:  # noqa: N807  # of mpi4py
            made = base.__new__(cls, *comm, **by_name)
            made.bsp_number = numbers.get(made.handle, UNKNOWN)
            return made

        def forgetting(method: Any) -> Any:
            def ends(comm: Any) -> Any:
                number = numbers.pop(comm.handle, None)
                try:
                    return method(self._replacements.original(comm))
                finally:
                    if number is not None and comm:  # it is predefined, or there was an error
                        numbers[comm.handle] = number

            return proxy_methods.named(ends, method)

        ends = {name: forgetting(getattr(base, name)) for name in ("Free", "Disconnect", "free")}
        return {"__new__": __new__, "bsp_number": UNKNOWN, **ends}

    def _recording(self, base: Any) -> dict[str, Any]:
        """Return the members of a communicator whose calls are recorded."""
        members = {
            name: self._method(getattr(base, name), call, lines)
            for name, call, lines in self._recorded(base)
        }
        return {**self._lasting(base), **members, "Abort": self._aborting(base.Abort)}

    def _recording_any(self, base: Any) -> dict[str, Any]:
        """Return the members of the class of all communicators.

        A program that calls its methods by the class can give them one that is not recorded.
        """

        def chosen(recorded: Any, method: Any) -> Any:
            def either(comm: Any, *values: Any, **by_name: Any) -> Any:
                call = recorded if hasattr(comm, "bsp_number") else method
                return call(comm, *values, **by_name)

            return proxy_methods.named(either, method)

        members = self._recording(base)
        methods = (name for name, _, _ in self._recorded(base))
        return members | {name: chosen(members[name], getattr(base, name)) for name in methods}

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
        parent, ordinal = comm.bsp_number, 0
        is_counted = by_all and parent != UNKNOWN
        if is_counted:
            ordinal = self._children[parent]
            self._children[parent] += 1
        recorded = self._replacements.of(result)
        if not recorded or not hasattr(recorded, "bsp_number"):
            return recorded, 0
        members = self._world_ranks(result)
        if not is_counted:
            ordinal = self._rows.ordinal_among_same(parent, members)
        recorded.bsp_number = self._numbers[recorded.handle] = self._rows.add_comm(
            parent, ordinal, self._kind(result), members, *self._neighbours(result)
        )
        self._children.append(0)
        return recorded, CREATES

    def _world_ranks(self, comm: Any) -> list[int]:
        group, all_ranks = comm.Get_group(), self._world.Get_group()
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
        try:
            size = getattr(data, "nbytes", None)
            if type(size) is int:
                return size
            if isinstance(data, (list, tuple)) and data:
                return self._volume_of_list(data)
            return memoryview(data).nbytes
        except Exception:  # noqa: BLE001  # what is wrong with it mpi4py will say
            return 0

    def _volume_of_list(self, data: list[Any] | tuple[Any, ...]) -> int:
        datatype = next((each for each in data[1:] if isinstance(each, self._mpi.Datatype)), None)
        counts = next(
            (each for each in data[1:] if not isinstance(each, (str, self._mpi.Datatype))), None
        )
        if isinstance(counts, (list, tuple)) and counts and not isinstance(counts[0], int):
            counts = counts[0]  # what follows are displacements
        if datatype is None or counts is None:
            return self._volume(data[0])
        total = counts if isinstance(counts, int) else sum(counts)
        return int(total) * int(datatype.Get_size())

    # -- requests ---------------------------------------------------------------------------------

    def _recording_requests(self, base: Any) -> dict[str, Any]:
        """Return the members of a request whose completion is recorded."""
        members: dict[str, Any] = {"__slots__": ("bsp_receives", "bsp_request")}
        for name in ("Wait", "Test", "wait", "test"):
            lines = proxy_methods.of_request(name)
            members[name] = self._method(getattr(base, name), name.capitalize(), lines)
        for each in ("all", "any", "some"):
            for name in (f"{way}{each}" for way in ("Wait", "Test", "wait", "test")):
                if hasattr(base, name):
                    lines = proxy_methods.of_requests(name)
                    method = self._method(getattr(base, name), name.capitalize(), lines)
                    members[name] = staticmethod(method)
        return members

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
