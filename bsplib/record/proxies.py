"""Records without a C compiler: classes of mpi4py in Python, around the methods of their bases.

mpi4py's classes cannot be changed, but they can be subclassed. ``MPI.COMM_WORLD`` and
``MPI.COMM_SELF`` become objects of subclasses, and so do communicators that are made from them, and
requests. ``MPI.Request`` itself is replaced, for its class methods. What this does not see is named
in :data:`NOT_COVERED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bsplib.record.events import (
    ANY_SOURCE,
    ANY_TAG,
    COMPLETES,
    CREATES,
    IN_PLACE,
    NOBODY,
    NUMBER,
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

_Describe = Callable[[Any, Call, Any, Any], None]
"""Says in a call what it moves, from the communicator and the arguments."""

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
_EXCHANGES = frozenset(("Sendrecv", "Sendrecv_replace"))
_PROBES = frozenset(("Probe", "Iprobe"))
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
        aborts: is told the error code before a communicator is aborted.
    """

    def __init__(self, mpi: Any, rows: PythonRows, aborts: Callable[[int], None]) -> None:
        self._mpi = mpi
        self._rows = rows
        self._aborts = aborts
        self._in_place_type = type(mpi.IN_PLACE)
        self._byte = mpi.BYTE
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
        members["Abort"] = self._aborting(base.Abort)
        return type(base.__name__, (base,), members)

    def _described(self) -> Iterator[tuple[str, str, tuple[_Describe, int]]]:
        """Yield the methods: name, name of the call, what describes it, and where its status is."""
        for name, parameters in _MESSAGES.items():
            call = f"{name[0].upper()}{name[1:]}"
            has_status = "status" in parameters and (call[0] != "I" or call == "Iprobe")
            at = parameters.index("status") if has_status else -1
            yield name, call, (self._message(parameters), at)
        for name in (*_TO_ROOT, *_FROM_ROOT, *_TO_ALL, *_NEIGHBOURS):
            for each in (name, f"I{name.lower()}"):
                yield each, each, (self._collective(name, _parameters(name)), -1)
        for name in _OBJECTS:
            call = name.capitalize()
            yield name, call, (self._collective(call, _parameters(name)), -1)

    def _method(self, base: Any, call: str, described: tuple[_Describe, int]) -> Any:
        """Return a method that records a call; for some of them a status tells what came."""
        describe, status_at = described
        rows, number, own = self._rows, NUMBER[call], self._mpi.Status()
        polls, receives = call == "Iprobe", "recv" in call.lower()
        starts, has_status = call[0] == "I" and not polls, status_at >= 0
        begin, enter, leave, finish = rows.begin, rows.enter, rows.leave, rows.finish

        def method(comm: Any, *args: Any, **kwargs: Any) -> Any:
            made = begin(number, comm.bsp_number)
            if made is None:
                return base(comm, *args, **kwargs)
            try:
                describe(comm, made, args, kwargs)
                if has_status:
                    status, args = _status_in(args, status_at, kwargs, own)
                enter(made)
                result = base(comm, *args, **kwargs)
            except BaseException:
                rows.failed(made)
                raise
            leave(made)
            if starts:
                result = self._started(made, result, receives)
            elif has_status and result is not False:
                self._arrived(made, call, status)
            finish(made, polled=polls and result is False)
            return result

        return _named(method, base)

    def _arrived(self, made: Call, call: str, status: Any) -> None:
        exchanges = call in _EXCHANGES
        size = 0 if call in _PROBES else status.Get_elements(self._byte)
        made.bytes_in = size
        if exchanges or made.partner == ANY_SOURCE or made.tag == ANY_TAG:
            source = self._code(status.Get_source())
            if exchanges:
                self._rows.add_part(made.partner, made.bytes_out, 0)
                self._rows.add_part(source, 0, size)
            self._rows.add_done(0, source, status.Get_tag(), size)

    def _started(self, made: Call, request: Any, receives: bool) -> Any:
        made.flags |= STARTS
        recorded = self._request(request)
        made.object = recorded.bsp_request = self._rows.new_number()
        recorded.bsp_receives = receives
        return recorded

    def _maker(self, base: Any, name: str, call: str) -> Any:
        rows, number = self._rows, NUMBER[call]

        def method(comm: Any, *args: Any, **kwargs: Any) -> Any:
            made = rows.begin(number, comm.bsp_number)
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

    def _aborting(self, base: Any) -> Any:
        aborts = self._aborts

        def method(comm: Any, errorcode: int = 0) -> Any:
            aborts(errorcode)
            return base(comm, errorcode)

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

    def _message(self, parameters: tuple[str, ...]) -> _Describe:
        partner = "dest" if "dest" in parameters else "source"
        tag = next(name for name in parameters if name in {"tag", "sendtag"})
        partner_at, tag_at = parameters.index(partner), parameters.index(tag)
        sends = partner == "dest"
        default_partner, default_tag = self._mpi.ANY_SOURCE, 0 if sends else ANY_TAG
        code, volume = self._codes, self._volume

        def describe(_comm: Any, made: Call, args: Any, kwargs: Any) -> None:
            count = len(args)
            rank = args[partner_at] if count > partner_at else kwargs.get(partner, default_partner)
            made.partner = code.get(rank, rank)
            made.tag = args[tag_at] if count > tag_at else kwargs.get(tag, default_tag)
            if sends and made.partner != PROC_NULL:
                data = args[0] if count else kwargs.get(parameters[0])
                made.bytes_out = data.nbytes if type(data) is np.ndarray else volume(data)

        return describe

    def _collective(self, name: str, parameters: tuple[str, ...]) -> _Describe:
        if name == "Bcast":
            return self._broadcast(parameters)
        if name == "Barrier":
            return _nothing
        into_at = 1 if "recvbuf" in parameters else len(parameters)
        root_at = parameters.index("root") if "root" in parameters else len(parameters)
        rooted, from_root = name in (*_TO_ROOT, *_FROM_ROOT), name in _FROM_ROOT
        sizes, is_array = self._sizes(name), np.ndarray

        def describe(comm: Any, made: Call, args: Any, kwargs: Any) -> None:
            count = len(args)
            mine = args[0] if count else kwargs.get(parameters[0])
            others = args[1] if count > into_at else kwargs.get("recvbuf")
            if type(mine) is is_array and type(others) is is_array:
                out, into = mine.nbytes, others.nbytes
            else:
                out, into = sizes(comm, made, mine, others)
            if rooted:
                made.partner = root = args[root_at] if count > root_at else kwargs.get("root", 0)
                if root != comm.rank:
                    out, into = (0, into) if from_root else (out, 0)
            made.bytes_out = out
            made.bytes_in = 0 if name == "Exscan" and comm.rank == 0 else into

        return describe

    def _broadcast(self, parameters: tuple[str, ...]) -> _Describe:
        def describe(comm: Any, made: Call, args: Any, kwargs: Any) -> None:
            made.partner = args[1] if len(args) > 1 else kwargs.get("root", 0)
            size = self._volume(args[0] if args else kwargs.get(parameters[0]))
            if made.partner == comm.rank:
                made.bytes_out = size
            else:
                made.bytes_in = size

        return describe

    def _sizes(self, name: str) -> Callable[[Any, Call, Any, Any], tuple[int, int]]:
        """Return what tells the bytes of both buffers, as if none was MPI_IN_PLACE."""
        gathers = "gather" in name.lower()
        has_blocks = gathers or "scatter" in name.lower()

        def sizes(comm: Any, made: Call, mine: Any, others: Any) -> tuple[int, int]:
            out, into = self._volume(mine), self._volume(others)
            blocks = comm.size if has_blocks else 1
            if self._is_in_place(mine):
                made.flags |= IN_PLACE
                out = into // blocks if gathers else into
            elif self._is_in_place(others):
                made.flags |= IN_PLACE
                into = out // blocks
            return out, into

        return sizes

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
        rows, number, own = self._rows, NUMBER[call], self._mpi.Status()

        def method(request: Any, status: Any = None) -> Any:
            made = rows.begin(number, NOBODY)
            if made is None:
                return base(request, status)
            status = own if status is None else status
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
        rows, number, kind = self._rows, NUMBER[call], self._mpi.Status
        is_any, is_all, tests = call.endswith("any"), call.endswith("all"), call[0] == "T"

        def method(_class: Any, requests: Any, statuses: Any = None) -> Any:
            made = rows.begin(number, NOBODY)
            if made is None:
                return base(requests, statuses)
            open_ones = [at for at, each in enumerate(requests) if _number_of(each)]
            if statuses is None:
                statuses = kind() if is_any else [kind() for _ in requests]
            rows.enter(made)
            try:
                result = base(requests, statuses)
            except BaseException:
                rows.failed(made)
                raise
            rows.leave(made)
            done = [at for at in open_ones if not requests[at]]
            for order, at in enumerate(done):
                status = statuses if is_any else statuses[at if is_all else order]
                self._completed(made, requests[at], status)
            rows.finish(made, polled=tests and not done)
            return result

        return _named(method, base)

    def _completed(self, made: Call, request: Any, status: Any) -> None:
        if not request.bsp_request:
            return
        made.flags |= COMPLETES
        if request.bsp_receives and not status.Is_cancelled():
            size = status.Get_elements(self._byte)
            source = self._code(status.Get_source())
            self._rows.add_done(request.bsp_request, source, status.Get_tag(), size)
        else:
            self._rows.add_done(request.bsp_request, NOBODY, ANY_TAG, 0)
        request.bsp_request = 0


def _status_in(
    args: tuple[Any, ...], at: int, kwargs: dict[str, Any], own: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Return the status of a call, which is our own one unless it has one, and its arguments."""
    status = args[at] if len(args) > at else kwargs.get("status")
    if status is not None:
        return status, args
    if len(args) > at:
        return own, (*args[:at], own)
    kwargs["status"] = own
    return own, args


def _number_of(request: Any) -> int:
    """Return the number of a request; 0 of one that is not recorded."""
    number: int = getattr(request, "bsp_request", 0)
    return number


def _nothing(_comm: Any, made: Call, args: Any, kwargs: Any) -> None:
    """Describe a call that moves no bytes."""


def _named(method: Any, base: Any) -> Any:
    method.__name__ = base.__name__
    method.__qualname__ = getattr(base, "__qualname__", base.__name__)
    method.__doc__ = base.__doc__
    return method
