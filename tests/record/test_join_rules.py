"""Who waits for whom, and what ends a superstep, in calls of MPI made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.directions import Direction
from bsplib.profiler.callgraph import build
from bsplib.profiler.costs import h_relation
from bsplib.profiler.graph_book import book_graph
from bsplib.record import events as ev
from bsplib.record.join import join
from bsplib.recording.sources import digest
from bsplib.recording.trace import read_trace, write_trace
from bsplib.sync_kinds import Kind
from tests.record.made_ranks import US, RankMaker, written


@pytest.fixture
def joined(tmp_path):
    """Return what joins ranks into a run, and writes and reads it as a trace."""

    def joined(makers):
        trace = join(written(tmp_path / f"{len(list(tmp_path.iterdir()))}.ranks", makers))
        write_trace(tmp_path / "out.bsp", trace)
        return read_trace(tmp_path / "out.bsp").runs[0]

    return joined


def makers_of(nprocs):
    return [RankMaker(rank, nprocs) for rank in range(nprocs)]


def of_pid(run, pid, group=None):
    """Return the records of a process, with times in us."""
    rows = run.records[run.records["pid"] == pid]
    return rows if group is None else rows[rows["group"] == group]


def idle_us(run, group=0, superstep=0):
    """Return by process how long it waited in a superstep."""
    rows = run.records[(run.records["group"] == group) & (run.records["superstep"] == superstep)]
    idle = (rows["released"] - rows["arrive"]) / US
    return dict(zip(rows["pid"].tolist(), idle.tolist(), strict=True))


def culprits(run):
    """Return pairs of processes: who waited, and for whom in the end."""
    pid = run.records["pid"]
    return set(
        zip(pid[run.waits["record"]].tolist(), pid[run.waits["behind"]].tolist(), strict=True)
    )


def h_of(run, group=0, superstep=0):
    """Return by process (h_out, h_in) in a superstep."""
    rows = np.flatnonzero((run.records["group"] == group) & (run.records["superstep"] == superstep))
    out, into = h_relation(run)
    pids = run.records["pid"][rows].tolist()
    return {pid: (int(out[row]), int(into[row])) for pid, row in zip(pids, rows, strict=True)}


def collective(name, arrivals, leave, *, root=None, out=0, into=0, line=13):
    """Return ranks that call one collective, each at its time."""
    makers = makers_of(len(arrivals))
    for maker, arrival in zip(makers, arrivals, strict=True):
        partner = ev.NOBODY if root is None else root
        maker.call(name, arrival, leave, line=line, partner=partner, out=out, into=into)
    return makers


# -- who waits in a collective ------------------------------------------------------------------


ALL = {0: 30, 1: 0, 2: 10, 3: 20}, {(0, 1), (2, 1), (3, 1)}
FROM_ROOT = {0: 20, 1: 0, 2: 0, 3: 10}, {(0, 2), (3, 2)}
TO_ROOT = {0: 0, 1: 0, 2: 10, 3: 0}, {(2, 1)}
OF_LOWER_RANKS = {0: 0, 1: 0, 2: 10, 3: 20}, {(2, 1), (3, 1)}
"""How long each of four processes waits, and for whom, that come at 10, 40, 30 and 20 us."""
WAITING = {
    **dict.fromkeys(["Barrier", "Allreduce", "Allgather", "Alltoall", "Win_fence"], ALL),
    **dict.fromkeys(["Bcast", "Scatter", "Scatterv"], FROM_ROOT),
    **dict.fromkeys(["Reduce", "Gather", "Gatherv"], TO_ROOT),
    **dict.fromkeys(["Scan", "Exscan"], OF_LOWER_RANKS),
}


@pytest.mark.parametrize("name", WAITING)
def test_in_a_collective_each_process_waits_for_those_whose_values_it_needs(joined, name):
    idle, pairs = WAITING[name]
    root = 2 if (idle, pairs) in (FROM_ROOT, TO_ROOT) else None
    run = joined(collective(name, [10, 40, 30, 20], 50, root=root))
    assert (idle_us(run), culprits(run)) == (idle, pairs)


def test_a_non_blocking_collective_ends_at_its_wait(joined):
    makers = makers_of(2)
    for maker, begin, wait in zip(makers, [10, 60], [30, 80], strict=True):
        request = maker.start("Iallreduce", begin, begin + 1, line=5, out=8, into=8)
        maker.call("Wait", wait, 90, line=9, comm=-1, done=[(request, ev.NOBODY, 0, 0)])
    run = joined(makers)
    first = of_pid(run, 0)[0]
    assert first["kind"] == Kind.SYNC
    assert (first["arrive"], first["released"]) == (30 * US, 60 * US)  # begun by the other one
    assert first["comm_calls"] == 1 * US
    assert run.stacks[first["stack"]][-2].line == 9
    assert culprits(run) == {(0, 1)}


# -- what must be sent and received ---------------------------------------------------------------


def test_h_of_collectives_is_what_each_process_must_send_and_receive(joined):
    sizes = {
        "Allreduce": ((80, 80), None, {0: 80, 1: 80, 2: 80, 3: 80}),
        "Bcast": ((80, 80), 1, {0: 80, 1: 80, 2: 80, 3: 80}),
        "Reduce": ((80, 80), 1, {0: 80, 1: 80, 2: 80, 3: 80}),
        "Gather": ((80, 80), 1, {0: 80, 1: 240, 2: 80, 3: 80}),
        "Scatter": ((320, 80), 1, {0: 80, 1: 240, 2: 80, 3: 80}),
        "Allgather": ((80, 320), None, {0: 240, 1: 240, 2: 240, 3: 240}),
        "Alltoall": ((320, 320), None, {0: 240, 1: 240, 2: 240, 3: 240}),
        "Reduce_scatter": ((320, 80), None, {0: 240, 1: 240, 2: 240, 3: 240}),
        "Scan": ((80, 80), None, {0: 80, 1: 80, 2: 80, 3: 80}),
        "Barrier": ((0, 0), None, {0: 0, 1: 0, 2: 0, 3: 0}),
    }
    makers = makers_of(4)
    for step, (name, ((out, into), root, _)) in enumerate(sizes.items()):
        for maker in makers:
            partner = ev.NOBODY if root is None else root
            maker.call(name, 10 * step, 10 * step + 5, partner=partner, out=out, into=into)
    run = joined(makers)
    for step, (name, (_, _, expected)) in enumerate(sizes.items()):
        assert {pid: max(h) for pid, h in h_of(run, superstep=step).items()} == expected, name


def test_what_is_put_and_got_belongs_to_the_fence_that_ends_the_epoch(joined):
    makers = makers_of(2)
    makers[0].call("Put", 1, 2, partner=1, out=100)
    makers[0].call("Get", 3, 4, partner=1, into=7)
    for maker in makers:
        maker.call("Win_fence", 10, 20, line=3)
    run = joined(makers)
    assert h_of(run) == {0: (100, 7), 1: (7, 100)}
    assert {int(each) for each in run.traffic["direction"]} == {Direction.OUT, Direction.IN}


# -- messages -------------------------------------------------------------------------------------


def one_message(send, receive, *, name="Send"):
    """Return two ranks of which the first sends to the second; each enters and leaves then."""
    makers = makers_of(2)
    makers[0].call(name, *send, line=51, partner=1, tag=3, out=100, function="give")
    makers[1].call("Recv", *receive, line=61, partner=0, tag=3, into=100, function="take")
    return makers


def test_a_late_sender_is_told_apart_from_the_transfer(joined):
    run = joined(one_message((40, 42), (10, 45)))
    record = of_pid(run, 1)[0]
    assert (record["arrive"], record["released"], record["end"]) == (10 * US, 40 * US, 45 * US)
    assert record["kind"] == Kind.OBLSYNC
    assert culprits(run) == {(1, 0)}
    assert h_of(run) == {0: (100, 0), 1: (0, 100)}


def test_a_late_receiver_is_told_apart_from_the_transfer(joined):
    run = joined(one_message((10, 45), (40, 45), name="Ssend"))
    record = of_pid(run, 0)[0]
    assert (record["arrive"], record["released"], record["end"]) == (10 * US, 40 * US, 45 * US)
    assert culprits(run) == {(0, 1)}


def test_messages_are_matched_in_order_by_tag_and_communicator(joined):
    makers = makers_of(2)
    for maker in makers:
        maker.communicator(2, (0, 1), ordinal=0)
    send = [(1, 10, 0), (2, 20, 0), (1, 30, 0), (1, 40, 2)]  # tag, time, communicator
    for tag, at, comm in send:
        makers[0].call("Send", at, at + 1, line=at, partner=1, tag=tag, comm=comm, out=at)
    receive = [(1, 15, 2), (1, 42, 0), (1, 44, 0), (2, 46, 0)]
    for tag, at, comm in receive:
        makers[1].call("Recv", at, at + 1 if at > 15 else 41, partner=0, tag=tag, comm=comm)
    run = joined(makers)
    assert culprits(run) == {(1, 0)}
    waited = run.records[run.waits["record"]]
    assert waited["released"].tolist() == [40 * US]


def test_an_open_receive_got_what_mpi_said(joined):
    makers = makers_of(3)
    makers[1].call("Send", 50, 51, partner=0, tag=7, out=8)
    makers[2].call("Send", 20, 21, partner=0, tag=7, out=8)
    for source, enter, leave in ((2, 10, 22), (1, 23, 52)):
        makers[0].call(
            "Recv", enter, leave, partner=ev.ANY_SOURCE, tag=-1, done=[(0, source, 7, 8)]
        )
    run = joined(makers)
    assert [each // US for each in of_pid(run, 0)["released"][:2]] == [20, 50]
    assert culprits(run) == {(0, 1), (0, 2)}


def test_requests_wait_where_they_are_completed_and_computation_before_is_no_wait(joined):
    makers = makers_of(2)
    request = makers[1].start("Irecv", 1, 2, partner=0, tag=0)
    makers[0].call("Send", 60, 62, partner=1, out=8)
    makers[1].call("Wait", 50, 63, comm=-1, done=[(request, 0, 0, 8)], line=7)
    record = of_pid(joined(makers), 1)[0]
    assert record["comm_calls"] == 1 * US
    assert (record["arrive"], record["released"]) == (50 * US, 60 * US)  # 48 us overlap


# -- windows --------------------------------------------------------------------------------------


def with_window(nprocs):
    """Return ranks that have made a window, each with another number of its own."""
    makers = makers_of(nprocs)
    for maker in makers:
        maker.call("Win_create", 1, 2, request=100 + maker.rank)
    return makers


def on_window(maker, name, enter, leave, **more):
    """Make a call on the window."""
    maker.call(name, enter, leave, request=100 + maker.rank, line=enter, **more)


def waits_us(run, pid):
    """Return the waits of a process at each call that ends a stretch: call, begin and end."""
    return [
        (run.stacks[row["stack"]][-1].function, row["arrive"] // US, row["released"] // US)
        for row in of_pid(run, pid)
        if row["released"] > row["arrive"]
    ]


def locking(kinds=(1, 1), *, wanted=0):
    """Return ranks of which 1 holds a lock of 0 until 70, and 2 wants one from 20 on."""
    target, holder, waiter, other = makers = with_window(4)
    for maker in (target, other):
        maker.call("Barrier", 15, 95)
    on_window(holder, "Win_lock", 10, 11, partner=0, tag=kinds[0])
    on_window(holder, "Win_unlock", 70, 72, partner=0)
    on_window(waiter, "Win_lock", 20, 71, partner=wanted, tag=kinds[1])
    on_window(waiter, "Win_unlock", 73, 74, partner=wanted)
    for maker in (holder, waiter):
        maker.call("Barrier", 90, 95)
    return makers


@pytest.mark.parametrize("kinds", [(1, 1), (0, 1), (1, 0)])
def test_a_lock_waits_for_the_one_that_holds_it(joined, kinds):
    run = joined(locking(kinds))
    assert waits_us(run, 2) == [("Lock", 20, 70)]
    assert (2, 1) in culprits(run)


def test_a_call_on_a_window_waits_for_a_target_that_is_outside_mpi(joined):
    target, origin = makers = with_window(2)
    target.call("Barrier", 60, 90)
    on_window(origin, "Win_lock", 10, 11, partner=0, tag=1)
    on_window(origin, "Put", 12, 13, partner=0, out=8)
    on_window(origin, "Win_unlock", 20, 62, partner=0)
    origin.call("Barrier", 80, 90)
    run = joined(makers)
    assert waits_us(run, 1) == [("Unlock", 20, 60)]
    assert (1, 0) in culprits(run)


def test_messages_without_collectives_are_supersteps_of_all_processes(joined):
    run = joined(one_message((10, 12), (15, 16)))
    assert len(run.groups) == 1
    assert [int(kind) for kind in run.records["kind"]] == [Kind.OBLSYNC, Kind.END] * 2


def exchange_and_sum(nprocs, rounds):
    """Return ranks that exchange with their neighbours and then sum up, again and again."""
    makers, now = makers_of(nprocs), 0
    for _ in range(rounds):
        for maker in makers:
            right, left = (maker.rank + 1) % nprocs, (maker.rank - 1) % nprocs
            parts = [(right, 800, 0), (left, 0, 800)]
            maker.call(
                "Sendrecv",
                now + 10,
                now + 20,
                line=20,
                partner=right,
                tag=1,
                out=800,
                into=800,
                done=[(0, left, 1, 800)],
                parts=parts,
                function="halo",
            )
            maker.call("Allreduce", now + 30, now + 40, line=30, out=8, into=8, function="norm")
        now += 40
    return makers


def test_numbers_of_supersteps_of_messages_do_not_depend_on_time(joined, tmp_path):
    def pipeline(delays):
        makers = makers_of(3)
        for maker, delay in zip(makers, delays, strict=True):
            now = 0
            for _ in range(4):
                if maker.rank:
                    maker.call("Recv", now + delay, now + delay + 1, partner=maker.rank - 1)
                if maker.rank < 2:
                    maker.call("Send", now + delay + 2, now + delay + 3, partner=maker.rank + 1)
                now += delay + 4
        return makers

    numbers = []
    for delays in ((1, 2, 3), (50, 1, 9)):
        trace = join(written(tmp_path / f"{delays[0]}.ranks", pipeline(delays)))
        numbers.append(trace.runs[0].records["superstep"].tolist())
    assert numbers[0] == numbers[1]


def sent(makers, now, pairs, line):
    """Let a message of 8 bytes go between each pair of processes; return when all have come."""
    for source, target in pairs:
        makers[source].call("Send", now + 1, now + 2, partner=target, out=8, line=line)
        makers[target].call("Recv", now + 1, now + 3, partner=source, into=8, line=line)
    return now + 3


# -- communicators --------------------------------------------------------------------------------


def test_communicators_of_all_processes_count_as_one(joined):
    makers = makers_of(2)
    for maker in makers:
        maker.communicator(2, (0, 1), ordinal=0)
        for step in range(4):
            maker.call("Barrier", 10 * step + 5, 10 * step + 9, comm=2 * (step % 2))
    run = joined(makers)
    assert len(run.groups) == 1
    assert of_pid(run, 1)["superstep"].tolist() == [0, 1, 2, 3, 4]


def rows_and_columns():
    """Return four ranks that sum up over rows, then over columns, twice, then over all."""
    makers = makers_of(4)
    for maker in makers:
        row, column = maker.rank // 2, maker.rank % 2
        maker.communicator(2, (2 * row, 2 * row + 1), ordinal=0)
        maker.communicator(3, (column, column + 2), ordinal=1)
        for step, comm in enumerate((2, 3, 2, 3)):
            maker.call("Allreduce", 10 * step + 6, 10 * step + 10, comm=comm, line=comm, out=8)
        maker.call("Barrier", 46, 50, line=9)
    return makers


def test_each_second_belongs_to_the_call_that_ends_its_stretch(joined):
    run = joined(rows_and_columns())
    mine = of_pid(run, 3)
    inside = mine[mine["group"] > 0]
    assert (inside["end"] - inside["start"]).tolist() == [10 * US] * 4
    assert of_pid(run, 3, group=0)[0]["sub"] == 40 * US


def test_the_account_has_each_second_once(joined):
    for makers in (rows_and_columns(), exchange_and_sum(3, 5)):
        run = joined(makers)
        book = book_graph(build(run)).book
        assert sum(book.whole().values()) == book.elapsed_ns * run.nprocs


# -- clocks, cores and files ----------------------------------------------------------------------


def test_clocks_of_hosts_are_aligned_by_their_samples(joined):
    makers = [RankMaker(0, 2), RankMaker(1, 2, host="there", begin=9_000_000)]
    shift = 1_000_000 - 9_000_000
    makers[1].clock = [(9_000_000, shift, 500), (9_000_000 + 1000 * US, shift + 2 * US, 700)]
    for maker in makers:
        maker.call("Barrier", 500, 510)
    run = joined(makers)
    assert of_pid(run, 1)[0]["arrive"] - of_pid(run, 0)[0]["arrive"] == 1 * US
    assert run.meta["hosts"] == ["here", "there"]
    assert run.meta["clock_bounds_s"]["there"] == 700e-9


def test_time_asleep_is_blocked_and_time_without_a_core_is_not(joined):
    makers = makers_of(1)
    ms = 1000
    makers[0].call("Barrier", 0, 1, cpu=(0, -1, 0, -1))
    makers[0].call("Barrier", 10 * ms, 10 * ms + 1, cpu=(4 * ms * US, -1, 2 * ms * US, -1))
    run = joined(makers)
    record = of_pid(run, 0)[1]
    assert abs(int(record["comp_cpu"]) - 4 * ms * US) < 5 * US
    assert abs(int(record["comp_ready"]) - 2 * ms * US) < 5 * US
    assert run.measured["cpu"] == ""
    assert run.meta["cpu_measured"] is True


@pytest.mark.parametrize("was_changed", [False, True])
def test_a_source_file_has_its_digest_unless_it_was_changed_since(
    joined, tmp_path, monkeypatch, was_changed
):
    file = tmp_path / "jac.py"
    file.write_bytes(b"pass\n")
    monkeypatch.chdir(tmp_path)
    makers = collective("Barrier", [1, 2], 3)
    for maker in makers:
        maker.header["started"] = file.stat().st_mtime + (-5 if was_changed else 5)
    assert joined(makers).sources == ({} if was_changed else {"jac.py": digest(b"pass\n")})
