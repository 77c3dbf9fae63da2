"""What a run would take without a part of its time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bsplib.profiler.account import Account
from bsplib.profiler.book import Book
from bsplib.profiler.rates import Rates
from bsplib.profiler.times_on_machine import retimed
from bsplib.profiler.whatif import Replay
from bsplib.profiler.window import windows
from bsplib.record.join import join
from bsplib.sync_kinds import Kind
from tests.drawn import examples
from tests.record.made_ranks import RankMaker, written
from tests.record.test_join_files import any_calls
from tests.recordings import record_run

from .test_properties import programs

FREE = Rates(g=0.0, l=0.0)


def replayed(run):
    """Return the records of a run, and what it takes without some of their time."""
    (window,) = windows(run)
    account, elapsed_ns = Account(window, FREE), Book(run, FREE).elapsed_ns

    def without(saved_ns, after_ns=None):
        replay = Replay(run, 1)
        saved = np.array([saved_ns], float)
        replay.add(account, saved, saved * 0 if after_ns is None else after_ns[None])
        return elapsed_ns - round(float(replay.saved_ns()[0]))

    return account, elapsed_ns, without


@examples(50)
@given(st.data())
def test_less_time_of_any_record_never_makes_a_run_longer(script, data):
    account, elapsed_ns, without = replayed(data.draw(programs(script, one_stack=False)).run())
    assert 0 <= without(account.computing.core / 2.0) <= elapsed_ns


def test_two_imbalances_that_hide_each_other_save_together_what_neither_saves_alone(script):
    program = script(3)
    program.step("main", w=[100, 100, 10])
    *_, without = replayed(program.run())
    assert without(np.array([90.0, 0, 0])) == 100
    assert without(np.array([90.0, 90, 0])) == 10


@st.composite
def parts_of_groups(draw, depth=2):
    """Return what a group does: supersteps, and groups by colour or by block that do the same."""
    kinds = ["sync", "neighbours", *(["split", "partition"] if depth else [])]
    parts = []
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4)):
        inside = kind in ("split", "partition")
        count = 2 if inside else draw(st.integers(1, 3))
        parts.append(
            (kind, [draw(parts_of_groups(depth - 1)) if inside else () for _ in range(count)])
        )
    return parts


def do_parts(bsp, parts, late, seconds):
    """Do what :func:`parts_of_groups` returns; ``late`` is a process and one of its supersteps."""
    done = 0

    def do(group, parts):
        nonlocal done
        for kind, each in parts:
            if kind == "split" and group.nprocs > 1:
                with group.split(group.pid % 2) as sub:
                    do(sub, each[group.pid % 2])
            elif kind == "partition" and group.nprocs > 1:
                with group.partition([1, group.nprocs]) as sub:
                    do(sub, each[group.pid > 0])
            elif kind in ("sync", "neighbours"):
                for _ in each:
                    group.charge(1 + (7 * bsp.pid + 5 * done) % 11 / 10)
                    group.charge(seconds * ((bsp.pid, done) == late))
                    done += 1
                    others = {(group.pid + side) % group.nprocs for side in (-1, 1)} - {group.pid}
                    if kind == "sync":
                        group.sync()
                        continue
                    for pid in others:
                        group.send(pid, done)
                    group.oblsync(len(others))

    do(bsp, parts)
    bsp.sync()


@examples(20)
@given(parts_of_groups(), st.tuples(st.integers(0, 5), st.integers(0, 9)), st.floats(0.1, 10))
def test_a_replay_without_a_delay_takes_as_long_as_the_run_without_it(
    tmp_path_factory, parts, late, seconds
):
    folder = tmp_path_factory.mktemp("runs")
    (account, _, without), (_, expected_ns, _) = (
        replayed(record_run(folder / f"{s}.bsp", do_parts, parts, late, s, nprocs=6, backend="sim"))
        for s in (seconds, 0.0)
    )
    is_mine = account.run.records["pid"] == late[0]
    mine = np.flatnonzero(is_mine & (account.computing.core > 0.9e9))
    assume(late[1] < len(mine))
    saved = np.zeros(len(account.run.records))
    saved[mine[late[1]]] = round(1e9 * seconds)
    assert without(saved) == pytest.approx(expected_ns, abs=3e7)


@pytest.mark.parametrize("seed", range(12))
def test_a_replay_of_calls_of_mpi_takes_as_long_as_they_did(tmp_path, seed):
    run = join(written(tmp_path / "out.ranks", any_calls(seed))).runs[0]
    (window,) = windows(run)
    account, replay = Account(window, FREE), Replay(run, 1)
    nothing = np.zeros((1, len(account.run.records)))
    replay.add(account, nothing, nothing)
    records = account.run.records
    took = records["released"].max(initial=0) - records["start"].min(initial=0)
    assert replay._released[:, 0].max() == took


@pytest.mark.parametrize("kind", [Kind.SYNC, Kind.OBLSYNC])
def test_what_a_sub_group_saves_its_parent_saves(script, kind):
    program = script(2)
    with program.partition(1, 1) as (left, right):
        program.step("main", w=30, group=left)
        program.step("main", w=80, group=right, kind=kind)
    program.step("main", w=10)
    account, _, without = replayed(program.run())
    saved = np.where(account.run.records["group"] == 2, 70.0, 0)
    assert without(saved) == 40


@pytest.mark.parametrize("depth", [1, 2])
def test_what_is_saved_before_sub_groups_is_saved_in_front_of_their_supersteps(script, depth):
    """Process 1 computes 90 before it opens them, the others 10, and all compute 30 afterwards."""
    program = script(4)
    program.clock = [10, 90, 10, 10]
    with program.partition(4) as (outer,):
        if depth == 2:
            with program.partition(4, group=outer) as (inner,):
                program.step("main", w=20, group=inner)
        program.step("main", w=20, group=outer)
    program.step("main", w=30)
    account, elapsed_ns, without = replayed(program.run())
    assert elapsed_ns == 120 + 20 * depth
    others = np.zeros(len(account.run.records) - 4)  # in the sub-groups
    assert without(np.append(others, [0, 80, 0, 0])) == elapsed_ns - 80
    assert without(np.append(others, [-20, 60, -20, -20])) == elapsed_ns - 60


def test_on_a_grid_of_mpi_what_one_row_saves_each_column_saves_that_waited_for_it(tmp_path):
    """Of four ranks 1 comes 50 us late to the collective of its row, four times."""
    makers = [RankMaker(rank, 4) for rank in range(4)]
    rows, columns = 2, 3
    for maker in makers:
        row, column = divmod(maker.rank, 2)
        maker.communicator(rows, (2 * row, 2 * row + 1))
        maker.communicator(columns, (column, column + 2), ordinal=1)
        for begun in range(0, 240, 60):
            met = begun + (10 if row else 60)
            maker.call("Barrier", begun + (60 if maker.rank == 1 else 10), met, comm=rows, line=5)
            maker.call("Barrier", met, begun + 60, comm=columns, line=6)
        maker.call("Barrier", 250, 260, line=7)
    account, elapsed_ns, without = replayed(join(written(tmp_path / "out.ranks", makers)).runs[0])
    records, core = account.run.records, account.computing.core
    late = (records["pid"] == 1) & (core == 60_000)
    assert late.sum() == 4
    assert without(50_000.0 * late) == elapsed_ns - 200_000


def test_a_run_at_other_rates_takes_what_its_supersteps_cost(script):
    program = script(2)
    program.step("main", w=[10, 100], puts=[(0, 1, 20)], transfer=1000)
    program.step("main", w=[30, 10], transfer=1000)
    program.step("main", w=[7, 5], kind=Kind.END)
    rates = Rates(2e-9, 30e-9, ratio=2.0)
    run = retimed(program.run(), rates)
    account = Book(run, rates)
    assert account.elapsed_ns == 200 + 40 + 30 + 60 + 30 + 14
    assert account.whole()["unexplained"] == 0
