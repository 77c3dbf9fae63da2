"""What is joined of files that are damaged, cut short or missing, or that were made at random."""

from __future__ import annotations

import contextlib
import json
import random

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bsplib.errors import TraceError
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.models.replay import measured
from bsplib.profiler.timeline import Timeline
from bsplib.record import events as ev
from bsplib.record.join import join
from bsplib.recording.trace import read_trace, write_trace
from bsplib.tools.cli import recover
from tests.drawn import examples
from tests.processes import run_python
from tests.record.made_ranks import RankMaker, written


def barriers(nprocs, count=3):
    makers = [RankMaker(rank, nprocs) for rank in range(nprocs)]
    for maker in makers:
        for step in range(count):
            maker.call("Barrier", 10 * step + 5, 10 * step + 9, line=13)
    return makers


# -- at random ------------------------------------------------------------------------------------

_COLLECTIVES = (
    *("Barrier", "Bcast", "Reduce", "Gather", "Scatter", "Allgather", "Alltoall", "Scan"),
    *("Win_fence", "Comm_split", "Reduce_scatter", "Allreduce"),
)


class _AnyCalls:
    """Makes calls of one rank that need not fit to those of any other."""

    def __init__(self, chance: random.Random, rank: int, nprocs: int) -> None:
        self._chance = chance
        self._rank = rank
        self.maker = RankMaker(rank, nprocs, begin=1_000_000 + chance.randrange(100_000))
        half = [pid for pid in range(nprocs) if pid % 2 == rank % 2]
        self._sizes = {0: nprocs, 2: nprocs, 3: len(half), 4: len(half)}
        self.maker.communicator(2, tuple(range(nprocs)), ordinal=2)
        self.maker.communicator(3, tuple(half), ordinal=3)
        self.maker.communicator(4, tuple(half), parent=3, ordinal=0)
        self._pending = []

    def call(self):
        chance = self._chance
        enter = self.maker.now + chance.randrange(200)
        leave = enter + chance.randrange(200)
        comm = chance.choice([0, 0, 0, 2, 3, 4])
        who = chance.randrange(self._sizes[comm])
        read = (chance.randrange(10**6),) * 4 if chance.random() < 0.1 else (ev.NOT_READ,) * 4
        make = chance.choice([self._send, self._receive, self._request, self._wait, self._other])
        make(enter, leave, who, {"line": chance.randrange(1, 9), "comm": comm, "cpu": read})

    def _send(self, enter, leave, who, more):
        tag, out = self._chance.randrange(2), self._chance.randrange(100)
        name = self._chance.choice(["Send", "Ssend", "Sendrecv"])
        done = [(0, self._chance.randrange(who + 1), 0, 7)] if name == "Sendrecv" else []
        self.maker.call(name, enter, leave, partner=who, tag=tag, out=out, done=done, **more)

    def _receive(self, enter, leave, who, more):
        if self._chance.random() < 0.5:
            self.maker.call("Recv", enter, leave, partner=who, tag=0, **more)
        else:
            done = [(0, who, self._chance.randrange(2), 5)]
            self.maker.call("Recv", enter, leave, partner=ev.ANY_SOURCE, done=done, **more)

    def _request(self, enter, leave, who, more):
        name = self._chance.choice(["Isend", "Irecv", "Iallreduce", "Ibarrier"])
        request = self.maker.start(name, enter, leave, partner=who, out=9, into=9, **more)
        self._pending.append((request, who if name == "Irecv" else ev.NOBODY, 0, 9))

    def _wait(self, enter, leave, _, more):
        count = self._chance.randrange(len(self._pending) + 1)
        done, self._pending = self._pending[:count], self._pending[count:]
        self.maker.call("Waitall", enter, leave, done=done, **more | {"comm": ev.UNKNOWN})

    def _other(self, enter, leave, who, more):
        names = (*_COLLECTIVES, "Probe", "Iprobe", "Put", "Get", "File_write", "Comm_free")
        root = self._chance.choice([who, 0])
        name = self._chance.choice(names)
        self.maker.call(name, enter, leave, partner=root, out=16, into=16, **more)


def any_calls(seed):
    chance = random.Random(seed)
    nprocs = chance.choice([1, 2, 3, 4])
    ranks = [_AnyCalls(chance, rank, nprocs) for rank in range(nprocs)]
    for rank in ranks:
        for _ in range(chance.randrange(40)):
            rank.call()
    return [rank.maker for rank in ranks]


@pytest.mark.lengthy
@given(st.integers(0, 2**32))
@examples(15)
def test_of_any_calls_each_second_is_accounted_for_once(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("any")
    trace = join(written(folder / "out.ranks", any_calls(seed)))
    write_trace(folder / "out.bsp", trace)
    run = read_trace(folder / "out.bsp").runs[0]
    graph = book_graph(build(run))
    whole = graph.book.whole()
    assert sum(whole.values()) == graph.book.elapsed_ns * run.nprocs
    assert min(whole.values()) >= 0
    assert str(graph.verdict())
    assert measured(Timeline(run)).total_s >= 0


@pytest.mark.lengthy
@given(st.integers(0, 2**32))
@examples(20)
def test_a_damaged_file_gives_a_trace_or_a_trace_error(tmp_path_factory, seed):
    chance = random.Random(seed)
    folder = written(tmp_path_factory.mktemp("damaged") / "out.ranks", any_calls(seed))
    path = chance.choice(sorted(folder.iterdir()))
    content = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 6)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content[: chance.choice([len(content), chance.randrange(len(content))])])
    try:
        trace = join(folder)
        write_trace(folder / "out.bsp", trace)
    except TraceError:
        pass


def replaced_lines(path, replace):
    """Replace the lines of a file of a rank: what they say, or their text."""
    data = path.read_bytes()
    changed = bytearray(data[: ev.HEAD.size])
    for kind, content in ev._chunks(data):
        new = content
        if kind == ev.LINES:
            texts = [replace(json.loads(text)) for text in content.splitlines()]
            new = b"".join(
                (text if isinstance(text, bytes) else json.dumps(text).encode()) + b"\n"
                for text in texts
            )
        changed += ev.CHUNK_HEAD.pack(ev.CHUNK_MARK, kind, len(new), len(new)) + new
    path.write_bytes(changed)


_HOSTILE = (
    *(None, -1, 0, 2**31, 2**40, 2**70, 1e308, float("inf"), float("nan"), True),
    *("x", "", "\ud800", [], {}, [1], [[1]], [-5], [2**40]),
)


def _spoiled(chance, value):
    """Return a value with one part of it replaced by what it should not be."""
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return [*value[:at], _spoiled(chance, value[at]), *value[at + 1 :]]
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        rest = {name: each for name, each in value.items() if name != key}
        return rest if chance.random() < 0.2 else {**rest, key: _spoiled(chance, value[key])}
    return chance.choice(_HOSTILE)


@pytest.mark.lengthy
@given(st.integers(0, 2**32))
@examples(40)
def test_hostile_lines_give_a_trace_or_a_trace_error(tmp_path_factory, seed):
    chance = random.Random(seed)
    folder = written(tmp_path_factory.mktemp("hostile") / "out.ranks", any_calls(seed))
    path = chance.choice(sorted(folder.iterdir()))
    replaced_lines(path, lambda each: _spoiled(chance, each) if chance.random() < 0.3 else each)
    with contextlib.suppress(TraceError):
        join(folder)


# -- partial records ------------------------------------------------------------------------------


def test_an_absent_rank_is_named_and_the_others_are_there(tmp_path):
    folder = written(tmp_path / "out.ranks", barriers(3))
    (folder / ev.file_name(1)).unlink()
    run = join(folder).runs[0]
    assert not run.complete
    assert run.absent == (1,)
    assert "process 1 are missing" in run.meta["error"]
    assert set(run.records["pid"].tolist()) == {0, 2}
    write_trace(tmp_path / "out.bsp", join(folder))


# -- errors ---------------------------------------------------------------------------------------


def test_files_of_two_runs_are_refused(tmp_path):
    makers = barriers(2)
    makers[1].header["run"] = "another"
    with pytest.raises(TraceError, match="files of different runs"):
        join(written(tmp_path / "out.ranks", makers))


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        ("call", 60000, "a call that MPI does not have"),
        ("stack", 50, "a stack that is not there"),
        ("bytes_out", -1, "an impossible size"),
        ("leave", 5, "a call that ends before it begins"),
        ("cpu", -7, "a negative time of a core"),
    ],
)
def test_numbers_that_cannot_be_true_are_refused(tmp_path, column, value, fault):
    makers = barriers(2)
    makers[1].rows[2][column] = value
    with pytest.raises(TraceError, match=f"rank 1 has in row 2 {fault}"):
        join(written(tmp_path / "out.ranks", makers))


@pytest.mark.lengthy
def test_the_command_writes_a_trace_and_says_what_is_wrong_in_one_sentence(tmp_path):
    folder = written(tmp_path / "out.ranks", barriers(2))
    made = joined_by_command(folder, tmp_path / "out.bsp")
    assert (made.returncode, made.stderr) == (0, "")
    assert read_trace(tmp_path / "out.bsp").runs[0].nprocs == 2
    failed = joined_by_command(tmp_path, tmp_path / "x.bsp")
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert "has no files of ranks" in failed.stderr


def joined_by_command(folder, out):
    return run_python("-m", "bsplib.record.join", folder, out)


def test_recover_makes_the_trace_of_ranks_and_removes_their_folder(tmp_path):
    folder = written(tmp_path / "out.bsp.ranks", barriers(2))
    done = CliRunner().invoke(recover.command, [str(folder)])
    assert done.exit_code == 0, done.output
    assert "2 processes, 4 supersteps" in done.output
    assert read_trace(tmp_path / "out.bsp").runs[0].nprocs == 2
    assert not folder.exists()
