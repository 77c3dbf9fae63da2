"""What the verdict says of calls of MPI that were made by hand, each with one fault."""

from __future__ import annotations

import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.kinds import FAN_IN, FIXED, PICKLING
from bsplib.record import events as ev
from bsplib.record.join import join
from tests.record.made_ranks import US, RankMaker, written

ROUNDS = 20


@pytest.fixture
def book(tmp_path):
    """Return what joins ranks and books the run."""
    return lambda makers: book_graph(build(join(written(tmp_path / "out.ranks", makers)).runs[0]))


def makers_of(nprocs):
    return [RankMaker(rank, nprocs) for rank in range(nprocs)]


def exchanged(makers, now, before_us, took_us):
    """Let two processes exchange a message of 8 bytes."""
    for maker in makers:
        other = 1 - maker.rank
        done, parts = [(0, other, 0, 8)], [(other, 8, 8)]
        begin = now + before_us + 0.3 * maker.rank  # they are never quite alike
        end = now + before_us + 0.3 + took_us
        more = {"partner": other, "out": 8, "into": 8, "done": done, "parts": parts}
        maker.call("Sendrecv", begin, end, line=6, **more)
    return now + before_us + 0.3 + took_us


def test_messages_are_too_many_where_only_the_calls_take_time(book):
    makers, now = makers_of(2), 0
    for _ in range(50):
        now = exchanged(makers, now, before_us=2, took_us=1)  # 2 us in Python for 1 us in MPI
    found = book(makers)
    first = found.verdict().sentences[0]
    assert "too many small messages" in first.text
    assert first.seconds == pytest.approx(25 * 3.3e-6, rel=0.01)  # half of them remain
    assert first.without_s == pytest.approx(25 * 3.3e-6, rel=0.1)


def test_pickles_that_mpi4py_makes_before_its_calls_could_be_saved(book):
    makers = makers_of(2)
    for round_ in range(10):
        for maker in makers:
            begin = 100 * round_ + 60
            more = {"out": 8000, "into": 8000, "pickles": (40 * US, 8000)}
            maker.call("Allgather", begin, begin + 10, line=6, **more)
    first = book(makers).verdict().sentences[0]
    assert (first.kind, first.ns, first.total_bytes) == (PICKLING, 20 * 40 * US, 20 * 8000)
    assert "could be saved in main (jac.py line 6" in first.text
    assert "(160 kB of objects pickled: send arrays)" in first.text


@pytest.mark.parametrize("nprocs", [2, 4, 8])
def test_a_root_that_takes_long_to_gather_is_a_fan_in_at_any_price_of_a_byte(book, nprocs):
    makers, now = makers_of(nprocs), 0
    for _ in range(ROUNDS):
        for maker in makers:
            maker.call("Barrier", now + 10, now + 11, line=5)
            lasts = 2000 if maker.rank == 0 else 20  # those that send have put it into buffers
            into = 8_000_000 * nprocs if maker.rank == 0 else 0
            more = {"partner": 0, "out": 8_000_000, "into": into}
            maker.call("Gather", now + 20, now + 20 + lasts, line=6, **more)
            maker.call("Barrier", now + 22 + lasts, now + 2030, line=7)
        now += 2030
    first = book(makers).verdict().sentences[0]
    assert (first.kind, first.pids, "line 6" in first.text) == (FAN_IN, (0,), True)
    lost_s = ROUNDS * (2000 - 20) * (nprocs - 1) / nprocs * 1e-6
    assert first.seconds == pytest.approx(lost_s, rel=0.05)
    assert first.without_s == pytest.approx(ROUNDS * 2030e-6 - lost_s, rel=0.05)


def test_those_that_wait_for_a_message_begun_late_wait_less_if_it_is_mended(book):
    """The wait ends in the middle of a superstep of all, in a group that the late one is not in."""
    makers, now = makers_of(2), 0
    early, late = makers
    for _ in range(ROUNDS):
        early.call("Recv", now + 5, now + 5005, partner=1, into=8, line=3)
        request = late.start("Isend", now + 5001, now + 5002, partner=0, out=8, line=4)
        for maker in makers:
            maker.call("Barrier", now + 5010, now + 5015, line=5)
        done = [(request, ev.NOBODY, 0, 0)]
        late.call("Wait", now + 5016, now + 5017, comm=-1, done=done, line=6)
        now += 5020
    first = book(makers).verdict().sentences[0]
    assert (first.kind, first.pids) == (FIXED, (1,))
    assert first.seconds == pytest.approx(ROUNDS * 5e-3 / 2, rel=0.01)
    assert first.without_s == pytest.approx(ROUNDS * 2.52e-3, rel=0.02)
