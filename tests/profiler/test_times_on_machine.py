"""A run on another Machine has the times, and the book, that the same program has there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from bsplib.machine import Machine
from bsplib.profiler.book import Book
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import GraphBook
from bsplib.profiler.rates import Rates, rates_of_run, rates_on
from bsplib.profiler.times_on_machine import retimed
from bsplib.profiler.window import restricted
from bsplib.record.join import join
from bsplib.sync_kinds import Kind
from tests.drawn import examples
from tests.record.made_ranks import written
from tests.record.test_join_files import any_calls
from tests.recordings import record_run

from . import test_book
from .test_book import check
from .test_properties import programs
from .test_replay_of_virtual_time import CHARGED, start

RATES = Rates(g=2e-9, l=30e-9, ratio=0.5)
TIMES = ("start", "arrive", "released", "end", "sub")
MS = 1e-3


def checked(run, rates=RATES):
    """Check the book of a run at some rates; return the run."""
    found = retimed(run, rates)
    book = check(found, rates)
    assert book.whole()["unexplained"] == book.whole()["recording"] == 0
    return found


@examples(40)
@given(st.data())
def test_the_book_of_any_run_on_another_machine_adds_up(script, data):
    checked(data.draw(programs(script, one_stack=False)).run())


@pytest.mark.parametrize("seed", range(12))
def test_the_book_of_calls_of_mpi_on_another_machine_adds_up(tmp_path, seed):
    checked(join(written(tmp_path / "out.ranks", any_calls(seed))).runs[0])


# -- the same program, simulated there ------------------------------------------------------------


def simulated(path, main, *args, nprocs, machine):
    path.unlink(missing_ok=True)  # a second run would be added to it
    return record_run(path, main, *args, nprocs=nprocs, backend="sim", machine=machine)


def assert_alike(run, there):
    """Check that two runs have the same times, and the same book."""
    for name in TIMES:
        assert np.array_equal(run.records[name], there.records[name]), name
    rates = rates_of_run(there)
    books = [Book(each, rates) for each in (run, there)]
    assert np.array_equal(*(book.by_process() for book in books))
    one, other = (GraphBook(build(book.run), book) for book in books)
    assert (one.nodes, one.edges) == (other.nodes, other.edges)
    assert books[0].sums.losses == books[1].sums.losses


SLOW = Machine("slow", "made up", g=3.1e-9, l=50.3e-9, speed=1e9)
MACHINES = [
    Machine("quick", "made up", g=1.7e-9, l=0.0, h="sum", speed=1e9),
    Machine("late", "made up", g=0.0, l=4001.9e-9, speed=1e9),
    Machine("wide", "made up", g=45.7e-9, l=12.2e-9, speed=1e9),
]


@pytest.mark.slow
@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kinds=st.lists(
        st.tuples(
            st.sampled_from(["sync", "oblsync", "partition", "split"]), st.integers(0, 2**16)
        ),
        max_size=6,
    ),
    nprocs=st.sampled_from([1, 2, 3, 5, 8]),
    machine=st.sampled_from(MACHINES),
)
def test_any_program_has_the_book_of_the_machine_on_which_it_is(tmp_path, kinds, nprocs, machine):
    args = start, kinds, 7, CHARGED
    here = simulated(tmp_path / "a.bsp", *args, nprocs=nprocs, machine=SLOW)
    there = simulated(tmp_path / "b.bsp", *args, nprocs=nprocs, machine=machine)
    assert_alike(retimed(here, rates_of_run(here)), here)
    assume(len(here.records) == len(there.records))  # a broadcast has the stages that pay there
    assert_alike(retimed(here, rates_on(machine, here)), there)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("main", "nprocs", "args"),
    [
        (test_book.late_in_a_group_of_a_group, 8, (3, 1 * MS)),
        (test_book.late_in_the_third_level_then_in_the_first, 8, ()),
        (test_book.late_before_it_opens_a_group, 8, ()),
        (test_book.one_colour_rests, 8, ()),
        (test_book.pipeline, 5, ()),
        (test_book.neighbours_at_three_lines, 5, ()),
        (test_book.delays_behind_one_another, 3, ()),
        (test_book.late_at_the_end, 4, ()),
    ],
)
def test_what_a_program_loses_there_has_the_roots_that_it_has_there(tmp_path, main, nprocs, args):
    here = simulated(tmp_path / "a.bsp", main, *args, nprocs=nprocs, machine=SLOW)
    for machine in MACHINES:
        there = simulated(tmp_path / "b.bsp", main, *args, nprocs=nprocs, machine=machine)
        assert_alike(retimed(here, rates_on(machine, here)), there)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("main", "nprocs", "args"),
    [(test_book.pipeline, 5, ()), (test_book.late_in_a_group_of_a_group, 8, (20, 1 * MS))],
)
def test_a_part_of_a_run_has_the_book_of_that_part_there(tmp_path, main, nprocs, args):
    here = simulated(tmp_path / "a.bsp", main, *args, nprocs=nprocs, machine=SLOW)
    for machine in MACHINES:
        there = simulated(tmp_path / "b.bsp", main, *args, nprocs=nprocs, machine=machine)
        part = retimed(restricted(here, 5, 11), rates_on(machine, here))
        test_book.check_graph(Book(part, rates_of_run(there)), part)
        assert_alike(part, restricted(there, 5, 11))


# -- what stays -----------------------------------------------------------------------------------


def test_computation_is_scaled_and_time_blocked_or_without_a_core_stays(script):
    program = script(2)
    program.step("main", w=[100, 100], puts=[(0, 1, 20)], transfer=1000)
    program.step("main", w=[10, 30], kind=Kind.END)
    run = program.run()
    run.records["comp_cpu"], run.records["comp_ready"] = [60, 100, 10, 30], [15, 0, 0, 0]
    found = checked(run).records
    # Process 0 computes for 30 ns, is blocked for 25 ns, and has no core for 15 ns.
    assert found["arrive"].tolist() == [70, 50, 145, 155]
    assert found["released"].tolist() == [70, 70, 145, 155]
