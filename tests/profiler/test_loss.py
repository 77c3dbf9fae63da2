"""A delay that is planted into a program is the first sentence, and mending it brings what it says.

The programs run on virtual processors, with and without the delay. So it is known exactly what is
lost by it, and what the run takes when it is mended.
"""

from __future__ import annotations

import inspect
import random
from typing import NamedTuple

import pytest

import bsplib
from bsplib.profiler.account import PARTS
from bsplib.profiler.book import LOST, Book
from bsplib.profiler.callgraph import build
from bsplib.profiler.loss_records import find
from bsplib.profiler.rates import rates_of_run
from bsplib.profiler.verdict import MOST_WORDS, judge
from tests.recordings import record_run

MS = 1e-3
NPROCS = 8


class Judged(NamedTuple):
    """A run with its losses and its verdict."""

    book: Book
    losses: tuple
    verdict: object

    @property
    def idle_s(self):
        """Idle time, on average over the processes."""
        idle = sum(int(booked.shares.ns.sum()) for booked in self.book.by_window())
        return idle / self.book.run.nprocs / 1e9

    @property
    def elapsed_s(self):
        return self.book.elapsed_ns / 1e9


def judged(path, main, *args, nprocs=NPROCS, machine="ideal"):
    run = record_run(path, main, *args, nprocs=nprocs, backend="sim", machine=machine)
    callgraph, book = build(run), Book(run, rates_of_run(run))
    losses = find(callgraph, book)
    return Judged(book, losses, judge(callgraph, book, losses))


def work(bsp, place, turn):
    """Return some time that differs a little by process, place and turn."""
    return random.Random(f"{place} {turn} {bsp.pid}").uniform(0.6, 1.4) * MS


# -- programs: ``late`` is what process 5 takes longer at the line that is marked ------------------


def in_a_group_of_a_group_of_a_group(bsp, late):
    for turn in range(6):
        with bsp.partition([4, 8]) as half:
            half.charge(work(bsp, 1, turn))
            with half.partition([2, 4]) as quarter:
                with quarter.partition([1, 2]) as one:
                    one.charge(work(bsp, 2, turn) + (bsp.pid == 5) * late)
                    one.sync()  # here
                quarter.sync()
            half.sync()
        bsp.charge(work(bsp, 3, turn))
        bsp.sync()


def among_odd_processes(bsp, late):
    for turn in range(6):
        with bsp.split(bsp.pid % 2) as same:
            same.charge(work(bsp, 1, turn) + (bsp.pid == 5) * late)
            same.sync()  # here
        bsp.charge(work(bsp, 2, turn))
        bsp.sync()


def before_it_enters_a_group(bsp, late):
    for turn in range(6):
        bsp.charge(work(bsp, 1, turn) + (bsp.pid == 5) * late)
        with bsp.partition([4, 8]) as half:
            half.charge(work(bsp, 2, turn))
            half.sync()
        bsp.charge(4 * work(bsp, 3, turn))
        bsp.sync()  # here


def after_it_leaves_a_group(bsp, late):
    for turn in range(6):
        bsp.charge(4 * work(bsp, 1, turn))
        with bsp.partition([4, 8]) as half:
            half.charge(work(bsp, 2, turn))
            half.sync()
        bsp.charge(work(bsp, 3, turn) + (bsp.pid == 5) * late)
        bsp.sync()  # here


def in_a_pipeline(bsp, late):
    for turn in range(20):
        bsp.charge(work(bsp, 1, turn) + (bsp.pid == 5) * late)
        if bsp.pid + 1 < bsp.nprocs:
            bsp.send(bsp.pid + 1, b"x")
        bsp.oblsync(int(bsp.pid > 0))  # here


def in_a_tree(bsp, late):
    children = [pid for pid in (2 * bsp.pid + 1, 2 * bsp.pid + 2) if pid < bsp.nprocs]
    for turn in range(10):
        bsp.charge(work(bsp, 1, turn) + (bsp.pid == 5) * late)
        if bsp.pid:
            bsp.send((bsp.pid - 1) // 2, b"x")
        bsp.oblsync(len(children))  # here
        for child in children:
            bsp.send(child, b"x")
        bsp.oblsync(int(bsp.pid > 0))


def between_neighbours(bsp, late):
    for turn in range(20):
        bsp.charge(work(bsp, 1, turn) + (bsp.pid == 5) * late)
        there = [pid for pid in (bsp.pid - 1, bsp.pid + 1) if 0 <= pid < bsp.nprocs]
        for pid in there:
            bsp.send(pid, b"x")
        bsp.oblsync(len(there))  # here


def in_a_branch(bsp, late):
    for turn in range(8):
        bsp.charge(work(bsp, 1, turn))
        bsp.sync()
        bsp.charge(work(bsp, 2, turn) + (bsp.pid == 5) * late)
        if bsp.pid == 5:
            bsp.sync()  # here
        else:
            bsp.sync()


def in_one_superstep_of_a_hundred(bsp, late):
    for turn in range(200):
        bsp.charge(work(bsp, 1, turn) / 5 + (bsp.pid == 5 and turn % 100 == 37) * 20 * late)
        bsp.sync()  # here


def once(bsp, late):
    for turn in range(20):
        bsp.charge(work(bsp, 1, turn) + (bsp.pid == 5 and turn == 11) * 10 * late)
        bsp.sync()  # here


PROGRAMS = (
    in_a_group_of_a_group_of_a_group,
    among_odd_processes,
    before_it_enters_a_group,
    after_it_leaves_a_group,
    in_a_pipeline,
    in_a_tree,
    between_neighbours,
    in_a_branch,
    in_one_superstep_of_a_hundred,
    once,
)


def line_of(main):
    lines, first = inspect.getsourcelines(main)
    (at,) = (number for number, line in enumerate(lines) if line.endswith("# here\n"))
    return first + at


def check_delay(with_it, without, sentence, ways):
    """Check the seconds of a sentence, and what it says of the mended run."""
    late_s = (with_it.book.whole()["useful"] - without.book.whole()["useful"]) / 1e9
    grown_s, most_s = with_it.idle_s - without.idle_s, late_s * (NPROCS - 1) / NPROCS
    assert 0.95 * min(grown_s, most_s) <= sentence.seconds <= 1.05 * max(grown_s, most_s)
    assert sentence.as_others_s == pytest.approx(without.elapsed_s, rel=0.1)
    assert sentence.without_s < with_it.elapsed_s
    before, _, _ = sentence.text.partition("; ")
    assert len(before.split()) <= MOST_WORDS
    for way in ways:
        assert way in sentence.text


@pytest.mark.parametrize("main", PROGRAMS)
def test_a_delay_is_named_with_its_line_process_and_seconds(tmp_path, main):
    without, with_it = (judged(tmp_path / f"{late}.bsp", main, late) for late in (0.0, 5 * MS))
    first = with_it.verdict.sentences[0]
    assert first.pids == (5,)
    assert f"line {line_of(main)})" in first.text
    ways = ("shared evenly", "as short there as on the others")
    check_delay(with_it, without, first, ways)


def moving(bsp, late):
    for turn in range(24):
        bsp.charge(work(bsp, 1, turn) + (bsp.pid == 3 * turn % bsp.nprocs) * late)
        bsp.sync()  # here


def test_a_delay_that_moves_from_process_to_process_names_none(tmp_path):
    without, with_it = (judged(tmp_path / f"{late}.bsp", moving, late) for late in (0.0, 5 * MS))
    first = with_it.verdict.sentences[0]
    assert (first.pids, first.kind) == ((), "rotating")
    check_delay(with_it, without, first, ["by another process each time in 24 supersteps"])


def two_at_once(bsp, late):
    for turn in range(12):
        bsp.charge(work(bsp, 1, turn) + (bsp.pid in (1, 5)) * late)
        bsp.sync()  # here


def test_two_delays_that_hide_each_other_are_one_sentence(tmp_path):
    """To mend either of them alone would save nothing."""
    without, with_it = (
        judged(tmp_path / f"{late}.bsp", two_at_once, late) for late in (0.0, 5 * MS)
    )
    (first,) = with_it.verdict.sentences
    assert first.pids == (1, 5)
    assert first.as_others_s == pytest.approx(without.elapsed_s, rel=0.1)


def staircase(bsp):
    for _ in range(10):
        bsp.charge(1 * MS * bsp.pid)
        bsp.sync()


@pytest.mark.parametrize(("nprocs", "slowest"), [(4, (3,)), (16, (14, 15))])
def test_where_each_process_takes_a_step_longer_one_sentence_tells_all(tmp_path, nprocs, slowest):
    (sentence,) = judged(tmp_path / "t.bsp", staircase, nprocs=nprocs).verdict.sentences
    assert sentence.pids == slowest
    assert sentence.seconds == pytest.approx(10 * MS * (nprocs - 1) / 2)


def behind_another(bsp):
    for _ in range(10):
        bsp.charge({1: 9, 5: 4}.get(bsp.pid, 1) * MS)
        bsp.sync()


def behind_another_group(bsp):
    for turn in range(8):
        with bsp.partition([4, 8]) as half:
            half.charge(work(bsp, 1, turn) + {1: 4, 5: 2}.get(bsp.pid, 0) * MS)
            half.sync()
        bsp.sync()


@pytest.mark.parametrize("main", [behind_another, behind_another_group])
def test_a_delay_behind_another_is_not_named(tmp_path, main):
    """To mend that of process 5 alone would save nothing."""
    (sentence,) = judged(tmp_path / "t.bsp", main).verdict.sentences
    assert sentence.pids == (1,)


def in_turn(bsp):
    for _ in range(6):
        for turn in range(bsp.nprocs):
            if bsp.pid == turn:
                bsp.charge(1 * MS)
                if turn + 1 < bsp.nprocs:
                    bsp.send(turn + 1, 1.0)
            bsp.oblsync(int(bsp.pid == turn + 1))


@pytest.mark.parametrize("nprocs", [2, 3, 8])
def test_who_works_in_turn_is_not_told_to_have_nothing_to_do_as_the_others(tmp_path, nprocs):
    sentences = judged(tmp_path / "t.bsp", in_turn, nprocs=nprocs).verdict.sentences
    assert all("; shared evenly the run would take 6." in each.text for each in sentences)
    assert not any("as on the others" in each.text or each.as_others_s for each in sentences)


# -- who, how often, how it changes ----------------------------------------------------------------


def few_blocks(bsp, count):
    bsp.charge((40 if bsp.pid < count else 0) * MS)
    bsp.sync()


@pytest.mark.parametrize(
    ("count", "lost", "nothing", "even"),
    [
        (5, "15.0 of 40.0 ms (38%)", "by processes 0 to 4, while 5 to 7 have nothing", "25.0 ms"),
        (7, "5.00 of 40.0 ms (12%)", "by processes 0 to 6, while process 7 has nothing", "35.0 ms"),
    ],
)
def test_processes_that_have_nothing_to_do_are_told(tmp_path, count, lost, nothing, even):
    (sentence,) = judged(tmp_path / "t.bsp", few_blocks, count).verdict.sentences
    assert nothing in sentence.text
    assert sentence.text.startswith(f"{lost} are lost in few_blocks")
    assert sentence.text.endswith(f"; shared evenly the run would take {even}.")


def growing(bsp):
    for turn in range(30):
        bsp.charge(1 * MS + (bsp.pid == 2 and turn >= 10) * (turn - 10) * 0.5 * MS)
        bsp.sync()


def test_a_loss_that_grows_is_told_with_how_often_it_is(tmp_path):
    (sentence,) = judged(tmp_path / "t.bsp", growing).verdict.sentences
    assert "by process 2 in 18 of 30 supersteps, growing from 1.00 to 9.50 ms" in sentence.text


# -- what could be saved ---------------------------------------------------------------------------


def many_allreduces(bsp):
    for _ in range(5):
        bsp.charge(2 * MS)
        for _ in range(64):
            bsp.allreduce(1.0)


@pytest.mark.lengthy
def test_supersteps_in_a_row_that_could_be_one_are_told(tmp_path):
    machine = bsplib.Machine("dear supersteps", "by hand", g=0.0, l=10e-6)
    found = judged(tmp_path / "t.bsp", many_allreduces, machine=machine)
    (sentence,) = found.verdict.sentences
    assert (sentence.kind, sentence.is_lost) == ("too many supersteps", False)
    assert sentence.seconds == pytest.approx(5 * 63 * 10e-6)
    assert "could be saved in many_allreduces" in sentence.text
    assert sentence.without_s == pytest.approx(5 * (2 * MS + 10e-6))


@pytest.mark.lengthy
@pytest.mark.parametrize("main", PROGRAMS)
def test_all_losses_add_up_to_that_of_main(tmp_path, main):
    found = judged(tmp_path / "t.bsp", main, 5 * MS)
    spent = found.book.whole()
    lost = sum(loss.ns for loss in found.losses if loss.is_lost)
    assert lost == sum(spent[PARTS[part]] for part in LOST)
    told = [loss.ns for loss in found.verdict.sentences if loss.is_lost]
    in_main = found.book.elapsed_ns * NPROCS - spent["ends"]
    assert sum(told) + found.verdict.rest.ns == in_main
