from __future__ import annotations

import copy
import dataclasses
import json
import os
import pickle
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

from bsplib.backends.members import as_members
from bsplib.directions import Direction
from bsplib.errors import TraceError
from bsplib.recording import tables
from bsplib.recording.chunk_ranges import RecordsOfSamples
from bsplib.recording.packing import HEADER, MAGIC, StoredTable, chunk_of, zstd
from bsplib.recording.records import (
    FROM_SYSTEM,
    MAX_STACK,
    MAX_TEXT,
    RECORD,
    SAMPLE,
    TRAFFIC,
    UNMEASURED,
    WAIT,
    Doing,
    Frame,
    GroupInfo,
    Lifetime,
    Run,
    Trace,
    root_group,
)
from bsplib.recording.trace import read_heads, read_trace, write_archive, write_trace
from bsplib.recording.trace_document import FORMAT_VERSION, MAX_META_NESTING
from bsplib.sync_kinds import Kind

ROOT = [-1, 0, 0, 0, {"first": 0, "count": 2, "step": 1}]
MAIN = Frame("sort.py", "main", 3, 9)
SORT = Frame("größe\udcff [red].py", "Sorter.<lambda>", 20, 31)


@pytest.fixture
def run():
    """Two processes, a superstep each in a sub-group of their own, one together, the end."""
    records = np.array(
        [
            # pid, group, superstep, kind, stack, start..end, calls, sub, to self, from the system
            (0, 1, 0, Kind.SYNC, 1, 10, 20, 20, 25, 3, 0, 8, 1, 5, 2, 3, 5, 0, 1, 2, 3, 4, 2, 9),
            (1, 2, 0, Kind.SYNC, 1, 12, 30, 30, 31, 0, 0, 0, 0, *UNMEASURED),
            (0, 0, 0, Kind.SYNC, 0, 0, 40, 50, 60, 4, 15, 0, 0, *UNMEASURED),
            (1, 0, 0, Kind.OBLSYNC, 0, 0, 50, 50, 60, 0, 19, 0, 0, *UNMEASURED),
            (0, 0, 1, Kind.END, 0, 60, 70, 70, 70, 0, 0, 0, 0, *UNMEASURED),
            (1, 0, 1, Kind.END, 0, 60, 80, 80, 80, 0, 0, 0, 0, *UNMEASURED),
        ],
        RECORD,
    )
    traffic = np.array([(2, 1, Direction.OUT, 16, 1), (3, 0, Direction.IN, 0, 2)], TRAFFIC)
    groups = (
        root_group(2),
        GroupInfo(0, 0, 0, 0, range(1)),
        GroupInfo(0, 0, 0, 1, range(1, 2)),
    )
    meta = {"program": "sort.py", "arguments": [1, 2.5, None, {"deep": ["er"]}], "host": "\x1b[0m"}
    sources = {"sort.py": "0a" * 32}
    lifetime = Lifetime(-90, (-80, -70), (-10, -20), (75, None), 90, None)
    measured = {"cpu": "", "ready": "", "faults": "this system does not count them"}
    samples = np.array([(0, 15, 1, Doing.CALL, 9, 4), (1, 3, 0, Doing.WAITING, 2, 0)], SAMPLE)
    more = {"lifetime": lifetime, "steal_ns": 7, "measured": measured, "samples": samples}
    stacks = (MAIN,), (MAIN, SORT)
    return Run(2, groups, stacks, records, traffic, False, meta, sources, **more)


@pytest.fixture
def path(tmp_path, run):
    """The trace of two runs."""
    path = tmp_path / "sort.trace"
    empty = Run(3, (root_group(3),), (), np.empty(0, RECORD), np.empty(0, TRAFFIC))
    write_trace(path, Trace((run, empty)))
    return path


PLAIN = [
    field.name
    for field in dataclasses.fields(Run)
    if field.name not in ("records", "traffic", "samples", "derived")
]
"""Fields that ``==`` compares."""


def same(one, other):
    """Whether two traces say the same."""
    return len(one.runs) == len(other.runs) and all(
        [getattr(a, name) for name in PLAIN] == [getattr(b, name) for name in PLAIN]
        and np.array_equal(a.records, b.records)
        and np.array_equal(a.traffic, b.traffic)
        and (a.samples is b.samples is None or np.array_equal(a.samples, b.samples))
        for a, b in zip(one.runs, other.runs, strict=True)
    )


def contents(path):
    """The members of a trace, for writing them back changed."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_the_records_of_samples_are_found_while_a_trace_is_checked(path, monkeypatch):
    run = read_trace(path).runs[0]
    monkeypatch.delattr(StoredTable, "read")
    found = RecordsOfSamples.of(run)
    monkeypatch.undo()
    again = RecordsOfSamples.of(dataclasses.replace(run, records=run.records.copy()))
    assert [each.tolist() for each in found] == [each.tolist() for each in again]
    assert all(
        run.records["pid"][record] == pid and run.records["end"][record] > time
        for record, pid, time in zip(
            found.position, run.samples["pid"], run.samples["time"], strict=True
        )
        if record >= 0
    )
    assert (found.position >= 0).any()


def change_document(path, change):
    """Let ``change`` alter the JSON document of a trace in place."""
    members = contents(path)
    document = json.loads(members["trace.json"])
    change(document)
    rewrite(path, members | {"trace.json": json.dumps(document)})


def refused(path, words="."):
    """Assert that a trace is refused, and that these words are said; return all that is said."""
    with pytest.raises(TraceError, match=words) as caught:
        read_trace(path)
    return str(caught.value)


@contextmanager
def allocating_less_than(nbytes):
    """Assert that what is done takes less memory at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < nbytes
    finally:
        tracemalloc.stop()


def test_what_was_written_is_read(path, run):
    trace = read_trace(path)
    assert len(trace.runs) == 2
    assert same(Trace(trace.runs[:1]), Trace((run,)))
    assert trace.runs[0].records.dtype is RECORD
    assert trace.runs[0].traffic.dtype is TRAFFIC
    assert type(trace.runs[0].groups[1]) is GroupInfo
    assert type(trace.runs[0].stacks[1][1]) is Frame
    assert (trace.runs[1].nprocs, trace.runs[1].complete, trace.runs[1].meta) == (3, True, {})


def test_the_heads_of_the_runs_are_read_without_the_records(path, run):
    rewrite(path, contents(path) | {"run-0/records": b"damaged"})
    first, second = read_heads(path)
    for what in ("nprocs", "complete", "meta", "lifetime", "steal_ns", "measured"):
        assert getattr(first, what) == getattr(run, what)
    assert (second.nprocs, second.complete, second.meta) == (3, True, {})
    refused(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda document: document["runs"].append({}), "for 3 runs"),
        (lambda document: document["runs"][1].update(nprocs=0), "run 1: nprocs"),
        (lambda document: document["runs"][0].update(complete=1), "run 0: complete is 1"),
        (lambda document: document["runs"].__setitem__(0, []), r"run 0: its entry is \[\]"),
        (lambda document: document.update(version=99), "has version 99"),
    ],
)
def test_wrong_heads_are_refused(path, change, why):
    change_document(path, change)
    with pytest.raises(TraceError, match=rf"sort\.trace: .*{why}"):
        read_heads(path)


def test_a_trace_without_runs_is_read(tmp_path):
    write_trace(tmp_path / "none.trace", Trace(()))
    assert read_trace(str(tmp_path / "none.trace")) == Trace(())


def test_writing_replaces_a_file_and_leaves_no_other(path, run):
    write_trace(path, Trace(()))
    write_trace(path, Trace((run,)))
    assert same(read_trace(path), Trace((run,)))
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_older_file_and_no_other(path, run):
    before = path.read_bytes()
    for meta in ({"machine": object()}, {"speed": float("nan")}):
        broken = Run(run.nprocs, run.groups, run.stacks, run.records, run.traffic, True, meta)
        with pytest.raises(TraceError, match="was not written: cannot be written as JSON"):
            write_trace(path, Trace((broken,)))
    broken = Run(run.nprocs, run.groups, run.stacks, [1, 2], run.traffic)
    with pytest.raises(AttributeError):
        write_trace(path, Trace((broken,)))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_is_no_trace(tmp_path):
    refused(tmp_path, "cannot be read: Is a directory")


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"PK", b"PK\x05\x06", b"PK\x05\x06" + bytes(18), b"no trace at all\n" * 99],
)
def test_what_is_no_archive_of_a_trace_is_refused(path, content):
    path.write_bytes(content)
    refused(path, r"sort\.trace: ")


def test_a_file_cut_off_at_any_byte_is_refused(path):
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        refused(path)


@pytest.mark.parametrize(
    "version", [0, 3, FORMAT_VERSION + 1, -1, "1", 1.0, True, None, [1], 10**40]
)
def test_another_version_is_refused_and_named(path, version):
    change_document(path, lambda document: document.update(version=version))
    readable = f"this bsplib reads version {FORMAT_VERSION}"
    said = refused(path, readable)
    assert str(version)[:5] in said


def test_another_format_is_refused(path):
    change_document(path, lambda document: document.update(format="zip of holidays"))
    refused(path, "does not declare the format 'bsplib trace'")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 10_000,
        b'{"format": "bsplib trace", "version": 1}',
        b'{"format": "bsplib trace", "version": 1, "runs": [NaN]}',
        b'{"format": "bsplib trace", "version": 1, "runs": [-Infinity]}',
        b'{"format": "bsplib trace", "version": 1, "runs": [1e999]}',
    ],
)
def test_json_that_is_no_document_is_refused(path, text):
    rewrite(path, contents(path) | {"trace.json": text})
    refused(path)


@pytest.mark.parametrize(
    "sources",
    [
        None,
        ["sort.py"],
        {"sort.py": None},
        {"sort.py": "3" * 63},
        {"sort.py": "3" * 64 + "\n"},
        {"sort.py": "g" * 64},
        {"x" * (MAX_TEXT + 1): "3" * 64},
    ],
)
def test_what_is_no_digest_of_a_source_file_is_refused(path, sources):
    change_document(path, lambda document: document["runs"][0].update(sources=sources))
    said = refused(path, r"run 0: source.*, no")
    assert len(said) < 300


@pytest.mark.parametrize("text", ["x" * MAX_TEXT, ""])
def test_names_of_any_allowed_length_are_read(path, text):
    change_document(path, lambda document: document["runs"][0]["frames"][0].__setitem__(0, text))
    assert read_trace(path).runs[0].stacks[0][0].file == text


def test_names_of_absurd_length_are_refused_without_being_repeated(path):
    name = "x" * (MAX_TEXT + 1)
    change_document(path, lambda document: document["runs"][0]["frames"][0].__setitem__(1, name))
    said = refused(path, "frame 0 has the name 'xxx")
    assert len(said) < 300


@pytest.mark.parametrize(("field", "value"), [(0, None), (1, 7), (1, ["x"]), (2, "1"), (4, 1)])
def test_frames_with_values_of_another_kind_are_refused(path, field, value):
    change_document(
        path, lambda document: document["runs"][0]["frames"][0].__setitem__(field, value)
    )
    refused(path, "frame 0 has")


def test_metadata_may_nest_as_deep_as_it_says_and_no_deeper(path):
    def nested(depth):
        return {"a": nested(depth - 1)} if depth else 1

    change_document(
        path, lambda document: document["runs"][0].update(meta=nested(MAX_META_NESTING))
    )
    read_trace(path)
    deeper = nested(MAX_META_NESTING + 1)
    change_document(path, lambda document: document["runs"][0].update(meta=deeper))
    refused(path, "run 0: meta is")


@pytest.mark.parametrize(
    ("groups", "fault"),
    [
        ([], "run 0: the list of groups is empty"),
        ([[0, 0, 0, 0, [0, 1]]], "group 0 is .*, which is no group"),
        ([[-1, 0, 0, 0, [0]]], "group 0 is .*, which is no group"),
        ([[-1, 0, 0, 0, [1, 0]]], "group 0 is .*, which is no group"),
        ([ROOT, [1, 0, 0, 0, [0]]], "group 1 is .*, which is no group"),
        ([ROOT, [2, 0, 0, 0, [0]]], "group 1 is .*, which is no group"),
        ([ROOT, [-1, 0, 0, 0, [0, 1]]], "group 1 is .*, which is no group"),
        ([ROOT, [0, 0, 0, 0, [1]], [1, 0, 0, 0, [0]]], "group 2 is .*, which is no group"),
        ([ROOT, [0, 0, 0, 0]], "group 1 is .* not an array of 5"),
        ([ROOT, [0, 0, 0, True, [0]]], "group 1 has True"),
        ([ROOT, [0, 0, 0, 0, [True]]], "group 1 has True"),
        ([ROOT, [0, 0, 0, 0, [2]]], "group 1 has 2"),
        ([ROOT, [0, 0, 0, 0, []]], "group 1 has the members"),
        ([ROOT, [0, 0, 0, 0, [1, 1]]], "group 1 has the members"),
        ([ROOT, [0, 0, 0, 0, {"first": 1, "count": 2, "step": 1}]], "group 1 has the members"),
        ([ROOT, [0, 0, 0, 0, {"first": 1, "count": 0, "step": 1}]], "group 1 has 0"),
        ([ROOT, [0, 0, 0, 0, {"first": 0, "count": 2, "step": 0}]], "group 1 has the members"),
        ([ROOT, [0, 0, 0, 0, {"first": 0, "count": 2}]], "group 1 has the members"),
    ],
)
def test_groups_that_make_no_tree_are_refused(path, groups, fault):
    change_document(path, lambda document: document["runs"][0].update(groups=groups))
    refused(path, fault)


def test_sub_groups_of_any_processes_are_read(tmp_path):
    evenly = [range(0, 12, 3), range(11, 0, -2), range(5, 6)]
    groups = [root_group(12), *(GroupInfo(0, 0, 0, 0, each) for each in evenly)]
    groups.append(GroupInfo(0, 0, 1, 0, (7, 0, 3)))
    groups.append(GroupInfo(4, 0, 0, 0, (3, 7)[::-1]))
    run = Run(12, tuple(groups), (), np.empty(0, RECORD), np.empty(0, TRAFFIC))
    write_trace(tmp_path / "split.trace", Trace((run,)))
    (found,) = read_trace(tmp_path / "split.trace").runs
    assert [list(group.members) for group in found.groups] == [
        list(group.members) for group in groups
    ]


def test_equal_members_are_equal_however_they_are_given():
    assert as_members([3, 5, 7]) == as_members((3, 5, 7)) == as_members(range(3, 8, 2))
    assert as_members([4]) == range(4, 5)
    assert as_members([2, 0, 1]) == (2, 0, 1)


@pytest.mark.parametrize("stack", [[], [2], [-1], [0.0], ["0"], 0])
def test_stacks_of_no_frames_are_refused(path, stack):
    change_document(path, lambda document: document["runs"][0]["stacks"].append(stack))
    refused(path, "stack 2")


def test_stacks_of_absurd_depth_are_refused(path):
    def deepen(depth):
        return lambda document: document["runs"][0]["stacks"].append([0] * depth)

    change_document(path, deepen(MAX_STACK))
    assert len(read_trace(path).runs[0].stacks[2]) == MAX_STACK
    change_document(path, deepen(20_000))
    refused(path, "stack 3 has 20000 frames, more than 1000")


@pytest.mark.lengthy
def test_many_groups_of_many_processes_take_no_time_for_each_member(path, tmp_path):
    everyone = {"first": 0, "count": 65536, "step": 1}
    row = [0, 0, 0, 0, everyone]

    def widen(document):
        (entry,) = document["runs"] = document["runs"][1:]
        entry.update(nprocs=65536, groups=[[-1, 0, 0, 0, everyone], *[row] * 30_000])

    change_document(path, widen)
    members = contents(path)
    renamed = {
        name.replace("run-1", "run-0"): members[name] for name in members if "run-0" not in name
    }
    rewrite(path, renamed)
    assert len(read_trace(path).runs[0].groups) == 30_001


SIGNED = [name for name in RECORD.names if name not in ("kind", *FROM_SYSTEM)]


REFUSED = {
    "nprocs has": ("", "nprocs", [0, -1, 2**16 + 1, 10**18, 2.0, None]),
    "absent": (
        "meta",
        "absent",
        [1, "0", [0, 0], [-1], [2], [0.5], [True], [0, 1], {"0": 1}, None],
    ),
    "repeat ": ("meta", "repeat", [[0, 0], [2, 2], [-1, 2], [0], 1, "12", [0, 1.0]]),
    "measured ": ("", "measured", [[], {"time": ""}, {"cpu": None}, {"cpu": "x" * 5000}]),
}
"""Values that the document of a run refuses, by the beginning of the sentence and their place."""


@pytest.mark.parametrize(
    ("fault", "value"), [(fault, value) for fault in REFUSED for value in REFUSED[fault][2]]
)
def test_values_that_a_run_cannot_have_are_refused(path, fault, value):
    inside, name, _ = REFUSED[fault]

    def change(document):
        run = document["runs"][0]
        (run[inside] if inside else run)[name] = value

    change_document(path, change)
    refused(path, f"run 0: {fault}")


@pytest.fixture(params=[2, 2**14], ids="blocks of {}".format)
def blocks(request, monkeypatch):
    """Let records be checked in blocks of two rows, too."""
    monkeypatch.setattr(tables, "ROWS", request.param)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    ("row", "field", "value", "fault"),
    [
        *((0, name, -1, f"record 0 has a {name} outside 0") for name in SIGNED),
        (1, "pid", 2, "record 1 has a pid outside 0 .. 1"),
        (1, "group", 3, "record 1 has a group outside 0 .. 2"),
        (1, "group", 1, "record 1 has a process outside its group"),
        (1, "stack", 2, "record 1 has a stack outside 0 .. 1"),
        (1, "kind", 3, "record 1 has a kind outside 0 .. 2"),
        (1, "superstep", 2**53 + 1, "record 1 has a superstep outside"),
        (1, "self_bytes", 2**63 - 1, "record 1 has a self_bytes outside"),
        (2, "start", 41, "record 2 has times that are not in order"),
        (2, "arrive", 51, "record 2 has times that are not in order"),
        (2, "released", 39, "record 2 has times that are not in order"),
        (2, "end", 49, "record 2 has times that are not in order"),
        (2, "comm_calls", 26, "record 2 has more time in calls and sub-groups than it lasts"),
        (2, "sub", 37, "record 2 has more time in calls and sub-groups than it lasts"),
        (4, "end", 71, "record 4 has an end of main that waits"),
        (4, "superstep", 0, "record 4 has a superstep out of order"),
        (0, "end", 61, "record 2 has a end out of order"),
    ],
)  # fmt: skip
def test_records_that_cannot_be_are_refused(path, run, row, field, value, fault):
    run.records[row][field] = value
    write_archive(path, Trace((run,)))
    said = refused(path, fault)
    assert f"'{field}': {value}" in said or "out of order" in fault


class Bomb:
    """Unpickled, it raises what no test expects."""

    def __reduce__(self):
        return exec, ("raise SystemExit('unpickled')",)


def chunk(table, **header):
    """A chunk with some fields of its header changed."""
    payload = header.pop("payload", None) or chunk_of(table).payload
    fields = {"magic": MAGIC, "rows": len(table), "numbering": 0, "nbytes": len(payload), "base": 0}
    return HEADER.pack(*(fields | header).values()) + payload


SIX = np.zeros(6, RECORD)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"BSPC",
        pickle.dumps(Bomb()),
        chunk(SIX, payload=pickle.dumps(Bomb())),
        chunk(SIX[:5]),
        chunk(SIX) + chunk(SIX[:1]),
        chunk(SIX) + b"x",
        chunk(SIX, magic=b"PACK"),
        chunk(SIX, rows=5),
        chunk(SIX, rows=7),
        chunk(SIX, rows=0),
        chunk(SIX, rows=2**32 - 1),
        chunk(SIX, nbytes=2**32 - 1),
        chunk(SIX, nbytes=0),
        chunk(SIX, numbering=1),
        chunk(SIX, base=2**63),
        chunk(np.zeros(6, [(name, np.int64) for name in RECORD.names if name != "pid"])),
        chunk(np.zeros(6, [(name, np.int64) for name in (*RECORD.names, "more")])),
        chunk(SIX, payload=zstd.compress(b"")),
        chunk(SIX, payload=zstd.compress(bytes(10**6))),
        chunk(SIX, payload=zstd.compress(b"\2\0" + bytes(500))),
        chunk(SIX, payload=zstd.compress(b"\0\11" + bytes(500))),
    ],
)
def test_tables_of_another_kind_are_refused(path, content):
    rewrite(path, contents(path) | {"run-0/records": content})
    refused(path, r"run 0: ")


def test_a_number_that_its_field_cannot_hold_is_refused(path):
    wide = SIX.astype([(name, np.int64) for name in RECORD.names])
    wide["kind"] = 256
    rewrite(path, contents(path) | {"run-0/records": chunk(wide)})
    refused(path, "a chunk has a kind that is too great for its field")


def test_a_bomb_in_a_chunk_is_refused_before_it_is_unpacked(path):
    bomb = chunk(SIX, payload=zstd.compress(bytes(10**8)))
    rewrite(path, contents(path) | {"run-0/records": bomb})
    with allocating_less_than(10**6):
        refused(path, "6 rows declares a content of 100000000 bytes")


@pytest.mark.parametrize(("table", "dtype"), [("samples", SAMPLE), ("waits", WAIT)])
def test_a_table_that_is_read_whole_has_few_rows_in_a_byte(path, table, dtype):
    equal = chunk(np.zeros(2**14, dtype)) * 100

    def declare(document):
        document["runs"][0][table] = 100 << 14
        document["runs"][1].update(waits=None)

    rewrite(path, contents(path) | {f"run-0/{table}": equal})
    change_document(path, declare)
    with allocating_less_than(10**6):
        refused(path, rf"run-0/{table} declares 1638400 rows in \d{{4}} bytes")


def test_a_document_of_too_many_values_is_refused_before_it_takes_memory(path):
    text = b'{"format": "bsplib trace", "version": 4, "runs": [' + b"[]," * 2**21 + b"[]]}"
    rewrite(path, contents(path) | {"trace.json": text})
    with allocating_less_than(3 * len(text)):
        refused(path, r"trace.json has some 4\d{6} values, more than 3145728")


@pytest.mark.parametrize("count", [2**50, 10**7])
def test_absurd_lengths_in_the_document_are_refused_without_memory(path, count):
    change_document(path, lambda document: document["runs"][0].update(records=count))
    with allocating_less_than(10**6):
        refused(path, f"declares {count} rows in|and not the {count}")


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "run-7/records", "run-0/", "x\0y"])
def test_members_of_other_names_are_refused(path, name):
    rewrite(path, contents(path) | {name: b"x"})
    before = set(path.parent.rglob("*"))
    refused(path, "has 7 members for 2 runs")
    assert set(path.parent.rglob("*")) == before


def test_members_left_out_are_refused(path):
    members = contents(path)
    for name in members:
        rewrite(path, {other: content for other, content in members.items() if other != name})
        refused(path, f"has no member {name}|has 5 members for 2 runs")


def test_two_members_of_one_name_are_refused(path):
    document = contents(path)["trace.json"]
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("trace.json", document)
    refused(path, "two members of the same name")


@pytest.mark.lengthy
@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_bomb_is_refused_before_it_is_unpacked(path, compression):
    rewrite(path, contents(path) | {"trace.json": b" " * 10**8}, compression)
    assert path.stat().st_size < 10**6
    with allocating_less_than(10**6):
        refused(path, r"'trace\.json' is compressed")


def test_members_that_overlap_in_the_file_are_refused(path):
    # All entries of the directory point at one long member and call it by their own names.
    content = b" " * 100_000
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trace.json", content)
        first = archive.infolist()[0]
        for number in range(100):
            other = copy.copy(first)
            other.filename = f"run-{number}/records"
            archive.filelist.append(other)
    refused(path, "declares 10100000 bytes of content in a file of")


def test_an_encrypted_member_is_refused(path):
    content = path.read_bytes()
    position = content.rindex(b"PK\x01\x02", 0, content.rindex(b"trace.json"))
    flagged = bytearray(content)
    flagged[position + 8] |= 1
    flagged[6] |= 1
    path.write_bytes(flagged)
    refused(path, "no trace, or not a complete one")


def test_reading_takes_memory_for_the_rows_and_little_more(path):
    count = 100_000
    records = np.zeros(count, RECORD)
    records["superstep"] = np.arange(count)
    group = root_group(1)
    write_trace(path, Trace((Run(1, (group,), ((MAIN,),), records, np.empty(0, TRAFFIC)),)))
    with allocating_less_than(records.nbytes + 2**23):
        read_trace(path)


def test_a_damaged_last_piece_of_a_long_array_is_refused(path):
    records = np.zeros(100_000, RECORD)
    records["superstep"] = np.arange(len(records))
    write_trace(path, Trace((Run(1, (root_group(1),), ((MAIN,),), records, np.empty(0, TRAFFIC)),)))
    content = path.read_bytes()
    last = content.index(b"run-0/traffic") - 31  # before the header of the next member
    path.write_bytes(content[:last] + b"\1" + content[last + 1 :])
    refused(path, "Bad CRC-32 for file 'run-0/records'")


def test_an_error_is_one_sentence_with_the_path(path):
    change_document(path, lambda document: document["runs"][0].update(nprocs="many"))
    assert refused(path) == f"{path}: run 0: nprocs has 'many', no whole number in 1 .. 65536."


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"called": None}, "does not say when the run was called"),
        ({"called": 91}, "which are not in order"),
        ({"started": [-9, 0]}, r"\[-9, -10, 75\], which are not in order"),
        ({"started": [-80]}, "started is .*, not an array of 2"),
        ({"returned": 2**53 + 1}, "returned has"),
        ({"finished": [1.5, None]}, "finished has 1.5"),
        ({"more": 1}, "not its moments by name"),
    ],
)
def test_a_lifetime_that_cannot_be_is_refused(path, change, fault):
    change_document(path, lambda document: document["runs"][0]["lifetime"].update(change))
    with pytest.raises(TraceError, match=f"run 0: .*{fault}"):
        read_heads(path)


UNEQUAL = "more {0}_cpu and {0}_ready than the time of that part"
WRONG_ROWS = {
    "traffic row": [
        *(("record", value, "a record outside 0 .. 5") for value in (-1, 6)),
        *((name, 0, "a partner that is not another process") for name in ("record", "partner")),
        *(("partner", value, "a partner outside 0 .. 1") for value in (-1, 2)),
        ("direction", 2, "a direction outside 0 .. 1"),
        *(("bytes", value, "a bytes outside 0") for value in (-1, 2**53 + 1)),
        ("messages", -1, "a messages outside 0"),
    ],
    "record": [
        *(
            (name, value, UNEQUAL.format("comp"))
            for name, value in (("comp_cpu", 6), ("comp_ready", 3))
        ),
        *(
            (name, value, UNEQUAL.format("comm"))
            for name, value in (("comm_cpu", 4), ("comm_ready", 6))
        ),
        ("pickling", 16, "more pickling than it lasts"),
        ("recording", 11, "more recording than there was time before it"),
        *((name, -2, f"a {name} outside -1") for name in FROM_SYSTEM),
    ],
    "sample": [
        *((name, 2, f"a {name} outside 0") for name in ("pid", "stack")),
        ("doing", 5, "a doing outside 0"),
        *((name, -1, f"a {name} outside 0") for name in ("time", "spent")),
    ],
}


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    ("table", "field", "value", "fault"),
    [(table, *wrong) for table, every in WRONG_ROWS.items() for wrong in every],
)
def test_rows_that_cannot_be_are_refused(path, run, table, field, value, fault):
    rows = {"traffic row": run.traffic, "record": run.records, "sample": run.samples}[table]
    rows[0][field] = value
    write_archive(path, Trace((run,)))
    refused(path, f"{table} 0 has {fault}")
