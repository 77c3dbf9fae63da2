from __future__ import annotations

import multiprocessing

import pytest

import bsplib

from .neighbours import right

pytestmark = pytest.mark.timeout(60)


def halves(bsp):
    return [bsp.nprocs // 2, bsp.nprocs]


def total(bsp):
    """Sum of 1 over the processes of a group, the hard way."""
    x = bsp.zeros(bsp.nprocs, int)
    for pid in range(bsp.nprocs):
        bsp.put(pid, 1, x, offset=bsp.pid)
    bsp.sync()
    return int(x.sum())


def test_a_sub_group_has_its_own_numbering(run, nprocs):
    def main(bsp):
        with bsp.partition(halves(bsp)) as sub:
            return sub.pid, sub.nprocs

    half = nprocs // 2
    expected = [(pid, half) for pid in range(half)]
    assert run(main) == expected + [(pid, nprocs - half) for pid in range(nprocs - half)]


def test_done_ends_a_sub_group_without_a_with(bsp):
    sub = bsp.partition([bsp.nprocs])
    inside = total(sub)
    sub.done()
    assert (inside, total(bsp)) == (bsp.nprocs, bsp.nprocs)


def test_a_partition_of_single_processes_needs_nobody_else(run, nprocs):
    def main(bsp):
        with bsp.partition(range(1, bsp.nprocs + 1)) as sub:
            return [total(sub) for _ in range(10)]

    assert run(main) == [[1] * 10] * nprocs


@pytest.mark.parametrize("syncs", [0, 1], ids="syncs={}".format)
def test_hundreds_of_partitions_without_a_sync_of_the_parent(bsp, syncs):
    for number in range(300):
        with bsp.partition(halves(bsp) if number % 2 else [bsp.nprocs]) as sub:
            for _ in range(syncs):
                sub.send(right(sub), number)
                sub.sync()
                assert sub.move() == number
    assert total(bsp) == bsp.nprocs


@pytest.mark.real_processes
@pytest.mark.forked
@pytest.mark.procs(2)
def test_a_process_may_be_hundreds_of_partitions_ahead(backend, nprocs):
    """A partition needs no communication, so nobody has to wait for anybody."""
    ahead = multiprocessing.Event()

    def main(bsp):
        if bsp.pid == 1:
            assert ahead.wait(30)
        for _ in range(300):
            with bsp.partition([bsp.nprocs]):
                pass
        ahead.set()
        return total(bsp)

    assert bsplib.run(main, nprocs=nprocs, backend=backend) == [2, 2]


# -- what the parent keeps ----------------------------------------------------------------------


def test_a_tag_size_of_the_parent_is_none_of_a_sub_group_s(bsp):
    bsp.set_tagsize(2)
    bsp.sync()
    with bsp.partition([bsp.nprocs]) as sub:
        sub.send(right(sub), 1, tag="free")
        sub.sync()
        free = sub.get_tag()
    bsp.send(right(bsp), 1, tag=b"12")
    bsp.sync()
    assert (free, bsp.get_tag()) == ("free", b"12")


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ends",
    [
        lambda p: [],
        lambda p: [p - 1],
        lambda p: [p + 1],
        lambda p: [0],
        lambda p: [-1, p],
        lambda p: [p, 0, p],
        lambda p: [p, p - 1],
        lambda p: [1, 0, p],
    ],
)
@pytest.mark.procs(1, 4)
def test_ends_that_make_no_groups_are_an_error(run, nprocs, ends):
    with pytest.raises(
        bsplib.PartitionError,
        match=rf"^partition: ends \[.*\] do not rise from 0 or more to {nprocs}, .*"
        r"\[process 0, superstep 0, test_partition.py:\d+\]",
    ) as raised:
        run(lambda bsp: bsp.partition(ends(bsp.nprocs)))
    assert isinstance(raised.value, ValueError)


@pytest.mark.procs(2)
@pytest.mark.parametrize("ends", [2, None, [0.5, 2], ["2"]])
def test_ends_are_integers(run, ends):
    with pytest.raises((bsplib.PartitionError, TypeError), match=r"partition|ends"):
        run(lambda bsp: bsp.partition(ends))


@pytest.mark.procs(1, 2)
@pytest.mark.raises(bsplib.PartitionError, match=r"it has been left")
def test_a_sub_group_cannot_be_left_twice(bsp):
    sub = bsp.partition([bsp.nprocs])
    sub.done()
    sub.done()


@pytest.mark.procs(1, 2)
@pytest.mark.raises(bsplib.PartitionError, match=r"a sub-group of it is open")
def test_a_sub_group_cannot_be_left_before_its_own(bsp):
    sub = bsp.partition([bsp.nprocs])
    sub.partition([sub.nprocs])
    sub.done()


@pytest.mark.raises(bsplib.PartitionError, match=r"a sub-group of it is open")
def test_a_sub_group_that_is_open_when_main_returns_is_an_error(bsp):
    bsp.partition([bsp.nprocs])


@pytest.mark.parametrize("transfer", ["put", "get", "send"])
@pytest.mark.raises(
    bsplib.PendingTransferError, match=r"^done: 1 transfers? .*pending .*superstep 1"
)
def test_transfers_that_are_pending_at_done_are_an_error(bsp, transfer):
    with bsp.partition([bsp.nprocs]) as sub:
        x = sub.zeros(1)
        sub.sync()
        if transfer == "put":
            sub.put(0, 1, x)
        elif transfer == "get":
            sub.get(0, x)
        else:
            sub.send(0, 1)


@pytest.mark.raises(KeyError, match=r"the one to be seen")
def test_an_exception_is_not_masked_by_pending_transfers(bsp):
    with bsp.partition([bsp.nprocs]) as sub:
        sub.send(0, 1)
        raise KeyError("the one to be seen")


def test_an_exception_in_a_nested_sub_group_leaves_both(run, nprocs):
    def main(bsp):
        try:
            with bsp.partition([bsp.nprocs]) as sub, sub.partition([sub.nprocs]) as inner:
                total(inner)
                inner.send(0, "never delivered")
                {}["missing"]
        except KeyError:
            return total(bsp)

    assert run(main) == [nprocs] * nprocs


@pytest.mark.raises(KeyError, match=r"the one to be seen")
def test_an_exception_while_a_sub_group_is_left_open_is_not_masked(bsp):
    with bsp.partition([bsp.nprocs]) as sub:
        sub.partition([sub.nprocs])  # never left
        raise KeyError("the one to be seen")


@pytest.mark.procs(least=2)
def test_a_process_that_leaves_while_others_sync_is_a_mismatch(run, nprocs):
    def main(bsp):
        with bsp.partition([bsp.nprocs]) as sub:
            if bsp.pid:
                sub.sync()

    with pytest.raises(
        bsplib.SyncMismatchError, match=rf"sub-group of processes 0 to {nprocs - 1}\b"
    ):
        run(main)
