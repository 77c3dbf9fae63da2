"""Records without a C compiler: classes of mpi4py in Python, around the methods of their bases.

mpi4py's classes cannot be changed, but they can be subclassed. ``MPI.COMM_WORLD`` and
``MPI.COMM_SELF`` become objects of subclasses, and so do communicators that are made from them, and
requests. ``MPI.Request`` itself is replaced, for its class methods. What this does not see is named
in :data:`NOT_COVERED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bsplib.record.events import (
    ANY_SOURCE,
    ANY_TAG,
    COMPLETES,
    CREATES,
    IN_PLACE,
    NOBODY,
    PROC_NULL,
    STARTS,
)
from bsplib.record.python_rows import Call, PythonRows

NOT_COVERED = (
    "calls of MPI by code in C, such as h5py and petsc4py",
    "windows",
    "files",
    "matched messages",
    "persistent and partitioned requests",
    "intercommunicators",
    "the bytes of each partner in v and w variants and in neighbourhood collectives",
)

_Describe = Callable[[Any, Call, Any, Any], dict[str, Any]]
"""Says in a call what it moves, from the communicator and the arguments; returns these by name."""

_SEND, _RECEIVE, _PROBE = (
    ("buf", "dest", "tag"),
    ("buf", "source", "tag", "status"),
    ("source", "tag"),
)
_EXCHANGE = ("sendbuf", "dest", "sendtag", "recvbuf", "source", "recvtag", "status")
_REPLACE = ("buf", "dest", "sendtag", "source", "recvtag", "status")
_ROOTED = ("sendbuf", "recvbuf", "root")
_REDUCE = ("sendbuf", "recvbuf", "op", "root")
_ALL = ("sendbuf", "recvbuf")

_MESSAGES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend"), _SEND),
    **dict.fromkeys(("Isend", "Ibsend", "Issend", "Irsend"), _SEND),
    **dict.fromkeys(("send", "bsend", "ssend", "isend", "ibsend", "issend"), _SEND),
    **dict.fromkeys(("Recv", "recv", "Irecv", "irecv"), _RECEIVE),
    **dict.fromkeys(("Sendrecv", "sendrecv", "Isendrecv"), _EXCHANGE),
    **dict.fromkeys(("Sendrecv_replace", "Isendrecv_replace"), _REPLACE),
    **dict.fromkeys(("Probe", "probe", "Iprobe", "iprobe"), (*_PROBE, "status")),
}
_TO_ROOT = ("Gather", "Gatherv", "Reduce")
_FROM_ROOT = ("Bcast", "Scatter", "Scatterv")
_TO_ALL = (
    *("Barrier", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw", "Allreduce"),
    *("Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan"),
)
_NEIGHBOURS = tuple(
    f"Neighbor_all{end}" for end in ("gather", "gatherv", "toall", "toallv", "toallw")
)
_OBJECTS = [
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
]
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
_SOME = "Create_group"
"""The maker that not all processes of the communicator call."""


def _parameters(name: str) -> tuple[str, ...]:
    """Return the names of the parameters of a collective, as far as they matter."""
    plain = (
        name.lower().removeprefix("i") if name[1:2].islower() and name[0] == "I" else name.lower()
    )
    if plain == "bcast":
        return ("buf", "root")
    if name in _OBJECTS:
        return ("sendobj", "op", "root") if plain == "reduce" else ("sendobj", "root")
    if plain == "reduce":
        return _REDUCE
    return _ROOTED if plain.capitalize() in (*_TO_ROOT, *_FROM_ROOT) else _ALL


class Proxies:
    """Makes the subclasses of one ``mpi4py.MPI``, and puts them into it.

    Args:
        mpi: the module.
        rows: where calls are written.
    """

    def __init__(self, mpi: Any, rows: PythonRows) -> None:
        self._mpi = mpi
        self._rows = rows
        self._codes = {mpi.ANY_SOURCE: ANY_SOURCE, mpi.PROC_NULL: PROC_NULL}
        self._classes = {
            base: self._subclass(base)
            for base in (mpi.Cartcomm, mpi.Graphcomm, mpi.Distgraphcomm, mpi.Intracomm)
        }
        self._request = self._request_class(mpi.Request)

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
        for name, call, described in self._described():
            if hasattr(base, name):
                members[name] = self._method(getattr(base, name), call, described)
        for name, call in _MAKERS.items():
            if hasattr(base, name):
                members[name] = self._maker(getattr(base, name), name, call)
        return type(base.__name__, (base,), members)

    def _described(self) -> Iterator[tuple[str, str, _Describe]]:
        """Yield the methods: name, name of the call, and what describes the call."""
        for name, parameters in _MESSAGES.items():
            call = f"{name[0].upper()}{name[1:]}"
            yield name, call, self._message(call, parameters)
        for name in (*_TO_ROOT, *_FROM_ROOT, *_TO_ALL, *_NEIGHBOURS):
            for each in (name, f"I{name.lower()}"):
                yield each, each, self._collective(name, _parameters(name))
        for name in _OBJECTS:
            yield name, name.capitalize(), self._collective(name.capitalize(), _parameters(name))

    def _method(self, base: Any, call: str, describe: _Describe) -> Any:
        """Return a method that records a call."""
        rows, starts = self._rows, call[0] == "I" and call not in {"Iprobe"}
        has_status = call in {"Recv", "Sendrecv", "Sendrecv_replace", "Probe", "Iprobe"}
        mpi = self._mpi

        def method(comm: Any, *args: Any, **kwargs: Any) -> Any:
            made = rows.begin(call, comm.bsp_number)
            if made is None:
                return base(comm, *args, **kwargs)
            status = None
            try:
                values = describe(comm, made, args, kwargs)
                if has_status:
                    status = values.get("status")
                    if status is None:
                        status = kwargs["status"] = mpi.Status()
                rows.enter(made)
                result = base(comm, *args, **kwargs)
            except BaseException:
                rows.failed(made)
                raise
            rows.leave(made)
            if status is not None and result is not False:
                self._arrived(made, call, status)
            if starts:
                result = self._started(made, result, "recv" in call.lower())
            rows.finish(made, polled=result is False and call == "Iprobe")
            return result

        return _named(method, base)

    def _arrived(self, made: Call, call: str, status: Any) -> None:
        source = self._code(status.Get_source())
        probe = call in {"Probe", "Iprobe"}
        size = 0 if probe else status.Get_elements(self._mpi.BYTE)
        made.bytes_in = size
        if call.startswith("Sendrecv"):
            self._rows.add_part(made.partner, made.bytes_out, 0)
            self._rows.add_part(source, 0, size)
        if call.startswith("Sendrecv") or made.partner == ANY_SOURCE or made.tag == ANY_TAG:
            self._rows.add_done(0, source, status.Get_tag(), size)

    def _started(self, made: Call, request: Any, receives: bool) -> Any:
        made.flags |= STARTS
        recorded = self._request(request)
        made.object = recorded.bsp_request = self._rows.new_number()
        recorded.bsp_receives = receives
        return recorded

    def _maker(self, base: Any, name: str, call: str) -> Any:
        rows = self._rows

        def method(comm: Any, *args: Any, **kwargs: Any) -> Any:
            made = rows.begin(call, comm.bsp_number)
            if made is None:
                return base(comm, *args, **kwargs)
            rows.enter(made)
            try:
                result = base(comm, *args, **kwargs)
            except BaseException:
                rows.failed(made)
                raise
            rows.leave(made)
            result = self._made(comm, made, result, by_all=name != _SOME)
            rows.finish(made)
            return result

        return _named(method, base)

    def _made(self, comm: Any, made: Call, result: Any, *, by_all: bool) -> Any:
        """Return a new communicator as an object of a subclass."""
        comm.bsp_children += by_all
        base = next((base for base in self._classes if isinstance(result, base)), None)
        if base is None or result == self._mpi.COMM_NULL:
            return result
        made.flags |= CREATES
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
        return recorded

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

    def _message(self, call: str, parameters: tuple[str, ...]) -> _Describe:
        sends = "dest" in parameters
        is_object_free = call not in {"Probe", "Iprobe"}

        def describe(_comm: Any, made: Call, args: Any, kwargs: Any) -> dict[str, Any]:
            values: dict[str, Any] = dict(zip(parameters, args, strict=False)) | kwargs
            open_source, open_tag = self._mpi.ANY_SOURCE, ANY_TAG
            if sends:
                made.partner = self._code(values.get("dest", NOBODY))
                made.tag = values.get("tag", values.get("sendtag", 0))
                data = values.get("buf", values.get("sendbuf"))
                if is_object_free and made.partner != PROC_NULL:
                    made.bytes_out = self._volume(data)
            else:
                made.partner = self._code(values.get("source", open_source))
                made.tag = values.get("tag", open_tag)
            return values

        return describe

    def _collective(self, name: str, parameters: tuple[str, ...]) -> _Describe:
        to_root, from_root = name in _TO_ROOT, name in _FROM_ROOT

        def describe(comm: Any, made: Call, args: Any, kwargs: Any) -> dict[str, Any]:
            values: dict[str, Any] = dict(zip(parameters, args, strict=False)) | kwargs
            is_root = True
            if to_root or from_root:
                made.partner = values.get("root", 0)
                is_root = made.partner == comm.rank
            if name == "Bcast":
                size = self._volume(values.get("buf"))
                made.bytes_out, made.bytes_in = (size, 0) if is_root else (0, size)
                return values
            out, into = self._sizes(made, values, comm.size, name)
            made.bytes_out = out if is_root or not from_root else 0
            made.bytes_in = into if is_root or not to_root else 0
            if name == "Exscan" and comm.rank == 0:
                made.bytes_in = 0
            return values

        return describe

    def _sizes(self, made: Call, values: dict[str, Any], size: int, name: str) -> tuple[int, int]:
        """Return the bytes of both buffers, as if none was MPI_IN_PLACE."""
        mine, others = values.get("sendbuf"), values.get("recvbuf")
        out, into = self._volume(mine), self._volume(others)
        blocks = size if "gather" in name.lower() or "scatter" in name.lower() else 1
        if self._is_in_place(mine):
            made.flags |= IN_PLACE
            out = into // blocks if "gather" in name.lower() else into
        elif self._is_in_place(others):
            made.flags |= IN_PLACE
            into = out // blocks
        return out, into

    def _is_in_place(self, data: Any) -> bool:
        return type(data) is type(self._mpi.IN_PLACE) and data == self._mpi.IN_PLACE

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
            "bsp_request": 0,
            "bsp_receives": False,
            "__module__": base.__module__,
        }
        for name in ("Wait", "Test", "wait", "test"):
            members[name] = self._one(getattr(base, name), name.capitalize())
        for name in ("all", "any", "some"):
            for way in ("Wait", "Test", "wait", "test"):
                method = getattr(base, way + name, None)
                if method is not None:
                    recorded = self._several(method, f"{way.capitalize()}{name}")
                    members[way + name] = classmethod(recorded)
        return type(base.__name__, (base,), members)

    def _one(self, base: Any, call: str) -> Any:
        rows, mpi = self._rows, self._mpi

        def method(request: Any, status: Any = None) -> Any:
            made = rows.begin(call, NOBODY)
            if made is None:
                return base(request, status)
            status = mpi.Status() if status is None else status
            made.object = request.bsp_request
            rows.enter(made)
            try:
                result = base(request, status)
            except BaseException:
                rows.failed(made)
                raise
            rows.leave(made)
            waits = result is False or (isinstance(result, tuple) and not result[0])
            if not waits:
                self._completed(made, request, status)
            rows.finish(made, polled=waits)
            return result

        return _named(method, base)

    def _several(self, base: Any, call: str) -> Any:
        rows, mpi = self._rows, self._mpi

        def method(_class: Any, requests: Any, statuses: Any = None) -> Any:
            made = rows.begin(call, NOBODY)
            if made is None:
                return base(requests, statuses)
            open_ones = [each for each in requests if getattr(each, "bsp_request", 0)]
            if statuses is None:
                statuses = (
                    mpi.Status() if call.endswith("any") else [mpi.Status() for _ in requests]
                )
            rows.enter(made)
            try:
                result = base(requests, statuses)
            except BaseException:
                rows.failed(made)
                raise
            rows.leave(made)
            done = [each for each in open_ones if each == mpi.REQUEST_NULL]
            positions = {id(each): at for at, each in enumerate(requests)}
            for order, each in enumerate(done):
                status = statuses
                if not call.endswith("any"):
                    at = positions[id(each)] if call.endswith("all") else order
                    status = statuses[at]
                self._completed(made, each, status)
            rows.finish(made, polled=call.startswith("Test") and not done)
            return result

        return _named(method, base)

    def _completed(self, made: Call, request: Any, status: Any) -> None:
        if not request.bsp_request:
            return
        made.flags |= COMPLETES
        if request.bsp_receives and not status.Is_cancelled():
            size = status.Get_elements(self._mpi.BYTE)
            source = self._code(status.Get_source())
            self._rows.add_done(request.bsp_request, source, status.Get_tag(), size)
        else:
            self._rows.add_done(request.bsp_request, NOBODY, ANY_TAG, 0)
        request.bsp_request = 0


def _named(method: Any, base: Any) -> Any:
    method.__name__ = base.__name__
    method.__qualname__ = getattr(base, "__qualname__", base.__name__)
    method.__doc__ = base.__doc__
    return method
