"""A single lone put in a superstep takes the shortest path, whatever other processes send."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from bsplib.recording.trace import read_trace

pytestmark = pytest.mark.procs(2, 3)

SIZE = 10_000
LONE_PUT_BYTES = 200
"""Most bytes of the values of a put that travels inside the cell of its post."""
EARLY = 16
"""What is put at any time may be looked at in the end only: it has room of its own."""


def nothing(bsp, x, to, mark):
    pass


def small(bsp, x, to, mark):
    bsp.put(to, np.full(3, mark, np.uint8), x[bsp.pid : bsp.pid + 3])


def longest(bsp, x, to, mark):
    bsp.put(to, np.full(LONE_PUT_BYTES, mark, np.uint8), x, offset=4)


def too_long(bsp, x, to, mark):
    bsp.put(to, np.full(LONE_PUT_BYTES + 1, mark, np.uint8), x, offset=4)


def staged(bsp, x, to, mark):
    bsp.put(to, np.full(SIZE, mark, np.uint8), x[:SIZE])  # more than the send buffer takes


def at_index(bsp, x, to, mark):
    bsp.put(to, np.full(4, mark, np.uint8), x, at=np.s_[1:9:2])


def two(bsp, x, to, mark):
    small(bsp, x, to, mark)
    bsp.put(to, np.full(2, mark, np.uint8), x, offset=2)


def to_itself(bsp, x, to, mark):
    small(bsp, x, bsp.pid, mark)


def to_all(bsp, x, to, mark):
    for pid in range(bsp.nprocs):
        small(bsp, x, pid, mark)


def early(bsp, x, to, mark):
    bsp.hpput(to, np.full(3, mark, np.uint8), x, offset=SIZE + 3 * bsp.pid)


def message(bsp, x, to, mark):
    bsp.send(to, mark)


def put_and_message(bsp, x, to, mark):
    small(bsp, x, to, mark)
    bsp.send(to, mark)


def get(bsp, x, to, mark):
    bsp.get(to, x[:5])


BRINGS = (
    nothing,
    small,
    longest,
    too_long,
    staged,
    at_index,
    two,
    to_itself,
    to_all,
    early,
    message,
    put_and_message,
    get,
)


def expected(x, brings, to, marks):
    """Return x and the messages after a superstep, by pid: plainly, from the contract."""
    after = [values.copy() for values in x]
    inbox = [[] for _ in x]
    for pid, (what, mark) in enumerate(zip(brings, marks, strict=True)):
        place = {
            small: slice(pid, pid + 3),
            put_and_message: slice(pid, pid + 3),
            longest: slice(4, 4 + LONE_PUT_BYTES),
            too_long: slice(4, 5 + LONE_PUT_BYTES),
            staged: slice(0, SIZE),
            at_index: slice(1, 9, 2),
            to_itself: slice(pid, pid + 3),
            early: slice(SIZE + 3 * pid, SIZE + 3 * (pid + 1)),
            two: [pid, pid + 1, pid + 2, 2, 3],
            to_all: slice(pid, pid + 3),
        }.get(what)
        receivers = {to_itself: [pid], to_all: range(len(x))}.get(what, [to[pid]])
        for receiver in receivers:
            if place is not None:
                after[receiver][place] = mark
            if what in (message, put_and_message):
                inbox[receiver].append((pid, mark))
    return after, inbox


def superstep(bsp, x, what, to, mark):
    what(bsp, x, to, mark)
    bsp.sync()
    return [(source, payload) for source, _, payload in bsp.messages()]


@pytest.mark.parametrize("one", BRINGS, ids=lambda one: one.__name__)
def test_whatever_others_bring_it_comes_as_the_contract_says(run, nprocs, one):
    turns = [pair for other in BRINGS for pair in 2 * [(one, other), (other, one)]]

    def main(bsp):
        right = (bsp.pid + 1) % bsp.nprocs
        x = bsp.zeros(SIZE + EARLY, np.uint8)
        bsp.sync()
        history = []
        for turn, pair in enumerate(turns):
            inbox = superstep(bsp, x, pair[bsp.pid % 2], right, 3 * turn + bsp.pid)
            history.append((x[:SIZE].copy(), inbox))
        bsp.sync()
        return history, x[SIZE:].copy()

    histories, tails = zip(*run(main), strict=True)
    x = [np.zeros(SIZE + EARLY, np.uint8) for _ in histories]
    to = [(pid + 1) % nprocs for pid in range(nprocs)]
    for turn, pair in enumerate(turns):
        brings = [pair[pid % 2] for pid in range(nprocs)]
        x, inboxes = expected(x, brings, to, [3 * turn + pid for pid in range(nprocs)])
        for pid, history in enumerate(histories):
            values, inbox = history[turn]
            assert np.array_equal(values, x[pid][:SIZE]), (turn, pair)
            assert inbox == inboxes[pid]
    assert [tail.tolist() for tail in tails] == [values[SIZE:].tolist() for values in x]


@pytest.mark.procs(3, 5)
def test_lone_puts_of_many_sources_to_one_place_are_written_in_the_order_of_sources(bsp):
    x = bsp.zeros(1, np.int64)
    bsp.sync()
    seen = []
    for last in range(bsp.nprocs):
        if bsp.pid not in (0, last):
            bsp.put(0, bsp.pid, x)
        bsp.sync()
        seen.append(int(x[0]))
    highest = bsp.nprocs - 1
    if bsp.pid == 0:
        assert seen == [highest] * highest + [highest - 1]


def test_a_lone_put_into_an_array_with_gaps_skips_them(bsp):
    x = np.zeros((4, 3))
    bsp.push_reg(x[:, 1])
    bsp.sync()
    for word in (1.0, 2.0):
        bsp.put((bsp.pid + 1) % bsp.nprocs, np.full(2, word), x[:, 1], offset=1)
        bsp.sync()
    assert x.tolist() == [[0, 0, 0], [0, 2, 0], [0, 2, 0], [0, 0, 0]]


@pytest.mark.raises(bsplib.SyncMismatchError, match="registrations")
def test_a_process_that_registers_meets_one_that_only_puts(bsp):
    x = bsp.zeros(2)
    bsp.sync()
    bsp.put((bsp.pid + 1) % bsp.nprocs, 1.0, x, offset=0)
    bsp.sync()
    if bsp.pid == 0:
        bsp.zeros(1)
    bsp.put((bsp.pid + 1) % bsp.nprocs, 2.0, x, offset=0)
    bsp.sync()


def test_lone_puts_go_on_in_a_sub_group_and_after_an_oblivious_superstep(bsp):
    x = bsp.zeros(4, np.int64)
    bsp.sync()
    with bsp.partition([1, bsp.nprocs]) as sub:
        y = sub.zeros(4, np.int64)
        sub.sync()
        for word in range(1, 5):
            sub.put((sub.pid + 1) % sub.nprocs, word, y, offset=word - 1)
            sub.sync()
        got = y.tolist()
    for word in range(1, 5):
        bsp.put((bsp.pid + 1) % bsp.nprocs, word, x, offset=word - 1)
        if word % 2:
            bsp.sync()
        else:
            bsp.oblsync(1)
    bsp.sync()
    assert (got, x.tolist()) == ([1, 2, 3, 4], [1, 2, 3, 4])


def test_a_lone_put_is_recorded_like_any_other(run, tmp_path, nprocs):
    def main(bsp):
        x = bsp.zeros(SIZE, np.uint8)
        bsp.sync()
        right = (bsp.pid + 1) % bsp.nprocs
        for what in (small, small, longest, too_long):
            superstep(bsp, x, what, right, 1)
            bsp.sync()

    run(main, profile=tmp_path / "t.bsp")
    [recorded] = read_trace(tmp_path / "t.bsp").runs
    records, traffic = recorded.records, recorded.traffic
    for pid in range(nprocs):
        mine = records["pid"][traffic["record"]] == pid
        steps = records["superstep"][traffic["record"][mine]]
        assert steps.tolist() == [1, 3, 5, 7]
        assert traffic["bytes"][mine].tolist() == [3, 3, LONE_PUT_BYTES, LONE_PUT_BYTES + 1]
        assert set(traffic["partner"][mine].tolist()) == {(pid + 1) % nprocs}
        assert (records["released"] >= records["arrive"]).all()
