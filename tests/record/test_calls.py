"""Every kind of call of MPI is recorded, with its partners, bytes and requests, on both MPIs."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from bsplib.record.events import NOBODY, PROC_NULL, ROOT

from .conftest import Rows, record, run

PROGRAM = str(Path(__file__).with_name("every_kind.py"))
COUNTS = [
    pytest.param(1, marks=pytest.mark.slow),
    pytest.param(2, marks=pytest.mark.lengthy),
    pytest.param(4, marks=pytest.mark.slow),
]


@pytest.fixture(params=COUNTS, scope="module", ids=lambda count: f"p{count}")
def ran(request, mpi, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calls")
    done = record(mpi, request.param, folder / "out.bsp", PROGRAM, str(folder / "data"))
    assert done.status == 0, done.errors
    assert len(done.ranks) == request.param
    done.bare = run(mpi, request.param, PROGRAM, str(folder / "data_of_bare"))
    return done


def each(ran, function):
    """(rank, number of ranks, rows) of a function in each rank."""
    for rank, recorded in enumerate(ran.ranks):
        yield rank, len(ran.ranks), Rows(recorded, function)


def test_the_program_prints_what_it_prints_without_being_recorded(ran):
    assert ran.bare.status == 0
    assert ran.output == ran.bare.output
    assert ran.output


def test_a_file_has_the_rank_and_what_ran(ran):
    for rank, recorded in enumerate(ran.ranks):
        header = recorded.header
        assert (header["rank"], header["size"]) == (rank, len(ran.ranks))
        assert header["program"] == PROGRAM
        assert header["mpi"] in {"MPICH", "Open MPI"}
        assert recorded.end["finalize"] <= recorded.events["leave"][-1]


def test_events_do_not_overlap_and_are_in_the_order_of_time(ran):
    for recorded in ran.ranks:
        enter, leave = recorded.events["enter"], recorded.events["leave"]
        assert recorded.header["begin"] <= enter[0]
        assert np.all(enter <= leave)
        assert np.all(leave[:-1] <= enter[1:])
        assert leave[-1] <= time.monotonic_ns()


def test_a_call_has_the_lines_that_lead_to_it(ran):
    for recorded in ran.ranks:
        (number,) = {
            recorded.events["stack"][i] for i in Rows(recorded, "derived").named("Sendrecv")
        }
        frames = recorded.stacks[number]
        names = [name for _, name, *_ in frames if "comp>" not in name]  # a frame until 3.11
        assert names == ["<module>", "main", "derived"]
        text = Path(PROGRAM).read_text(encoding="utf-8").splitlines()
        assert "comm.Sendrecv([X, 1, every_other]" in text[frames[-1][3] - 1]
        assert text[frames[-1][2] - 1].startswith("def derived")
        assert not any(library for *_, library in frames)


def test_messages_have_partner_tag_and_bytes(ran):
    for rank, size, rows in each(ran, "messages"):
        right, left = (rank + 1) % size, (rank - 1) % size
        assert rows.bytes_of("Sendrecv") == [(80, 80)]
        assert rows.column("Sendrecv", "partner") == [right]
        assert rows.dones("Sendrecv") == [[(0, left, 3, 80)]]
        assert rows.bytes_of("Irecv") == [(0, 0)]
        assert rows.column("Irecv", "partner") == [left]
        assert rows.bytes_of("Isend") == [(40, 0)]
        assert rows.column("Isend", "tag") == [4]
        (receive,), (send,) = rows.column("Irecv", "object"), rows.column("Isend", "object")
        assert rows.dones("Wait") == [[(send, NOBODY, -1, 0)], [(receive, left, 4, 40)]]
        assert rows.bytes_of("Send") == [(0, 0)]
        assert rows.column("Send", "partner") == [PROC_NULL]


def test_each_start_of_a_persistent_request_has_a_number(ran):
    for rank, size, rows in each(ran, "persistent"):
        left = (rank - 1) % size
        assert rows.names()[:2] == ["Recv_init", "Send_init"]
        assert rows.bytes_of("Send_init") == [(0, 0)]
        assert rows.bytes_of("Start") == [(0, 0), (80, 0)] * 2
        numbers = rows.column("Start", "object")
        assert len(set(numbers)) == 4
        dones = rows.dones("Waitall")
        assert [sorted(done[0] for done in each) for each in dones] == [numbers[:2], numbers[2:]]
        assert [done[1:] for done in dones[0] if done[0] == numbers[0]] == [(left, 5, 80)]
        assert rows.names().count("Request_free") == 2


def test_each_start_of_a_persistent_collective_is_one_that_does_not_block(ran):
    for _, _, rows in each(ran, "repeated"):
        assert rows.bytes_of("Allreduce_init") == [(0, 0)]
        assert rows.bytes_of("Iallreduce") == [(80, 80)] * 2
        first, second = rows.column("Iallreduce", "object")
        assert rows.dones("Wait") == [[(first, NOBODY, -1, 0)], [(second, NOBODY, -1, 0)]]
        assert not rows.named("Start")


def test_collectives_have_the_sizes_of_their_buffers(ran):
    for rank, size, rows in each(ran, "collectives"):
        root = rank == size - 1
        assert rows.bytes_of("Barrier") == [(0, 0)]
        assert rows.bytes_of("Bcast") == [(80, 0) if root else (0, 80)]
        assert rows.column("Bcast", "partner") == [size - 1]
        assert rows.bytes_of("Gather") == [(80, 80 * size if root else 0)]
        assert rows.bytes_of("Scatter") == [(80 * size if root else 0, 80)]
        assert rows.bytes_of("Allgather") == [(80, 80 * size)]
        assert rows.bytes_of("Alltoall") == [(80 * size, 80 * size)]
        assert rows.bytes_of("Reduce") == [(80, 80 if root else 0)]
        assert rows.bytes_of("Allreduce") == [(80, 80)]
        assert rows.bytes_of("Reduce_scatter_block") == [(80 * size, 80)]
        assert rows.bytes_of("Scan") == [(80, 80)]
        assert rows.bytes_of("Exscan") == [(80, 80 if rank else 0)]


def test_a_buffer_in_place_counts_as_another_would(ran):
    for rank, size, rows in each(ran, "in_place"):
        assert rows.bytes_of("Allreduce") == [(80, 80)]
        assert rows.bytes_of("Allgather") == [(80, 80 * size)]
        assert rows.bytes_of("Gather") == [(80, 0 if rank else 80 * size)]
        assert rows.bytes_of("Scatter") == [(0 if rank else 80 * size, 80)]


def test_vectors_have_the_bytes_of_each_partner(ran):
    for rank, size, rows in each(ran, "vectors"):
        mine, total = 8 * (rank + 1), 8 * sum(range(1, size + 1))
        from_each = [(i, 0, 8 * (i + 1)) for i in range(size)]
        assert rows.bytes_of("Gatherv") == [(mine, 0 if rank else total)]
        assert rows.bytes_of("Scatterv") == [(0 if rank else total, mine)]
        assert rows.bytes_of("Allgatherv") == [(mine, total)]
        assert rows.bytes_of("Alltoallv") == [(mine * size, total)]
        assert rows.parts("Alltoallv") == [[(i, mine, n) for i, _, n in from_each]]
        assert rows.bytes_of("Alltoallw") == [(16 * size, 16 * size)]
        assert rows.bytes_of("Reduce_scatter") == [(total, mine)]


def test_communicators_have_parent_ordinal_and_members(ran):
    for rank, recorded in enumerate(ran.ranks):
        size = len(ran.ranks)
        rows = Rows(recorded, "communicators")
        makers = ("Comm_dup", "Comm_split", "Cart_create", "Comm_split_type")
        assert {*rows.names()} >= set(makers)
        comms = {comm.number: comm for comm in recorded.comms}
        (barrier,) = rows.named("Barrier")
        clone = comms[recorded.events["comm"][barrier]]
        assert clone.members == tuple(range(size))
        # All that the processes of the world made together before, and it.
        assert clone.ordinal - recorded.comms[0].ordinal == 6
        split = next(comm for comm in recorded.comms if (comm.parent, comm.ordinal) == (0, 1))
        assert split.members == tuple(range(rank % 2, size, 2))
        of_group = [comm for comm in recorded.comms if comm.parent == 0 and comm.ordinal < 0]
        assert [comm.members for comm in of_group] == ([] if rank else [(0,)])
        assert rows.names().count("Comm_free") == 7


def test_an_intercommunicator_has_two_groups(ran):
    size = len(ran.ranks)
    for rank, recorded in enumerate(ran.ranks):
        if size == 1:
            assert not any(comm.remote for comm in recorded.comms)
            continue
        rows = Rows(recorded, "across")
        halves = tuple(range(size // 2)), tuple(range(size // 2, size))
        mine, others = halves if rank < size // 2 else halves[::-1]
        (inter,) = [comm for comm in recorded.comms if comm.remote]
        assert (inter.members, inter.remote) == (mine, others)
        assert rows.bytes_of("Allreduce") == [(80, 80)]
        root = rank == 0
        assert rows.bytes_of("Bcast") == [(80, 0) if root else (0, 80 if mine[0] else 0)]
        assert rows.column("Bcast", "partner") == [ROOT if root else 0 if mine[0] else PROC_NULL]
        merged = next(comm for comm in recorded.comms if comm.parent == inter.number)
        assert merged.members == tuple(range(size))


def test_bytes_of_a_derived_type_are_its_size(ran):
    for _, _, rows in each(ran, "derived"):
        assert rows.bytes_of("Sendrecv") == [(24, 24)]


def test_windows_have_the_bytes_of_each_call(ran):
    for rank, size, rows in each(ran, "windows"):
        right = (rank + 1) % size
        (window,) = rows.column("Win_create", "object")
        assert window > 0
        for name in ("Win_fence", "Put", "Get", "Win_unlock", "Win_free"):
            assert set(rows.column(name, "object")) == {window}
        assert rows.bytes_of("Put") == [(32, 0)] * 2
        assert rows.bytes_of("Accumulate") == [(16, 0)]
        assert rows.column("Put", "partner") == [right] * 2
        assert rows.bytes_of("Get") == [(0, 24)]
        assert rows.column("Win_unlock", "partner") == [right] * 2


def test_of_files_the_calls_are_recorded_with_the_request_that_they_start(ran):
    for _, _, rows in each(ran, "files"):
        assert {"File_open", "File_write_at_all", "File_read_at"} <= {*rows.names()}
        (request,) = rows.column("File_iread_at", "object")
        assert rows.dones("Wait") == [[(request, NOBODY, -1, 0)]]


def test_a_call_that_fails_is_recorded_and_raises_its_own_error(ran):
    for _, _, rows in each(ran, "errors"):
        assert len(rows.named("Send")) == 1
    assert "('errors', 'True')" in ran.output
