"""In a run on several hosts the processes of a host share memory for payloads and arrays.

Most tests are on one host, whose ranks meet through MPI all the same.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.backends.mpi.launcher_environment import INSIDE
from bsplib.errors import SyncMismatchError
from tests.bsplib.random_programs.checks import check, check_fault
from tests.bsplib.random_programs.faults import Breaker
from tests.bsplib.random_programs.seeded import program_of
from tests.hosts.launching import on_ranks_of
from tests.mpi_ranks import end

from .conftest import DEADLINE_S
from .test_inside import check_traffic_of_everything, everything, expected, run

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(2 * DEADLINE_S)]

SLOW = pytest.mark.slow
ROOT = Path(__file__).parents[3]
LARGE = 50_000
"""Words that are staged."""
SEEDS = 12
"""Of random programs; only those of at most 4 processes are run here."""


@pytest.fixture
def neighbours(mpi, monkeypatch):
    """Let ranks of one host exchange as those of a host among several do."""
    monkeypatch.setenv(INSIDE, "payloads")


@pytest.fixture
def changed(neighbours):
    """Change something in ranks, which are ended after the test."""
    end()
    yield lambda change, nprocs: run(change, nprocs=nprocs)
    end()


def right_of(bsp):
    return (bsp.pid + 1) % bsp.nprocs


def has_neighbours(bsp):
    return bsp._port._neighbours is not None


def waited_for(path):
    while not Path(path).exists():
        time.sleep(0.001)


@pytest.mark.usefixtures("neighbours")
@pytest.mark.parametrize("count", [3, *(pytest.param(n, marks=SLOW) for n in (2, 4))])
def test_neighbours_exchange_everything(count):
    def main(bsp):
        return has_neighbours(bsp), everything(bsp)

    for _ in range(2):
        shared, done = zip(*run(main, nprocs=count), strict=True)
        assert all(shared)
        assert [seen for _, seen in done] == expected(count)


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
def test_runs_of_all_ways_follow_each_other_on_the_same_ranks(monkeypatch):
    def main(bsp):
        neighbours = getattr(bsp._port, "_neighbours", None)
        return neighbours is not None, everything(bsp)

    ways = ((4, "payloads"), (2, "payloads"), (4, ""), (4, "payloads"), (4, "mpi"), (4, "payloads"))
    for nprocs, way in ways:
        monkeypatch.setenv(INSIDE, way)
        shared, done = zip(*run(main, nprocs=nprocs), strict=True)
        assert set(shared) == {way == "payloads"}
        assert [seen for _, seen in done] == expected(nprocs)


@pytest.mark.usefixtures("neighbours")
@pytest.mark.parametrize("below", [False, pytest.param(True, marks=SLOW)])
def test_an_hpput_to_a_neighbour_is_written_at_once_after_it_has_delivered(below, tmp_path):
    def main(bsp, below, folder):
        group = bsp.split(0) if below else bsp
        x = group.zeros(LARGE)
        group.put(1 - bsp.pid, np.full(LARGE, 1.0), x)
        group.sync()
        if bsp.pid == 1:
            Path(folder, "delivered").touch()
            waited_for(Path(folder, "written"))
            before = x[[0, -1]].tolist()
            y = group.zeros(1)  # not read yet where process 0 has written
        else:
            waited_for(Path(folder, "delivered"))
            group.hpput(1, np.full(LARGE, 2.0), x)
            Path(folder, "written").touch()
            before, y = None, group.zeros(1)
        group.sync()
        seen = before, x[[0, -1]].tolist(), y.tolist()
        if below:
            group.done()
        return seen

    own, other = run(main, below, str(tmp_path), nprocs=2)
    assert own == (None, [1.0, 1.0], [0.0])
    assert other == ([2.0, 2.0], [2.0, 2.0], [0.0])


@pytest.mark.usefixtures("neighbours")
def test_an_hpget_from_a_neighbour_is_read_at_once(tmp_path):
    def main(bsp, folder):
        x = bsp.array(np.full(LARGE, float(bsp.pid)))
        bsp.sync()
        got = None
        if bsp.pid == 1:
            Path(folder, "delivered").touch()
        else:
            waited_for(Path(folder, "delivered"))
            got = bsp.hpget(1, x)
            assert (got == 1.0).all()
        bsp.sync()
        return None if got is None else float(got.sum())

    assert run(main, str(tmp_path), nprocs=2) == [float(LARGE), None]


@pytest.mark.usefixtures("neighbours")
def test_nothing_is_written_at_once_after_an_oblivious_superstep():
    def main(bsp):
        x = bsp.zeros(LARGE)
        bsp.sync()
        settled = []
        for step in range(20):
            bsp.hpput(right_of(bsp), np.full(LARGE, float(step)), x)
            bsp.oblsync(1)
            settled.append(bsp._port.has_delivered(right_of(bsp)))
            assert x.min() == x.max() == step
            bsp.sync()
        return any(settled)

    assert run(main, nprocs=3) == [False] * 3


@pytest.mark.usefixtures("neighbours")
def test_blocks_are_used_again():
    def main(bsp):
        x, values = bsp.zeros(LARGE), np.full(LARGE, 1.0 + bsp.pid)
        left = (bsp.pid - 1) % bsp.nprocs
        bsp.sync()
        for step in range(90):
            if step % 3 == 0:
                bsp.put(right_of(bsp), values, x)
                bsp.sync()
            elif step % 3 == 1:
                bsp.send(right_of(bsp), values)
                bsp.oblsync(1)
            else:
                (_, _, payload) = next(iter(bsp.messages()))
                got = bsp.get(right_of(bsp), x)
                bsp.sync()
                assert (payload == 1.0 + left).all()
                assert (got == 1.0 + bsp.pid).all()
        bsp.sync()
        bsp.sync()
        own = bsp._port._neighbours
        blocks = own._marked + own._run_ahead + own._announced
        return len(blocks), own._store._heap._reserved

    for blocks, reserved in run(main, nprocs=3):
        assert blocks == 0
        assert reserved <= 20 * 8 * LARGE


@pytest.mark.slow
@pytest.mark.usefixtures("neighbours")
def test_a_message_may_be_read_until_the_next_sync_while_its_sender_goes_on():
    def main(bsp):
        seen = []
        bsp.send(right_of(bsp), np.full(LARGE, -1.0))
        bsp.sync()
        for step in range(30):
            _, view = bsp.hpmove()
            with bsp.partition([bsp.nprocs]) as sub:  # no superstep of the parent ends
                sub.send(right_of(bsp), np.full(LARGE, 100.0 + step))
                sub.sync()
                sub.send(right_of(bsp), np.full(LARGE, 200.0 + step))
                sub.oblsync(1)
                sub.sync()
            assert view.min() == view.max()
            seen.append(view[0])
            bsp.send(right_of(bsp), np.full(LARGE, float(step)))
            if step % 2:
                bsp.sync()
            else:
                bsp.oblsync(1)
        return [float(value) for value in seen]

    assert run(main, nprocs=3) == [[float(step) for step in range(-1, 29)]] * 3


@pytest.mark.slow
def test_payloads_and_arrays_go_through_mpi_where_there_is_no_room(changed):
    def spoil(bsp):
        from bsplib.backends.shm.joining import Store  # noqa: PLC0415

        allocate, calls = Store.allocate, []

        def sometimes(store, nbytes):
            calls.append(nbytes)
            return allocate(store, nbytes) if len(calls) % 2 == bsp.pid % 2 else None

        Store.allocate = sometimes

    def main(bsp):
        x = [bsp.zeros(LARGE) for _ in range(4)]
        addresses = [bsp._port.shared_address_of(each) is None for each in x]
        bsp.sync()
        for step in range(10):
            for number, each in enumerate(x):
                bsp.put(right_of(bsp), np.full(LARGE, 10.0 * step + number), each)
            bsp.send(right_of(bsp), np.full(LARGE, step))
            bsp.sync()
            assert [each[-1] for each in x] == [10.0 * step + number for number in range(4)]
            assert [int(payload[-1]) for _, _, payload in bsp.messages()] == [step]
        return addresses.count(True)

    changed(spoil, 3)
    assert run(main, nprocs=3) == [2] * 3


@pytest.mark.slow
def test_a_process_that_runs_far_ahead_sends_payloads_through_mpi(changed, tmp_path):
    def spoil(bsp):
        from bsplib.backends.mpi import same_host  # noqa: PLC0415

        same_host._MOST_RUN_AHEAD_BYTES = 5 * 8 * LARGE

    def main(bsp, folder):
        taken = 0
        if bsp.pid:
            waited_for(Path(folder, "ahead"))
        for step in range(40):
            if bsp.pid == 0:
                bsp.send(1, np.full(LARGE, step))
                bsp.oblsync(0)
                taken = max(taken, len(bsp._port._neighbours._run_ahead))
                if step == 30:
                    Path(folder, "ahead").touch()
            else:
                bsp.oblsync(1)
                assert int(bsp.move()[-1]) == step
        bsp.sync()
        return taken

    changed(spoil, 2)
    assert run(main, str(tmp_path), nprocs=2) == [6, 0]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_neighbours_without_memory_go_on_through_mpi(changed, rank, monkeypatch):
    """Let one of them fail to make or to open the memory."""

    def spoil(bsp):
        if bsp.pid == rank:

            def fail(*_):
                raise OSError("refused")

            from bsplib.backends.mpi import same_host  # noqa: PLC0415

            same_host.Store.made = same_host.Store.joined = fail

    def main(bsp):
        return has_neighbours(bsp), everything(bsp)

    monkeypatch.setenv(INSIDE, "mpi")
    changed(spoil, 3)
    monkeypatch.setenv(INSIDE, "payloads")
    for nprocs in (3, 3):
        shared, done = zip(*run(main, nprocs=nprocs), strict=True)
        assert not any(shared)
        assert [seen for _, seen in done] == expected(nprocs)


def is_small(program):
    """Tell whether a program has no more processes than the ranks that there are."""
    return program.nprocs <= 4


def stage_more(bsp):
    """Let payloads of more than 4 bytes be staged."""
    from bsplib.transfers import messages  # noqa: PLC0415

    messages.INLINE = 4


@pytest.mark.slow
def test_random_programs_do_with_neighbours_what_the_contract_says(changed):
    for program in filter(is_small, map(program_of, range(SEEDS))):
        changed(stage_more, program.nprocs)
        check(program, "mpi", 0)


@pytest.mark.slow
def test_random_faults_raise_their_errors_with_neighbours(changed):
    for program in filter(is_small, (program_of(seed, Breaker) for seed in range(SEEDS))):
        changed(stage_more, program.nprocs)
        check_fault(program, "mpi", 0)


@pytest.mark.usefixtures("neighbours")
def test_a_run_with_neighbours_is_recorded_with_the_traffic_of_the_simulator(tmp_path):
    check_traffic_of_everything(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("neighbours")
def test_a_sync_of_a_neighbour_against_an_end_is_an_error():
    def main(bsp):
        x = bsp.zeros(LARGE)
        bsp.sync()
        bsp.put(right_of(bsp), x + 1, x)
        bsp.sync()
        if bsp.pid:
            bsp.sync()

    with pytest.raises(SyncMismatchError):
        run(main, nprocs=3)


# -- on two hosts, two processes on each ---------------------------------------------------------


ACROSS = """
import sys
sys.path[:0] = [{root!r}]
import bsplib
from bsplib.backends.table import own_rank
from tests.bsplib.mpi.test_inside import everything
from tests.bsplib.mpi.test_neighbours import has_neighbours, stage_more
from tests.bsplib.random_programs.checks import check, check_fault
from tests.bsplib.random_programs.faults import Breaker
from tests.bsplib.random_programs.seeded import program_of

def main(bsp):
    return has_neighbours(bsp), everything(bsp)

def partitions(bsp):
    seen = []
    for colour in (bsp.pid // 2, bsp.pid % 2, 0):  # inside hosts, across, all
        with bsp.split(colour) as sub:
            x = sub.zeros(100_000)
            values = x + 1 + bsp.pid  # before the sync: after it another process may write x
            sub.sync()
            sub.hpput((sub.pid + 1) % sub.nprocs, values, x)
            sub.sync()
            sub.send((sub.pid + 1) % sub.nprocs, x + sub.pid)
            sub.oblsync(1)
            seen.append((float(x.sum()), float(sub.move().sum()), sub.allreduce(bsp.pid)))
    return seen

def ends(bsp):
    bsp.sync()
    if bsp.pid != 3:
        bsp.sync()

if __name__ == "__main__":
    for nprocs in (3, 4):
        shared, done = zip(*bsplib.run(main, nprocs=nprocs, backend="mpi"))
        print(shared)
        print([seen for _, seen in done])
    print(bsplib.run(partitions, nprocs=4, backend="mpi"))
    count = 0
    for seed in range({seeds}):
        program, faulty = program_of(seed), program_of(seed, Breaker)
        if program.nprocs in (3, 4):
            count += 1
            bsplib.run(stage_more, nprocs=4, backend="mpi")
            try:
                check(program, "mpi", 0)
            except bsplib.TraceError:
                assert own_rank()  # only rank 0 has the trace
            check_fault(faulty, "mpi", 0)
    print(count > 0)
    try:
        bsplib.run(ends, nprocs=4, backend="mpi")
    except bsplib.BspError as error:
        print(type(error).__name__)
    print(bsplib.run(main, nprocs=4, backend="mpi")[3][0])
"""


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_two_processes_on_each_of_two_hosts(mpi, hosts, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(ACROSS.format(root=str(ROOT), seeds=8))
    command = on_ranks_of(hosts, mpi, 2, path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    names = {}
    exec(ACROSS.format(root=str(ROOT), seeds=0), names)  # its functions
    assert done.stdout.splitlines() == [
        "(True, True, False)",
        str(expected(3)),
        "(True, True, True, True)",
        str(expected(4)),
        str(bsplib.run(names["partitions"], nprocs=4, backend="sim")),
        "True",
        "SyncMismatchError",
        "True",
    ], done.stderr
