"""The book of a run adds up, and books idle time where it comes from."""

from __future__ import annotations

import random
from collections import Counter
from itertools import count, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler import paths, window
from bsplib.profiler.account import ENDS, PARTS
from bsplib.profiler.book import LOST, Book
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import GraphBook
from bsplib.profiler.rates import Rates, rates_of_run
from bsplib.recording import tables
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind
from tests.bsplib.random_programs.checks import record
from tests.bsplib.random_programs.generator import Narrow
from tests.bsplib.random_programs.seeded import program_of
from tests.drawn import examples
from tests.mpi_ranks import MPIS, ranks_of
from tests.recordings import record_run

from .test_properties import programs

FREE = Rates(g=0.0, l=0.0)
RATES = Rates(g=2e-9, l=30e-9)
MS, NS = 1e-3, 1e-9


def check(run, rates):
    """Check that the book of a run adds up, for each record, process, node and part."""
    book = Book(run, rates)
    by_process = book.by_process()
    assert (by_process.sum(axis=0) == book.elapsed_ns).all()
    for booked in book.by_window():
        records = booked.account.run.records[booked.account.halo :]
        idle = np.bincount(booked.shares.row, booked.shares.ns, len(records))
        assert (idle == records["released"] - records["arrive"]).all()
        assert (booked.spent >= 0).all()
        assert (booked.shares.ns > 0).all()
        assert (booked.lost.ns > 0).all()
    assert (book.outside >= 0).all()
    sums = book.sums
    rooted = sums.by_origin.sum(axis=1)
    spent = by_process.sum(axis=1)
    assert (np.delete(rooted, ENDS) == np.delete(spent, ENDS)).all()
    assert rooted.sum() == spent.sum() - spent[ENDS]
    assert sum(sum(each.values()) for each in sums.losses.values()) == sum(
        rooted[part] for part in LOST
    )
    check_graph(book, run)
    return book


def check_graph(book, run):
    """Check that leaves add up to functions, and functions to ``main``."""
    callgraph = build(run)
    graph_book = GraphBook(callgraph, book)
    nodes, edges = graph_book.nodes, graph_book.edges
    main = nodes[callgraph.root]
    spent = book.by_process().sum(axis=1)
    assert main.ns == spent.sum() - spent[ENDS] - book.before.ns
    leaves = [
        nodes[name]
        for name, node in callgraph.graph.nodes(data="node")
        if node.kind == "cost_centre"
    ]
    assert np.array_equal(np.sum([leaf.parts for leaf in leaves], axis=0), main.parts)
    for name, time in nodes.items():
        assert 0 <= time.loss_ns <= time.ns
        callers = [edges[caller, name].parts for caller in callgraph.graph.pred[name]]
        if callers:
            assert np.array_equal(np.sum(callers, axis=0), time.parts)


@examples(40)
@given(st.data())
def test_the_book_of_any_run_adds_up_at_any_rates(script, data):
    run = data.draw(programs(script, one_stack=False)).run()
    g, latency = data.draw(st.tuples(st.integers(0, 50), st.integers(0, 2000)))
    check(run, Rates(g * 1e-9, latency * 1e-9))


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(8))
def test_the_book_of_random_programs_on_real_processes_adds_up(seed):
    _, run = record(program_of(seed, Narrow), "shm")
    check(run, rates_of_run(run))


@pytest.fixture(scope="module")
def backend(request):
    """An MPI, whose ranks stay for the next program."""
    with ranks_of(MPIS[request.param]) as name:
        yield name


@pytest.mark.slow
@pytest.mark.parametrize("nprocs", [3])
@pytest.mark.parametrize("backend", MPIS, indirect=True)
def test_the_book_of_random_programs_on_ranks_of_an_mpi_adds_up(nprocs, backend):
    drawn = (program_of(seed, Narrow) for seed in count())
    for program in islice((each for each in drawn if each.nprocs == nprocs), 2):
        _, run = record(program, backend)
        check(run, rates_of_run(run))


# -- programs of which it is known what is lost ---------------------------------------------------


def lost(path, main, nprocs, *args):
    """Return what a program loses on virtual processors: ms by process and line of ``main``."""
    return said(simulated(path, main, nprocs, *args))


def simulated(path, main, nprocs, *args):
    return record_run(path, main, *args, nprocs=nprocs, backend="sim", machine="ideal")


def said(run):
    book, callgraph = Book(run, rates_of_run(run)), build(run)
    first = callgraph.graph.nodes[callgraph.root]["node"].line
    found = Counter()
    for (part, origin), by_pid in book.sums.losses.items():
        assert PARTS[part] == "imbalance"
        line = callgraph.graph.nodes[callgraph.origins[origin][-1]]["node"].line
        for pid, ns in by_pid.items():
            found[pid, line - first] += ns / run.nprocs / 1e6
    return {key: ms for key, ms in found.items() if ms > 1e-6}


def halves(bsp):
    """Sub-groups of both halves of the processes."""
    return bsp.partition([bsp.nprocs // 2, bsp.nprocs])


def late_in_a_group_of_a_group(bsp, rounds, others):
    for _ in range(rounds):
        bsp.charge(others)
        with halves(bsp) as half:
            half.charge(others)
            with halves(half) as quarter:
                quarter.charge(others + (40 * MS if bsp.pid == 6 else 0))
                quarter.sync()
            half.sync()
        bsp.sync()


@pytest.mark.parametrize(("rounds", "others"), [(1, 0.0), (3, 1 * MS)])
def test_a_process_that_is_late_in_a_group_of_a_group_is_one_loss(tmp_path, rounds, others):
    found = lost(tmp_path / "t.bsp", late_in_a_group_of_a_group, 8, rounds, others)
    assert found == pytest.approx({(6, 7): rounds * 35.0})


def talk(bsp, ways=(-1, 1)):
    """Send to neighbours; return from how many of them something comes."""
    there = [bsp.pid + way for way in ways if 0 <= bsp.pid + way < bsp.nprocs]
    for pid in there:
        bsp.send(pid, b"x")
    return sum(0 <= bsp.pid - way < bsp.nprocs for way in ways)


def pipeline(bsp):
    for _ in range(50):
        bsp.charge(5 * MS if bsp.pid == 2 else 1 * MS)
        arriving = talk(bsp, [1])
        bsp.oblsync(arriving)


def test_a_slow_stage_of_a_pipeline_bears_what_the_stages_after_it_wait(tmp_path):
    found = lost(tmp_path / "t.bsp", pipeline, 5)
    # Stages 3 and 4 wait 200 ms of it on the way, and stages 0 and 1 at the end of main.
    assert found == pytest.approx({(2, 4): 50 * 4 * 4 / 5}, rel=0.02)


def neighbours_at_three_lines(bsp):
    for _ in range(10):
        bsp.charge((6 if bsp.pid == 1 else 1) * MS)
        bsp.oblsync(talk(bsp))
    for _ in range(10):
        bsp.charge((4 if bsp.pid == 1 else 1) * MS)
        bsp.oblsync(talk(bsp))
    for _ in range(10):
        bsp.charge((3 if bsp.pid == 2 else 1) * MS)
        bsp.oblsync(talk(bsp))


def delays_behind_one_another(bsp):
    for _ in range(20):
        bsp.charge((4 if bsp.pid == 0 else 1) * MS)
        bsp.oblsync(talk(bsp))
        bsp.charge((5 if bsp.pid == 1 else 1) * MS)
        bsp.oblsync(talk(bsp))
    for _ in range(10):
        bsp.charge((3 if bsp.pid == 2 else 1) * MS)
        bsp.oblsync(talk(bsp))


def test_a_delay_is_blamed_once(tmp_path):
    found = lost(tmp_path / "t.bsp", delays_behind_one_another, 3)
    assert found == pytest.approx({(0, 3): 40.0, (1, 5): 20 * 4 * 2 / 3, (2, 8): 40 / 3})


def late_in_both_groups(bsp):
    with halves(bsp) as half:
        half.charge({1: 4, 6: 4}.get(bsp.pid, 0) * MS)
        half.sync()
    bsp.charge((2 if bsp.pid == 3 else 0) * MS)
    bsp.sync()


def test_what_came_before_a_sync_at_which_all_arrive_together_is_no_root(script):
    program = script(2)
    program.step("main f", w=[30, 10], waits=[0, 0], kind=Kind.OBLSYNC)
    program.step("main g", w=[10, 30])
    program.step("main h", w=[10, 60])
    book = check(program.run(), RATES)
    assert list(book.sums.losses.values()) == [{1: 50}]
    (booked,) = book.by_window()
    assert len(booked.tail.nodes.pid) <= 3


def test_late_processes_of_groups_side_by_side_share_what_is_lost(tmp_path):
    found = lost(tmp_path / "t.bsp", late_in_both_groups, 8)
    assert found == pytest.approx({(1, 3): 1.5, (6, 3): 1.5, (3, 5): 1.75})


def late_in_the_third_level_then_in_the_first(bsp):
    with halves(bsp) as half:
        with halves(half) as quarter:
            with halves(quarter) as eighth:
                eighth.charge((10 if bsp.pid == 3 else 0) * MS)
                eighth.sync()
            quarter.sync()
        half.sync()
    bsp.sync()
    bsp.charge((6 if bsp.pid == 4 else 0) * MS)
    bsp.sync()


def late_before_it_opens_a_group(bsp):
    bsp.charge((8 if bsp.pid == 1 else 1) * MS)
    with halves(bsp) as half:
        half.sync()
    bsp.sync()


def a_half_is_late(bsp, uneven):
    with halves(bsp) as half:
        for number in range(5):
            other = (bsp.pid + number) % half.nprocs
            half.charge((8 if bsp.pid < half.nprocs else 1) * (1 + uneven * other) * MS)
            half.sync()
    bsp.sync()


@pytest.mark.parametrize("uneven", [0.0, 0.01])
def test_a_group_that_is_late_as_a_whole_has_all_of_it_as_roots(tmp_path, uneven):
    found = lost(tmp_path / "t.bsp", a_half_is_late, 6, uneven)
    by_pid = Counter()
    for (pid, _), ms in found.items():
        by_pid[pid] += ms
    late = [by_pid[pid] for pid in range(3)]
    assert sum(late) == pytest.approx(35 / 2, rel=0.05)
    assert late == pytest.approx([sum(late) / 3] * 3, rel=0.05)


def test_what_was_late_before_a_group_is_lost_where_the_superstep_around_it_ends(tmp_path):
    found = lost(tmp_path / "t.bsp", late_before_it_opens_a_group, 8)
    assert found == pytest.approx({(1, 4): 7 * 7 / 8})


def one_colour_rests(bsp):
    bsp.charge(1 * MS)
    with bsp.split(None if bsp.pid % 3 == 0 else bsp.pid % 3) as sub:
        if sub is not None:
            sub.charge((9 if bsp.pid == 5 else 1) * MS)
            sub.sync()
    bsp.sync()


def late_at_the_end(bsp):
    bsp.charge(1 * MS)
    bsp.sync()
    bsp.charge((4 if bsp.pid == 2 else 0) * MS)


def test_the_end_of_main_is_a_sync_of_all(tmp_path):
    ((where, ms),) = lost(tmp_path / "t.bsp", late_at_the_end, 4).items()
    assert (where[0], ms) == (2, pytest.approx(3.0, rel=0.01))


def test_waiting_for_a_process_that_began_later_belongs_to_no_node(script):
    program = script(2)
    program.clock[1] = program.begun[0, 1] = 50
    program.step("main", w=[10, 10])
    book = check(program.run(), FREE)
    assert {name: ns for name, ns in book.whole().items() if ns} == {"useful": 20, "ends": 100}


def test_uneven_bytes_have_the_process_that_moves_most_as_root(script):
    program = script(3)
    program.step("main", transfer=80, puts=[(0, 1, 20), (0, 2, 20)])
    (((part, _), by_pid),) = check(program.run(), RATES).sums.losses.items()
    assert (PARTS[part], by_pid) == ("transfer_imbalance", {0: 80})


# -- long runs, and parts of runs -----------------------------------------------------------------


def alone_for_long(bsp):
    for _ in range(30):
        bsp.charge((2 if bsp.pid == 1 else 1) * MS)
        bsp.oblsync(0)
    for _ in range(30):
        bsp.charge((3 if bsp.pid == 1 else 1) * MS)
        bsp.oblsync(0)
    bsp.sync()


def late_in_groups_again(bsp):
    late_in_a_group_of_a_group(bsp, 8, 1 * MS)


@pytest.mark.lengthy
@pytest.mark.parametrize("most", [2**14, 8])
@pytest.mark.parametrize(
    ("main", "nprocs"),
    [(neighbours_at_three_lines, 5), (alone_for_long, 3), (late_in_groups_again, 8)],
)
def test_many_windows_say_what_one_says(tmp_path, monkeypatch, main, nprocs, most):
    """Also where the paths of long ago are summed up."""
    expected = lost(tmp_path / "t.bsp", main, nprocs)
    (run,) = read_trace(tmp_path / "t.bsp").runs
    monkeypatch.setattr(paths, "_MOST_KEPT", most)
    for module in (tables, window):
        monkeypatch.setattr(module, "ROWS", 3 * nprocs)
    assert len(list(window.windows(run))) > 5
    assert said(run) == pytest.approx(expected)


def test_roots_before_a_range_of_supersteps_are_one_row(tmp_path):
    lost(tmp_path / "t.bsp", pipeline, 5)
    (run,) = read_trace(tmp_path / "t.bsp").runs
    part = window.restricted(run, 30, 60)
    book = Book(part, rates_of_run(run))
    assert (book.by_process().sum(axis=0) == book.elapsed_ns).all()
    check_graph(book, part)
    # At the end of main stages 0 and 1 wait for what stage 2 was late in 30 rounds before.
    assert book.before.loss_s == pytest.approx(30 * 4 * MS * 2 / 5, rel=0.05)
    assert said(part) == pytest.approx({(2, 4): 20 * 4 * 4 / 5}, rel=0.05)


# -- a delay that is planted into random programs -------------------------------------------------


def steps_of(seed, nprocs):
    """Draw supersteps: of all, of neighbours, in groups of groups, with unequal work."""
    draw = random.Random(seed)
    found = []
    for _ in range(draw.randrange(6, 20)):
        kind = draw.choice(["sync", "oblsync", "group"])
        work = [draw.random() * MS for _ in range(nprocs)]
        found.append((kind, work, draw.choice([(-1, 1), (1,), (2,)]), draw.randrange(1, nprocs)))
    return found


def any_program(bsp, seed, at, pid):
    """Execute drawn supersteps; process ``pid`` is 20 ms late in that at ``at``."""
    for number, (kind, work, ways, cut) in enumerate(steps_of(seed, bsp.nprocs)):
        mine = work[bsp.pid] + (20 * MS if (number, bsp.pid) == (at, pid) else 0)
        if kind == "group":
            with bsp.partition([cut, bsp.nprocs]) as sub:
                sub.charge(mine)
                sub.sync()
            bsp.sync()
        elif kind == "sync":
            bsp.charge(mine)
            bsp.sync()
        else:
            bsp.charge(mine)
            bsp.oblsync(talk(bsp, ways))


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(12))
def test_a_planted_delay_is_the_greatest_loss(tmp_path, seed):
    nprocs = 6
    draw = random.Random(seed)
    at, pid = draw.randrange(len(steps_of(seed, nprocs))), draw.randrange(nprocs)
    without = sum(lost(tmp_path / "a.bsp", any_program, nprocs, seed, -1, -1).values())
    found = Counter(lost(tmp_path / "b.bsp", any_program, nprocs, seed, at, pid))
    by_pid = Counter()
    for (who, _), ms in found.items():
        by_pid[who] += ms
    ((who, _), ms), *_ = found.most_common(1)
    assert who == pid
    grown = sum(found.values()) - without
    assert 0.9 * grown <= ms <= 1.1 * 20 * 5 / 6 + 1
