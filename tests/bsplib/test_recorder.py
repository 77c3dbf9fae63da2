"""What ``profile=`` writes down, read back from the trace."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib import core
from bsplib.directions import Direction
from bsplib.recording.records import root_group
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind
from tests.processes import run_python
from tests.recordings import record_run

from .neighbours import right


def step(bsp):
    x = bsp.zeros(100)
    bsp.put(right(bsp), np.ones(100), x)
    bsp.sync()


def busy(bsp):
    """A program with everything in it."""
    x = bsp.zeros(10)
    step(bsp)
    bsp.send(right(bsp), b"123")
    got = bsp.get(right(bsp), x[:2])
    bsp.sync()
    list(bsp.messages())
    for _ in range(3):
        bsp.put(right(bsp), 1, x[:1])
        bsp.oblsync(1)
    with bsp.partition([bsp.nprocs // 2, bsp.nprocs]) as sub:
        step(sub)
        with sub.partition(range(1, sub.nprocs + 1)) as inner:
            step(inner)
        step(sub)
    bsp.sync()
    return got.tolist(), x.tolist()


def of(run, pid, group=0):
    """Records of one process in one group, in order."""
    rows = run.records
    return rows[(rows["pid"] == pid) & (rows["group"] == group)]


def traffic(run, pid, superstep, group=0):
    """{(direction, partner): (bytes, messages)} of one record."""
    rows = run.records
    (record,) = np.flatnonzero(
        (rows["pid"] == pid) & (rows["group"] == group) & (rows["superstep"] == superstep)
    )
    mine = run.traffic[run.traffic["record"] == record]
    return {
        (Direction(row["direction"]).name, int(row["partner"])): (
            int(row["bytes"]),
            int(row["messages"]),
        )
        for row in mine
    }


# -- times --------------------------------------------------------------------------------------


def test_a_global_sync_releases_all_at_the_latest_arrival(record, nprocs):
    run = record(busy)
    rows = run.records
    syncs = rows[rows["kind"] == Kind.SYNC]
    together = defaultdict(list)
    for row in syncs:
        together[int(row["group"]), int(row["superstep"])].append(row)
    for (group, _), members in together.items():
        assert len(members) == run.groups[group].size
        assert {int(row["released"]) for row in members} == {
            max(int(row["arrive"]) for row in members)
        }


@pytest.mark.procs(least=2)
def test_an_oblivious_superstep_is_released_by_those_it_waited_for(record):
    def main(bsp):
        if bsp.pid == 0:
            np.sort(np.random.default_rng(1).random(300_000))
            bsp.send(1, 1)
        bsp.oblsync(1 if bsp.pid == 1 else 0)

    run = record(main)
    sender, receiver = of(run, 0)[0], of(run, 1)[0]
    assert receiver["released"] == max(sender["arrive"], receiver["arrive"])
    for pid in [0, *range(2, run.nprocs)]:
        assert of(run, pid)[0]["released"] == of(run, pid)[0]["arrive"]


def test_time_in_primitives_and_in_sub_groups_is_told_apart(record, backend, nprocs):
    def main(bsp):
        with bsp.partition([bsp.nprocs]) as sub:
            for _ in range(20):
                sub.send(right(sub), np.zeros(1000))
                sub.sync()
                sub.move()
        bsp.sync()

    run = record(main)
    for pid in range(nprocs):
        parent, inside = of(run, pid)[0], of(run, pid, 1)
        assert parent["comm_calls"] == 0
        assert parent["sub"] >= inside[-1]["end"] - inside[0]["start"] > 0
        assert (inside["sub"] == 0).all()
        counted = inside["comm_calls"][:-1] > 0
        assert counted.all() if backend != "sim" else not counted.any()  # no virtual time passes


def test_to_leave_a_sub_group_is_a_call_of_its_last_superstep(record, backend, nprocs):
    def main(bsp):
        with bsp.partition([bsp.nprocs]) as sub:
            sub.sync()

    run = record(main)
    for pid in range(nprocs):
        first, last = of(run, pid, 1)
        assert first["comm_calls"] == 0
        assert (last["comm_calls"] > 0) == (backend != "sim")  # no virtual time passes
        assert last["arrive"] - last["start"] >= last["comm_calls"]


# -- what a record says ---------------------------------------------------------------------------


SLEEPS_S = 0.02


class SlowToPickle:
    """A value whose pickling takes a while."""

    def __reduce__(self):
        time.sleep(SLEEPS_S)
        return (int, (1,))


def one_slowly():
    time.sleep(SLEEPS_S)
    return 1


class SlowToUnpickle:
    """A value whose unpickling takes a while."""

    def __reduce__(self):
        return (one_slowly, ())


def slowly_added(x, y):
    time.sleep(SLEEPS_S)
    return x + y


@pytest.mark.real_processes
@pytest.mark.procs(1, 2)
def test_a_collective_is_a_call_from_its_beginning_to_its_end(record, nprocs):
    run = record(lambda bsp: bsp.allgather(SlowToPickle()))
    for pid in range(nprocs):
        assert of(run, pid)[0]["comm_calls"] >= SLEEPS_S * 1e9


@pytest.mark.real_processes
@pytest.mark.procs(1, 2)
def test_pickles_are_measured_where_they_are_made_and_where_they_are_read(record, nprocs):
    def main(bsp):
        bsp.allgather(SlowToPickle())
        bsp.send(bsp.pid, SlowToUnpickle())
        bsp.sync()
        list(bsp.messages())
        bsp.allgather(np.ones(1000))

    run = record(main)
    for pid in range(nprocs):
        gathered, sent, read, _ = of(run, pid)
        # What a collective reads after its sync is in the end of the sync, and not in the calls.
        for each in (gathered, read):
            communicated = each["comm_calls"] + each["end"] - each["released"]
            assert SLEEPS_S * 1e9 <= each["pickling"] <= communicated
        assert sent["pickling"] < SLEEPS_S * 1e9
        assert min(gathered["pickled_bytes"], sent["pickled_bytes"]) > 0 == read["pickled_bytes"]


@pytest.mark.real_processes
@pytest.mark.procs(2)
def test_the_bytes_of_results_are_in_the_trace(record):
    meta = record(lambda _: np.zeros(100_000)).meta
    assert 1_600_000 <= meta["result_bytes"] < 1_700_000


@pytest.mark.procs(2)
def test_arrays_and_numbers_need_no_pickles(record):
    def main(bsp):
        bsp.allgather(np.ones(1000))
        bsp.allreduce(1.5)
        bsp.send(0, np.ones(10))
        bsp.send(0, b"bytes", tag=1)
        bsp.sync()
        list(bsp.messages())

    records = record(main).records
    assert not records["pickling"].any()
    assert not records["pickled_bytes"].any()


@pytest.mark.real_processes
@pytest.mark.procs(2)
def test_a_superstep_that_a_collective_ends_ends_with_it(record, nprocs):
    def main(bsp):
        bsp.allgather(SlowToUnpickle())
        bsp.sync()

    run = record(main)
    for pid in range(nprocs):
        first, second, _ = of(run, pid)
        assert first["end"] - first["released"] >= SLEEPS_S * 1e9
        assert second["start"] >= first["end"]


@pytest.mark.real_processes
@pytest.mark.procs(2)
def test_what_a_collective_combines_is_computation(record, nprocs):
    run = record(lambda bsp: bsp.allreduce(1, slowly_added))
    for pid in range(nprocs):
        computed = [rows["arrive"] - rows["start"] - rows["comm_calls"] for rows in of(run, pid)]
        assert sum(computed) >= SLEEPS_S * 1e9


def refused(x, y):
    raise ValueError("not these")


@pytest.mark.real_processes
@pytest.mark.procs(2)
def test_what_follows_a_collective_that_raised_is_computation(record, nprocs):
    def main(bsp):
        for _ in range(2):
            with contextlib.suppress(ValueError), bsp.partition([bsp.nprocs]) as sub:
                sub.allreduce(1, refused)
            time.sleep(SLEEPS_S)
            bsp.sync()

    run = record(main)
    for pid in range(nprocs):
        for rows, kinds in ((of(run, pid), 2), (of(run, pid, 1), 1), (of(run, pid, 2), 1)):
            assert rows["kind"].tolist() == [Kind.SYNC] * kinds + [Kind.END]
            assert (rows["start"][1:] >= rows["end"][:-1]).all()
        computed = of(run, pid)["arrive"] - of(run, pid)["start"] - of(run, pid)["comm_calls"]
        assert (computed - of(run, pid)["sub"])[:2].min() >= SLEEPS_S * 1e9


def test_a_stack_leads_from_main_to_the_function_that_called_sync(record, nprocs):
    run = record(busy)
    mine = of(run, nprocs - 1)
    stack = run.stacks[mine["stack"][0]]
    assert [frame.function for frame in stack] == ["busy", "step"]
    assert {os.path.basename(frame.file) for frame in stack} == {"test_recorder.py"}
    assert [frame.first_line for frame in stack] == [
        busy.__code__.co_firstlineno,
        step.__code__.co_firstlineno,
    ]
    assert [frame.line - frame.first_line for frame in stack] == [3, 3]
    other = run.stacks[mine["stack"][1]]
    assert [(frame.function, frame.line - frame.first_line) for frame in other] == [("busy", 6)]


def test_methods_and_nested_functions_have_qualified_names(record):
    class Solver:
        def solve(self, bsp):
            def inner():
                bsp.sync()

            inner()

    run = record(lambda bsp: Solver().solve(bsp))
    prefix = "test_methods_and_nested_functions_have_qualified_names.<locals>."
    assert [frame.function.removeprefix(prefix) for frame in run.stacks[0]] == [
        "<lambda>",
        "Solver.solve",
        "Solver.solve.<locals>.inner",
    ]


def quiet(bsp):
    return bsp.pid


def test_a_program_without_a_sync_has_its_end_recorded_at_main(record, nprocs):
    run = record(quiet)
    assert run.records["kind"].tolist() == [Kind.END] * nprocs
    (stack,) = run.stacks
    assert [(frame.function, frame.first_line) for frame in stack] == [
        ("quiet", quiet.__code__.co_firstlineno)
    ]
    assert stack[0].line > stack[0].first_line


@pytest.mark.procs(1, 4)
def test_groups_of_partitions_are_recorded(record, nprocs):
    run = record(busy)
    half = nprocs // 2
    root, *others = run.groups
    assert root == root_group(nprocs)
    middle = {group for group in others if group.parent == 0}
    expected = {(0, 5, 0, 1, range(half, nprocs))}
    if half:
        expected.add((0, 5, 0, 0, range(half)))
    assert middle == expected
    singles = [group for group in others if group.parent != 0]
    assert sorted(tuple(group.members) for group in singles) == [(pid,) for pid in range(nprocs)]
    assert {(group.superstep, group.ordinal) for group in singles} == {(1, 0)}
    for group in singles:
        parent = run.groups[group.parent]
        assert parent.members[group.index] == group.members[0]


# -- traffic -----------------------------------------------------------------------------------


@pytest.mark.procs(least=3)
def test_traffic_is_counted_by_partner_in_payload_bytes(record, nprocs):
    def main(bsp):
        x = bsp.zeros(500)
        bsp.sync()
        if bsp.pid == 0:
            bsp.put(1, np.ones(3), x, offset=0)
            bsp.put(1, np.ones(400), x[:400])
            bsp.send(1, b"12345", tag="a tag is no payload")
            bsp.send(2, np.zeros(10, np.int32))
            bsp.get(2, x[:7])
            bsp.get(2, x, np.zeros(300, np.float32), offset=0)
            bsp.get(1, x, at=np.s_[5])
        bsp.sync()

    run = record(main)
    assert traffic(run, 0, 0) == {}
    assert traffic(run, 0, 1) == {
        ("OUT", 1): (5 + 24 + 3200, 3),
        ("OUT", 2): (40, 1),
        ("IN", 2): (56 + 2400, 2),  # as it travels, before it is cast
        ("IN", 1): (8, 1),
    }
    for pid in range(1, nprocs):
        assert traffic(run, pid, 1) == {}


@pytest.mark.procs(2, 3)
def test_a_put_has_its_bytes_wherever_its_values_travel(record, nprocs):
    sizes = [3, 3, 200, 201]  # the longest in a cell, and one more, which goes by the send buffer

    def main(bsp):
        x = bsp.zeros(1000, np.uint8)
        bsp.sync()
        for size in sizes:
            bsp.put(right(bsp), np.ones(size, np.uint8), x, offset=0)
            bsp.sync()

    run = record(main)
    for number, size in enumerate(sizes, 1):
        assert traffic(run, 0, number) == {("OUT", 1): (size, 1)}


def test_an_empty_message_counts_as_a_message_of_no_bytes(record, nprocs):
    def main(bsp):
        bsp.send(right(bsp), b"", tag=1)
        bsp.sync()

    run = record(main)
    if nprocs > 1:
        assert traffic(run, 0, 0) == {("OUT", 1): (0, 1)}
    else:
        assert (of(run, 0)["self_bytes"][0], of(run, 0)["self_messages"][0]) == (0, 1)


@pytest.mark.procs(4, 8)
def test_partners_in_a_sub_group_are_numbered_as_in_the_run(record, nprocs):
    def main(bsp):
        with bsp.partition([2, bsp.nprocs]) as sub:
            sub.send((sub.pid + 1) % sub.nprocs, b"12")
            sub.sync()

    run = record(main)
    groups = {group.members[0]: number for number, group in enumerate(run.groups) if number}
    assert traffic(run, 1, 0, groups[0]) == {("OUT", 0): (2, 1)}
    assert traffic(run, nprocs - 1, 0, groups[2]) == {("OUT", 2): (2, 1)}


# -- the run and its file ----------------------------------------------------------------------


@pytest.mark.procs(2)
def test_runs_of_several_threads_are_all_in_one_trace(tmp_path):
    def main(bsp, number):
        bsp.sync()
        together.wait(30)  # all runs end at the same time
        return number

    def record(number):
        for again in range(2):
            bsplib.run(main, 10 * again + number, nprocs=1, backend="sim", profile=path)

    path, together = tmp_path / "runs.bsp", threading.Barrier(4)
    threads = [threading.Thread(target=record, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [run.meta["parameters"]["number"] for run in read_trace(path).runs]
    assert sorted(found) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert [each.name for each in tmp_path.iterdir()] == ["runs.bsp"]


def test_the_run_of_a_forked_process_is_added_and_not_lost(tmp_path):
    def main(bsp):
        if forks and not os.fork():
            forks.clear()
            bsplib.run(main, nprocs=2, backend="sim", profile=path)
            os._exit(0)
        os.wait() if forks else None
        return bsp.nprocs

    path, forks = tmp_path / "runs.bsp", [True]
    bsplib.run(main, nprocs=1, backend="sim", profile=path)
    assert [run.nprocs for run in read_trace(path).runs] == [2, 1]


@pytest.mark.procs(2)
def test_a_file_of_another_program_is_kept(run, tmp_path):
    path = tmp_path / "file.bsp"
    path.write_text("something else")
    with pytest.raises(bsplib.UsageError, match="exists and is not a trace; name another file"):
        run(quiet, profile=path)
    assert path.read_text() == "something else"


@pytest.mark.procs(2)
def test_a_relative_path_is_where_the_program_began(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(lambda bsp: os.chdir("/"), profile="file.bsp")
    assert (tmp_path / "file.bsp").exists()


@pytest.mark.procs(2)
def test_the_metadata_say_what_ran(record, backend):
    meta = record(quiet).meta
    assert (meta["main"], meta["backend"]) == ("quiet", backend)
    assert (meta["bsplib"], meta["core"]) == (bsplib.__version__, core.BUILD)
    assert meta["numpy"] == np.__version__
    assert meta["cores"] == len(os.sched_getaffinity(0))
    assert meta["folder"] == os.getcwd()
    assert {"program", "arguments", "started", "host", "system", "python"} <= set(meta)
    assert "error" not in meta


PROGRAM = """
def sync(bsp):
    bsp.sync()

def edit(bsp):
    if bsp.pid == 0:
        with open(__file__, "a") as file:
            file.write("# edited")
        os.utime(__file__, (2**31, 2**31))  # also where the clock of files is coarse
    bsp.sync()
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in a file of its own."""
    (tmp_path / "program.py").write_text(f"import os\n{PROGRAM}")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("program")
    del sys.modules["program"]


@pytest.mark.procs(3)
def test_the_digest_of_each_source_file_of_the_stacks_is_recorded(record, module):
    recorded = record(module.sync)
    content = Path(module.__file__).read_bytes()
    assert recorded.sources == {module.__file__: hashlib.sha256(content).hexdigest()}


@pytest.mark.procs(3)
def test_a_source_file_that_is_edited_during_the_run_has_no_digest(record, module):
    assert record(module.edit).sources == {}


# -- runs that break off -----------------------------------------------------------------------


def crash(run, path, main):
    with pytest.raises((KeyError, bsplib.BspError)) as raised:
        run(main, profile=path)
    (recorded,) = read_trace(path).runs
    assert not recorded.complete
    assert recorded.meta["error"].startswith(f"{raised.type.__name__}: ")
    return recorded


@pytest.mark.procs(2)
def test_an_error_without_a_text_is_recorded_by_its_type(run, tmp_path):
    def main(bsp):
        bsp.sync()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run(main, profile=tmp_path / "run.bsp")
    assert read_trace(tmp_path / "run.bsp").runs[0].meta["error"] == "RuntimeError"


def whole_supersteps(run):
    """{(group, superstep): processes}, which must be all of the group."""
    found = defaultdict(list)
    for row in run.records:
        found[int(row["group"]), int(row["superstep"])].append(int(row["pid"]))
    for (group, _), pids in found.items():
        assert len(pids) == run.groups[group].size
    return found


def test_the_trace_of_a_run_that_raised_ends_with_the_last_whole_superstep(run, tmp_path):
    def main(bsp):
        for number in range(10):
            if number == 6 and bsp.pid == bsp.nprocs - 1:
                {}["missing"]
            step(bsp)

    recorded = crash(run, tmp_path / "file.bsp", main)
    assert sorted(whole_supersteps(recorded)) == [(0, number) for number in range(6)]
    assert (recorded.records["kind"] == Kind.SYNC).all()


@pytest.mark.real_processes
@pytest.mark.procs(1, 3)
def test_the_trace_of_a_run_that_was_killed_ends_with_the_last_whole_superstep(run, tmp_path):
    def main(bsp):
        for number in range(2000):
            if number == 1500 and bsp.pid == bsp.nprocs - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            bsp.send(right(bsp), b"12")
            bsp.sync()

    recorded = crash(run, tmp_path / "file.bsp", main)
    assert sorted(whole_supersteps(recorded)) == [(0, number) for number in range(1500)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.bsp"]


@pytest.mark.procs(4)
def test_a_run_that_broke_off_in_a_sub_group_keeps_what_was_whole(run, tmp_path):
    def main(bsp):
        bsp.sync()
        with bsp.partition([2, 4]) as sub:
            for number in range(5):
                if number == 3 and bsp.pid == 1:
                    {}["missing"]
                sub.sync()
        bsp.sync()

    recorded = crash(run, tmp_path / "file.bsp", main)
    whole = whole_supersteps(recorded)
    first = [group.members for group in recorded.groups].index(range(2))
    assert (0, 0) in whole
    assert (0, 1) not in whole
    assert {superstep for group, superstep in whole if group == first} >= {0, 1, 2}


@pytest.mark.lengthy
def test_a_package_that_is_run_is_recorded_by_its_name_and_not_as_main(tmp_path):
    package = tmp_path / "halo"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import bsplib\n\ndef main(bsp):\n    bsp.sync()\n\nif __name__ == '__main__':\n"
        "    bsplib.run(main, nprocs=2, backend='sim', profile='halo.bsp')\n"
    )
    for called in (["-m", "halo"], ["halo"]):
        subprocess.run([sys.executable, *called], cwd=tmp_path, check=True, timeout=60)
        (run,) = read_trace(tmp_path / "halo.bsp").runs
        assert run.meta["program"] == "halo"


@pytest.mark.parametrize("file", ["sort.py", "-c", ""])
def test_a_program_that_is_no_package_is_recorded_by_its_file(tmp_path, monkeypatch, file):
    monkeypatch.setattr(sys, "argv", [file and f"/home/{file}"])
    run = record_run(tmp_path / "a.bsp", step, nprocs=1, backend="sim")
    assert run.meta["program"] == (file or "python")


PREPARED = """
import sys
from bsplib.running.options import Conditions
from bsplib.running.process import run_task
from bsplib.running.task import Task

class Port:
    def align_clocks(self, *, again):
        sys.exit(repr([name for name in NEEDED if name not in sys.modules]))

NEEDED = [f"bsplib.recording.{name}" for name in ("parts", "recorder", "records", "spool")]
assert not any(name in sys.modules for name in NEEDED)
run_task(Task(None, (), {}, None, Conditions(None, records=object())), Port(), print)
"""


@pytest.mark.lengthy
def test_a_process_imports_what_records_before_it_meets_the_others():
    """Else the imports would be a part of its first superstep."""
    done = run_python("-c", PREPARED)
    assert done.stderr.strip() == "[]"
