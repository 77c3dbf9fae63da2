"""Splitting a group into sub-groups of any processes."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib import MessageError, PartitionError, SyncMismatchError


def test_processes_of_one_colour_make_a_sub_group(run, nprocs):
    def main(bsp):
        with bsp.split(bsp.pid % 2) as sub:
            return sub.allgather(bsp.pid), sub.pid, sub.nprocs

    for pid, found in enumerate(run(main)):
        members = list(range(pid % 2, nprocs, 2))
        assert found == (members, members.index(pid), len(members))


def test_a_key_orders_the_processes_of_a_sub_group(run, nprocs):
    def main(bsp):
        with bsp.split("all", key=-bsp.pid) as sub:
            return sub.allgather(bsp.pid)

    assert run(main) == [list(range(nprocs))[::-1]] * nprocs


def test_processes_of_equal_keys_keep_their_order(run, nprocs):
    def main(bsp):
        with bsp.split(0, key=bsp.pid // 2 % 2) as sub:
            return sub.allgather(bsp.pid)

    expected = sorted(range(nprocs), key=lambda pid: pid // 2 % 2)
    assert run(main) == [expected] * nprocs


def test_what_only_a_sub_group_has_is_refused_where_there_is_none(bsp):
    sub = bsp.split(None)
    with pytest.raises(AttributeError, match="so there is no put; write"):
        sub.put(0, 1.0, None)
    sub.done()


def test_a_process_without_a_colour_is_in_no_sub_group(run, nprocs):
    def main(bsp):
        with bsp.split(None if bsp.pid == 0 else "others") as sub:
            if sub is None:
                with pytest.raises(PartitionError, match="no sub-group"):
                    bsp.sync()
                return None
            return sub.allgather(bsp.pid)

    assert run(main) == [None, *[list(range(1, nprocs))] * (nprocs - 1)]


@pytest.mark.procs(2, 3)
def test_the_group_is_used_again_after_the_block(bsp):
    with bsp.split(None if bsp.pid else 0):
        pass
    rest = bsp.split(None if bsp.pid else 0)
    rest.done()
    assert bsp.allgather(bsp.pid) == list(range(bsp.nprocs))


@pytest.mark.procs(4, 8)
def test_rows_and_columns_are_opened_again_in_every_round(run, nprocs):
    columns = next(each for each in (3, 2, 1) if nprocs % each == 0)

    def main(bsp):
        i, j = divmod(bsp.pid, columns)
        with bsp.split(i) as row:
            pass
        with bsp.split(j) as column:
            pass
        found = []
        for step in range(5):
            with row as again:
                assert again is row
                found.append(row.allgather(bsp.pid + step))
            with column:
                x = column.zeros(1)
                column.put((column.pid + 1) % column.nprocs, [bsp.pid], x)
                column.sync()
                found.append(x[0])
        bsp.sync()
        return bsp.pid, found, row.pid, column.nprocs

    for pid, found, place, rows in run(main):
        i, j = divmod(pid, columns)
        assert (place, rows) == (j, nprocs // columns)
        for step in range(5):
            assert found[2 * step] == [i * columns + each + step for each in range(columns)]
            assert found[2 * step + 1] == (i - 1) % rows * columns + j


def test_what_is_opened_again_takes_no_superstep_of_the_parent(bsp):
    sub = bsp.split(bsp.pid % 2 if bsp.pid else None)
    sub.done()
    before = repr(bsp)
    for _ in range(3):
        with sub, pytest.raises(PartitionError, match=r"leave the sub-group|no sub-group"):
            bsp.sync()
    assert (before == repr(bsp), bsp.allgather(bsp.pid)) == (True, list(range(bsp.nprocs)))


@pytest.mark.procs(2)
def test_a_sub_group_is_not_opened_again_inside_another(run):
    def main(bsp):
        with bsp.split(0) as one:
            pass
        with (
            bsp.split(bsp.pid),
            pytest.raises(PartitionError, match=r"with: .* sub-group"),
            one,
        ):
            pass
        with pytest.raises(PartitionError, match=r"sync: .* or open it in a with block"):
            one.sync()
        with one:
            return one.allreduce(1)

    assert run(main) == [2, 2]


@pytest.mark.procs(2, 4)
def test_a_nested_sub_group_is_opened_again_in_its_own_parent(bsp):
    with bsp.partition([bsp.nprocs // 2, bsp.nprocs]) as half, half.split(half.pid) as alone:
        pass
    found = []
    for _ in range(3):
        with half:
            with alone:
                found.append(alone.allgather(bsp.pid))
            found.append(half.allreduce(1))
    assert found == [[bsp.pid], bsp.nprocs // 2] * 3


def opens(bsp, how):
    if how == "second split":
        bsp.split(0).done()
    return bsp.split(0) if "split" in how else bsp.partition([bsp.nprocs])


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("how", ["split", "second split", "partition"])
@pytest.mark.parametrize("end", ["sync", "oblsync", "allreduce"])
def test_messages_sent_before_are_read_after_the_next_sync(run, nprocs, how, end):
    def main(bsp):
        bsp.send(0, bsp.pid)
        with opens(bsp, how) as sub:
            sub.send(0, "of the sub-group")
            sub.sync()
        bsp.send(0, 10 + bsp.pid)
        mine = 0 if bsp.pid else bsp.nprocs
        {
            "sync": bsp.sync,
            "oblsync": lambda: bsp.oblsync(2 * mine if how == "partition" else mine),
            "allreduce": lambda: bsp.allreduce(1),
        }[end]()
        found = [payload for _, _, payload in bsp.messages()]
        bsp.sync()
        return found, bsp.qsize()

    expected = [number for pid in range(nprocs) for number in (pid, 10 + pid)]
    assert run(main) == [(expected, (0, 0)), *[([], (0, 0))] * (nprocs - 1)]


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("how", ["split", "partition"])
def test_messages_that_are_not_read_outlive_a_sub_group_until_the_next_sync(bsp, how):
    for number in range(3):
        bsp.send(bsp.pid, np.full(1 << 16, number))
    bsp.sync()
    first = bsp.move()[0]
    with opens(bsp, how):
        pass
    second = bsp.move()[0]
    bsp.sync()
    assert (first, second, bsp.qsize()) == (0, 1, (0, 0))


@pytest.mark.procs(2)
def test_a_colour_that_names_nothing_is_refused(run):
    def main(bsp):
        for colour in ([1], float("nan"), np.zeros(2)):
            with pytest.raises(PartitionError, match=r"split: colour is .*hashable"):
                bsp.split(colour)
        return bsp.allgather(1)

    assert run(main) == [[1, 1]] * 2


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("split", "kind", "words"),
    [
        (
            lambda bsp: bsp.split(0, key=["a", 1][bsp.pid]),
            PartitionError,
            r"the keys \['a', 1\] can",
        ),
        (lambda bsp: bsp.split(lambda: 0), MessageError, "a value of type tuple cannot be pickled"),
        (lambda bsp: (bsp.allgather if bsp.pid else bsp.split)(0), SyncMismatchError, ".*same sup"),
    ],
)
def test_a_split_that_cannot_be_is_refused(run, split, kind, words):
    with pytest.raises(kind, match=f"^(split|allgather): {words}"):
        run(split)
