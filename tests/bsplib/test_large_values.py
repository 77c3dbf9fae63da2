"""Values that are too large to be small: some are copied into the buffer, and others are staged."""

from __future__ import annotations

import numpy as np

import bsplib

from .neighbours import left, right

KIB = 1 << 10
SIZES = [8 * KIB, 8 * KIB + 8, 64 * KIB, 128 * KIB, 128 * KIB + 8, 64 * KIB, 64 * KIB, 300 * KIB, 8]
"""Some on both sides of each bound, and more than the send buffer takes in a superstep."""
ROUNDS = 5
"""More than a process has send buffers and staging buffers."""


def values(pid, round_, number, size):
    """Return values that no other transfer has."""
    return np.arange(size // 8, dtype=float) + 1e6 * pid + 1e4 * round_ + 1e9 * number


def sizes_of(round_):
    """Return the sizes of a round, each time in another order."""
    return SIZES[round_:] + SIZES[:round_]


def test_large_puts_arrive_in_every_superstep(run, nprocs):
    def main(bsp):
        targets = [bsp.zeros(size // 8) for size in SIZES]
        bsp.sync()
        for round_ in range(ROUNDS):
            for number, (size, target) in enumerate(zip(SIZES, targets, strict=True)):
                source = values(bsp.pid, round_, number, size)
                bsp.put(right(bsp), source, target)
                source[:] = -1.0  # was copied
            bsp.sync()
            for number, (size, target) in enumerate(zip(SIZES, targets, strict=True)):
                if not np.array_equal(target, values(left(bsp), round_, number, size)):
                    return round_, number
        return None

    assert run(main) == [None] * nprocs


def test_large_messages_keep_their_order_and_are_the_receivers_own(bsp):
    kept = []
    for round_ in range(ROUNDS):
        for number, size in enumerate(sizes_of(round_)):
            payload = values(bsp.pid, round_, number, size)
            bsp.send(right(bsp), payload, round_)
            payload[:] = -1.0  # was copied
        bsp.sync()
        assert bsp.qsize() == (len(SIZES), sum(SIZES))
        for number, (source, tag, payload) in enumerate(bsp.messages()):
            assert (source, tag) == (left(bsp), round_)
            np.add(payload, 0.5, out=payload)  # it can be written
            kept.append((round_, number, payload))
    bsp.sync()
    assert [
        (round_, number)
        for round_, number, payload in kept
        if not np.array_equal(
            payload, values(left(bsp), round_, number, sizes_of(round_)[number]) + 0.5
        )
    ] == []


def test_large_transfers_beside_one_to_a_place_with_gaps(run, nprocs):
    """The send buffer holds entries of several kinds, and is used again."""

    def main(bsp):
        x, y = bsp.zeros(8 * KIB), bsp.zeros((2, 3))
        bsp.sync()
        for round_ in range(ROUNDS):
            bsp.put(right(bsp), values(bsp.pid, round_, 1, 64 * KIB), x)
            bsp.send(right(bsp), values(bsp.pid, round_, 2, 64 * KIB), "a")
            if round_ % 2:
                bsp.put(right(bsp), [1.0, 2.0], y, at=np.s_[:, 1])  # has gaps
            bsp.put(right(bsp), values(bsp.pid, round_, 3, 32 * KIB), x, offset=4 * KIB)
            bsp.sync()
            expected = values(left(bsp), round_, 1, 64 * KIB)
            expected[4 * KIB :] = values(left(bsp), round_, 3, 32 * KIB)
            if not np.array_equal(x, expected):
                return round_
            if not np.array_equal(bsp.move(), values(left(bsp), round_, 2, 64 * KIB)):
                return -round_
        return y[:, 1].tolist()

    assert run(main) == [[1.0, 2.0]] * nprocs


def test_collectives_of_large_arrays_follow_each_other_in_the_same_send_buffers(bsp):
    """Each reads what the others have sent before a send buffer is used again."""
    whole, one = np.empty((bsp.nprocs, 8 * KIB)), np.empty(8 * KIB)
    wrong = []
    for round_ in range(ROUNDS):
        own = values(bsp.pid, round_, 0, 64 * KIB)
        theirs = [values(pid, round_, 0, 64 * KIB) for pid in range(bsp.nprocs)]
        parts = [own + to for to in range(bsp.nprocs)]
        found = {
            "alltoall": (bsp.alltoall(parts, out=whole).copy(), np.array(theirs) + bsp.pid),
            "scan": (bsp.scan(own, out=one).copy(), sum(theirs[: bsp.pid + 1])),
            "allgather": (np.array(bsp.allgather(own)), np.array(theirs)),
            "allreduce": (bsp.allreduce(own, "max", out=one).copy(), theirs[-1]),
            "broadcast": (bsp.broadcast(own, root=bsp.nprocs - 1), theirs[-1]),
        }
        own[:] = -1.0
        wrong += [(round_, name) for name, pair in found.items() if not np.array_equal(*pair)]
    assert wrong == []


def test_large_transfers_of_sub_groups_and_of_later_runs_are_their_own():
    def main(bsp, run_number):
        x = bsp.zeros(8 * KIB)
        found = []
        for round_ in range(ROUNDS):
            with bsp.split(bsp.pid % 2) as group:
                y = group.zeros(8 * KIB)
                group.sync()
                peer, other = (group.pid + 1) % group.nprocs, (group.pid - 1) % group.nprocs
                group.put(peer, values(group.pid, round_, run_number, 64 * KIB), y)
                group.send(peer, values(group.pid, round_, 50, 64 * KIB))
                group.sync()
                found.append(np.array_equal(y, values(other, round_, run_number, 64 * KIB)))
                found.append(np.array_equal(group.move(), values(other, round_, 50, 64 * KIB)))
            bsp.put(right(bsp), values(bsp.pid, round_, 7, 64 * KIB), x)
            bsp.sync()
            found.append(np.array_equal(x, values(left(bsp), round_, 7, 64 * KIB)))
        return all(found)

    with bsplib.Pool(3) as pool:
        assert [pool.run(main, number) for number in range(3)] == [[True] * 3] * 3


def test_a_send_buffer_keeps_little_of_what_was_large(nprocs):
    def main(bsp):
        x = bsp.zeros(8 * KIB)
        bsp.sync()
        for _ in range(3):
            for _ in range(100):
                bsp.put(right(bsp), np.ones(8 * KIB), x)
            bsp.sync()
        heap = bsp._port._context.heap
        return sum(heap._used[byte] for byte in bsp._port._leases._send_buffers)

    assert all(size <= 2 << 20 for size in bsplib.run(main, nprocs=nprocs, backend="shm"))
