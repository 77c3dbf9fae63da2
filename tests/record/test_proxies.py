"""Without a C compiler, the calls of mpi4py's communicators and requests are recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bsplib.record.events import (
    CALLS,
    CREATES,
    FORMAT,
    NOBODY,
    NOT_READ,
    NUMBER,
    RAISED,
    WORLD,
    file_name,
    rank_files,
    read_rank,
)
from bsplib.record.proxies import NOT_COVERED
from bsplib.record.python_rows import PythonRows

from .conftest import RECORDED, Rows, run

PROGRAM = str(Path(__file__).with_name("every_kind.py"))
NO_COMPILER = {"CC": "nosuch", "PATH": "/nosuch"}


@pytest.fixture(
    params=[
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(2, marks=pytest.mark.lengthy),
        pytest.param(4, marks=pytest.mark.slow),
    ],
    scope="module",
    ids=lambda count: f"p{count}",
)
def ran(request, mpi, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxies")
    variables = NO_COMPILER | {"XDG_CACHE_HOME": str(folder)}
    words = ("-c", RECORDED, str(folder / "out.bsp"), PROGRAM, str(folder / "data"))
    done = run(mpi, request.param, *words, **variables)
    assert done.status == 0, done.errors
    done.ranks = [read_rank(path) for path in rank_files(folder / "out.bsp.ranks")]
    assert len(done.ranks) == request.param
    done.bare = run(mpi, request.param, PROGRAM, str(folder / "data_of_bare"))
    return done


def each(ran, function):
    for rank, recorded in enumerate(ran.ranks):
        yield rank, len(ran.ranks), Rows(recorded, function)


def test_what_is_not_covered_is_said_once(ran):
    assert ran.errors.count("there is no C compiler") == 1
    assert ran.errors.count(", ".join(NOT_COVERED)) == 1
    assert all(rank.header["not_covered"] == list(NOT_COVERED) for rank in ran.ranks)
    assert {rank.header["recorder"] for rank in ran.ranks} == {"proxies"}


def test_the_program_prints_what_it_prints_without_being_recorded(ran):
    assert ran.output == ran.bare.output


def test_events_do_not_overlap_and_have_lines(ran):
    for recorded in ran.ranks:
        rows = recorded.events
        assert (rows["leave"][:-1] <= rows["enter"][1:]).all()
        assert (rows["stack"][1:] >= 0).all()
        assert recorded.end["status"] == 0
        assert CALLS[rows["call"][0]] == "Init"


def test_messages_and_their_requests_are_recorded(ran):
    for rank, size, rows in each(ran, "messages"):
        right, left = (rank + 1) % size, (rank - 1) % size
        assert rows.names() == ["Sendrecv", "Irecv", "Isend", "Wait", "Wait", "Send"]
        assert rows.bytes_of("Sendrecv") == [(80, 80)]
        assert rows.dones("Sendrecv") == [[(0, left, 3, 80)]]
        assert rows.column("Irecv", "partner") == [left]
        assert rows.bytes_of("Isend") == [(40, 0)]
        assert rows.column("Isend", "partner") == [right]
        (receive,), (send,) = rows.column("Irecv", "object"), rows.column("Isend", "object")
        assert rows.dones("Wait") == [[(send, NOBODY, -1, 0)], [(receive, left, 4, 40)]]


def test_collectives_have_the_sizes_of_their_buffers(ran):
    for rank, size, rows in each(ran, "collectives"):
        root = rank == size - 1
        assert rows.bytes_of("Bcast") == [(80, 0) if root else (0, 80)]
        assert rows.column("Bcast", "partner") == [size - 1]
        assert rows.bytes_of("Gather") == [(80, 80 * size if root else 0)]
        assert rows.bytes_of("Scatter") == [(80 * size if root else 0, 80)]
        assert rows.bytes_of("Alltoall") == [(80 * size, 80 * size)]
        assert rows.bytes_of("Reduce") == [(80, 80 if root else 0)]
        assert rows.bytes_of("Reduce_scatter_block") == [(80 * size, 80)]
        assert rows.bytes_of("Exscan") == [(80, 80 if rank else 0)]
    for rank, size, rows in each(ran, "in_place"):
        assert rows.bytes_of("Allreduce") == [(80, 80)]
        assert rows.bytes_of("Allgather") == [(80, 80 * size)]
        assert rows.bytes_of("Gather") == [(80, 0 if rank else 80 * size)]
        assert rows.bytes_of("Scatter") == [(0 if rank else 80 * size, 80)]


def test_communicators_are_those_that_the_shim_tells(ran):
    for rank, recorded in enumerate(ran.ranks):
        size = len(ran.ranks)
        rows = Rows(recorded, "communicators")
        (barrier,) = rows.named("Barrier")
        clone = recorded.comms[recorded.events["comm"][barrier]]
        assert clone.ordinal == 6
        split = next(comm for comm in recorded.comms if (comm.parent, comm.ordinal) == (0, 1))
        assert split.members == tuple(range(rank % 2, size, 2))
        (graph,) = [comm for comm in recorded.comms if comm.kind == "dist_graph"]
        assert graph.destinations == ((rank + 1) % size,)
        assert any(recorded.events["flags"] & CREATES)


KINDS = """
import threading
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
x, y, z = np.zeros(4), np.zeros(4), np.zeros(2)
def arrays_as_objects():
    request = comm.isend(x, 0)
    comm.recv(source=0)
    request.wait()
    comm.allreduce(x)
def by_name():
    comm.Allreduce(recvbuf=y, sendbuf=x)
    comm.Send(buf=x, dest=MPI.PROC_NULL, tag=5)
    comm.Reduce(x, recvbuf=y, root=0)
    status = MPI.Status()
    MPI.Request.Waitany([comm.Irecv(y, 0, 1), comm.Isend(x + 1, 0, 1)], status=status)
def in_any_order():
    requests = [comm.Irecv(y, 0, 3), comm.Irecv(z, 0, 2), comm.Isend(z + 1, 0, 2)]
    requests.append(comm.Isend(x, 0, 3))
    done = 0
    while done < 4:
        done += len(MPI.Request.Waitsome(requests) or [])
def wrong():
    for arguments in ((x, "0"), (x, 0, 1 << 40), ([x, 0, 1, MPI.DATATYPE_NULL], 0)):
        try:
            comm.Send(*arguments)
        except (TypeError, OverflowError, ValueError) as error:
            print(type(error).__name__)
def elsewhere():
    thread = threading.Thread(target=comm.Barrier)
    thread.start()
    thread.join()
for function in (arrays_as_objects, by_name, in_any_order, wrong, elsewhere):
    function()
"""


@pytest.fixture(scope="module")
def of_kinds(mpi, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "program.py").write_text(KINDS)
    variables = NO_COMPILER | {"XDG_CACHE_HOME": str(folder)}
    out = folder / "out.bsp"
    done = run(mpi, 1, "-c", RECORDED, str(out), str(folder / "program.py"), **variables)
    assert done.status == 0, done.errors
    (path,) = rank_files(folder / "out.bsp.ranks")
    done.ranks = [read_rank(path)]
    return done


def test_arrays_that_are_sent_as_objects_count_once(of_kinds):
    rows = Rows(of_kinds.ranks[0], "arrays_as_objects")
    ((out, _),), ((_, into),) = rows.bytes_of("Isend"), rows.bytes_of("Recv")
    assert out == into > 32
    ((out, into),) = rows.bytes_of("Allreduce")
    assert out == into > 32


def test_calls_with_wrong_arguments_raise_the_errors_of_mpi4py(of_kinds):
    assert of_kinds.output == "TypeError\nOverflowError\nValueError\n"
    rows = Rows(of_kinds.ranks[0], "wrong")
    assert all(flags & RAISED for flags in rows.column("Send", "flags"))
    assert rows.names() == ["Send"] * 3


def test_calls_that_fail_fill_more_than_a_chunk(tmp_path):
    rows = PythonRows(tmp_path / file_name(0), pytest.fail)
    rows.line("header", {"format": FORMAT, "rank": 0})
    failed = rows.names_of_methods()["failed"]
    for _ in range(2500):
        failed((NUMBER["Send"], 0, WORLD, 0, 0, 0, 0, 0, 0, 0), NOT_READ, NOT_READ)
    rows.close()
    found = read_rank(tmp_path / file_name(0)).events
    assert len(found) == 2500
    assert (found["flags"] == RAISED).all()
    assert (np.diff(found["enter"]) >= 0).all()


NOTICES = """
import pickle, sys
from collections.abc import Sized
import numpy as np
from mpi4py import MPI
from mpi4py.util import pkl5
world = MPI.COMM_WORLD
def print(*values):  # a line at once: parts of lines of several ranks would be mixed
    sys.stdout.write(" ".join(map(str, values)) + "\\n")
class Own(MPI.Intracomm):
    def twice(self, x):
        return 2 * self.allreduce(x)
class Abstract(MPI.Intracomm, Sized):
    def __len__(self):
        return self.size
def classes():
    cart, split = world.Create_cart([world.size]), world.Split(0)
    for comm in (world, MPI.COMM_SELF, cart, split, cart.Dup(), cart.Sub([True])):
        kinds = (MPI.Comm, MPI.Intracomm, MPI.Topocomm, MPI.Cartcomm, MPI.Intercomm)
        print([isinstance(comm, kind) for kind in kinds], [type(comm) is kind for kind in kinds])
    print(type(MPI.COMM_NULL) is MPI.Comm, type(world.Split(MPI.UNDEFINED)) is MPI.Intracomm)
    print(issubclass(MPI.Cartcomm, MPI.Intracomm), issubclass(MPI.Intracomm, MPI.Cartcomm))
    print(issubclass(MPI.Prequest, MPI.Request), issubclass(MPI.Intercomm, MPI.Intracomm))
    for comm in (world, MPI.COMM_NULL, cart):
        other = type(comm).fromhandle(comm.handle)
        print(other == comm, other is comm, type(other) is type(comm))
    for comm in (world, MPI.COMM_SELF, MPI.COMM_NULL):
        comm.free()
        print(bool(comm))
    cart.Free()
    print(cart == MPI.COMM_NULL, bool(cart))
def requests():
    null, x, y = MPI.REQUEST_NULL, np.zeros(1), np.zeros(1)
    started = world.Isend(x, 0, 9) if world.rank == 0 else null
    for request in (null, started, world.Send_init(x, 0), MPI.Request(null)):
        print(isinstance(request, MPI.Request), request == null, type(request).__name__)
    print(type(started) is type(null) is MPI.Request)
    if world.rank == 0:
        world.Recv(y, 0, 9)
    started.Wait()
    print(started == null, pkl5.Request(null) == null)
def pickled():
    for each in (world, MPI.COMM_SELF, MPI.COMM_NULL, null := MPI.REQUEST_NULL):
        again = pickle.loads(pickle.dumps(each))
        copy = pickle.loads(pickle.dumps(type(each)(each)))
        print(again is each, copy is each, copy == each, type(copy) is type(each))
    try:
        pickle.dumps(world.Dup())
    except ValueError as error:
        print(error)
def derived():
    own = Own(world)
    print(own.twice(1), type(own.Dup()) is Own, isinstance(world, Own), isinstance(own, MPI.Comm))
    print(len(Abstract(world)), len(Abstract(world).Dup()), isinstance(Abstract(world), Sized))
    print(pkl5.Intracomm(world).allreduce(1))
def inside():
    MPI.Intracomm(world).Split(0).Barrier()
    world.Split(0).Barrier()
    Own(world).Barrier()
def of_pkl5():
    comm = pkl5.Intracomm(world)
    print(comm.sendrecv(3, (comm.rank + 1) % 2, source=(comm.rank + 1) % 2))
def of_pkl5_collectives():
    print(pkl5.Intracomm(world).allgather(3))
for function in (classes, requests, pickled, derived, inside, of_pkl5, of_pkl5_collectives):
    function()
"""


@pytest.mark.lengthy
def test_programs_do_not_notice_the_classes_of_the_recorder(mpi, tmp_path):
    (tmp_path / "program.py").write_text(NOTICES)
    variables = NO_COMPILER | {"XDG_CACHE_HOME": str(tmp_path)}
    words = ("-c", RECORDED, str(tmp_path / "out.bsp"), str(tmp_path / "program.py"))
    done, bare = run(mpi, 2, *words, **variables), run(mpi, 2, str(tmp_path / "program.py"))
    assert (done.status, bare.status) == (0, 0), done.errors
    assert sorted(done.output.splitlines()) == sorted(bare.output.splitlines())
    first, second = (read_rank(path) for path in rank_files(tmp_path / "out.bsp.ranks"))
    rows = Rows(first, "inside")
    assert rows.names() == ["Comm_split", "Barrier", "Comm_split", "Barrier", "Barrier"]
    numbers = rows.column("Barrier", "comm")
    assert numbers[2] == 0
    ordinals = [comm.ordinal for comm in first.comms if comm.parent == 0]
    assert len(set(ordinals)) == len(ordinals) > 5
    assert [comm.ordinal for comm in second.comms] == [comm.ordinal for comm in first.comms]
    called = set(Rows(first, "of_pkl5").names())
    assert called == {"Isend", "Probe", "Recv", "Waitall"}
