"""While a program runs, its records become chunks; none is lost, and none is there twice."""

from __future__ import annotations

import importlib
import os
import shutil
import signal

import numpy as np
import pytest

from bsplib.errors import TraceError
from bsplib.recording import spool as spooling
from bsplib.recording.collect import collect
from bsplib.recording.packing import StoredTable, chunks_in, packed
from bsplib.recording.records import (
    FROM_SYSTEM,
    NOT_MEASURED,
    RECORD,
    SAMPLE,
    TRAFFIC,
    UNMEASURED,
    Doing,
    Frame,
    root_group,
)
from bsplib.recording.spool import HEADER, Spool
from bsplib.recording.tables import ROWS
from bsplib.sync_kinds import Kind
from tests.scripted import append_row

# -- the chunks themselves -----------------------------------------------------------------------


def random_rows(rng, dtype, count):
    """Rows of any numbers, most of them small."""
    rows = np.zeros(count, dtype)
    for name in dtype.names:
        info = np.iinfo(dtype[name])
        most = int(info.max) if rng.random() < 0.3 else 100
        least = max(-most, int(info.min)) if rng.random() < 0.5 else 0
        rows[name] = rng.integers(least, most, count, endpoint=True, dtype=np.int64)
        if rng.random() < 0.3:
            rows[name] = rows[name][0]
    return rows


@pytest.mark.parametrize("dtype", [RECORD, TRAFFIC, SAMPLE], ids=["records", "traffic", "samples"])
def test_any_rows_are_read_from_their_chunk_as_they_were(dtype):
    rng = np.random.default_rng(1)
    for _ in range(100):
        rows = random_rows(rng, dtype, int(rng.integers(1, 50)))
        assert np.array_equal(StoredTable(dtype, [*chunks_in(packed(rows))]).whole(), rows)


def test_rows_of_one_process_are_short():
    rng = np.random.default_rng(1)
    rows = np.zeros(ROWS, RECORD)
    rows["superstep"] = np.arange(ROWS)
    times = np.cumsum(rng.integers(500, 700, 4 * ROWS)).reshape(-1, 4).T
    rows["start"], rows["arrive"], rows["released"], rows["end"] = times
    for name in FROM_SYSTEM:
        rows[name] = NOT_MEASURED
    rows["comp_cpu"] = rows["arrive"] - rows["start"]
    assert len(packed(rows)) < 6 * ROWS


def test_a_last_chunk_in_part_is_left_out():
    chunk = packed(np.zeros(3, TRAFFIC))
    for length in range(len(chunk)):
        assert len([*chunks_in(chunk + chunk[:length], may_be_cut=True)]) == 1


# -- the files of a process ----------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch):
    """Chunks of eight rows."""
    importlib.import_module("bsplib.recording.recording")  # keeps what it computes from these
    monkeypatch.setattr(spooling, "ROWS_AT_FIRST", 4)
    monkeypatch.setattr(spooling, "CHUNK_ROWS", 8)


def write(folder, count):
    """Record ``count`` supersteps, with a row of traffic in each; leave the files open."""
    spool = Spool(folder, 0)
    spool.define("group", root_group(2).to_json())
    spool.define("stack", (Frame("a.py", "main", 1, 2),))
    for number in range(count):
        rows = spool.records.rows
        append_row(spool.traffic.rows, rows.before + rows.count, 1, 0, number, 1)
        times = (10 * number + 1, 10 * number + 2, 10 * number + 3, 10 * number + 4)
        append_row(rows, 0, 0, number, Kind.SYNC, 0, *times, 0, 0, 0, 0, *UNMEASURED)
    return spool


def collected(folder):
    found = collect([folder, None], complete=False, meta={})
    return found.run


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("count", [0, 1, 4, 7, 8, 9, 16, 17, 40, 100])
def test_records_of_all_chunks_and_of_the_rest_are_collected(tmp_path, count):
    write(tmp_path, count).close()
    run = collected(tmp_path)
    assert run.records["superstep"].tolist() == list(range(count))
    assert run.traffic["record"].tolist() == list(range(count))
    assert run.traffic["bytes"].tolist() == list(range(count))
    assert (tmp_path / "0.records").stat().st_size <= HEADER.size + 8 * RECORD.itemsize


@pytest.mark.usefixtures("short")
def test_a_process_that_is_killed_between_any_two_steps_loses_no_record(tmp_path, monkeypatch):
    """Copies of the files are what a process leaves that is killed at that moment."""
    copies = []

    def keep(*_):
        copy = tmp_path / f"copy-{len(copies)}"
        shutil.copytree(tmp_path / "run", copy)
        copies.append(copy)

    class Word:
        size = 8

        @staticmethod
        def pack_into(*args):
            keep()
            original.pack_into(*args)
            keep()

    original = spooling._WORD
    monkeypatch.setattr(spooling, "_WORD", Word)
    (tmp_path / "run").mkdir()
    write(tmp_path / "run", 17).close()
    assert len(copies) == 16
    counts = [collected(copy).records["superstep"].tolist() for copy in copies]
    assert counts == [list(range(8))] * 8 + [list(range(16))] * 8


@pytest.mark.usefixtures("short")
def test_a_chunk_that_was_written_in_part_is_left_out(tmp_path):
    write(tmp_path, 8).close()
    (tmp_path / "0.records.chunks").write_bytes(packed(np.zeros(8, RECORD))[:-1])
    assert len(collected(tmp_path).records) == 8


def test_rows_that_a_cut_off_file_does_not_have_are_left_out(tmp_path):
    write(tmp_path, 4).close()
    os.truncate(tmp_path / "0.records", HEADER.size + 3 * RECORD.itemsize - 1)
    assert collected(tmp_path).records["superstep"].tolist() == [0, 1]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("damage", [b"", b"damage" * 10, packed(np.zeros(8, RECORD))])
def test_a_damaged_or_missing_chunk_is_an_error(tmp_path, damage):
    write(tmp_path, 20).close()
    (tmp_path / "0.records.chunks").write_bytes(damage)
    with pytest.raises(TraceError, match="records of process 0 are damaged"):
        collected(tmp_path)


@pytest.mark.usefixtures("short")
def test_where_no_chunk_can_be_written_recording_stops_and_rows_are_kept(tmp_path):
    (tmp_path / "0.records.chunks").mkdir()
    write(tmp_path, 20).close()
    shutil.rmtree(tmp_path / "0.records.chunks", ignore_errors=True)
    assert collected(tmp_path).records["superstep"].tolist() == list(range(8))


# -- samples, which are written at the end -------------------------------------------------------

SAMPLED = (Frame("a.py", "main", 1, 5), Frame("a.py", "below", 10, 11))


@pytest.fixture
def interrupted():
    """A function during which a handler of the program raises an OSError, like a full disk's."""

    def handle(*_):
        raise TimeoutError

    earlier = signal.signal(signal.SIGALRM, handle)
    yield lambda *_: signal.raise_signal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, earlier)


@pytest.mark.parametrize(
    "act",
    [
        lambda spool: spool.define("stack", SAMPLED),
        lambda spool: spool.define("samples", [[SAMPLED], [(5, 0, 0, 1, 0)]], is_needed=False),
    ],
)
def test_what_a_handler_raises_while_the_spool_writes_reaches_the_program(
    tmp_path, monkeypatch, interrupted, act
):
    spool = write(tmp_path, 3)
    monkeypatch.setattr(spooling, "append", interrupted)
    with pytest.raises(TimeoutError):
        act(spool)
    spool.close()
    assert len(collected(tmp_path).records) == 3


@pytest.mark.usefixtures("short")
def test_what_a_handler_raises_while_a_table_grows_reaches_the_program(
    tmp_path, monkeypatch, interrupted
):
    spool = write(tmp_path, 4)
    monkeypatch.setattr(os, "posix_fallocate", interrupted)
    with pytest.raises(TimeoutError):
        append_row(spool.traffic.rows, 4, 1, 0, 1, 1)
    spool.close()
    assert len(collected(tmp_path).records) == 4


class Full:
    """A file on a disk without space."""

    tell = staticmethod(int)
    write = staticmethod(lambda _: 0)
    truncate = staticmethod(lambda _: None)


def test_where_samples_cannot_be_written_the_records_are(tmp_path, monkeypatch):
    spool = write(tmp_path, 3)
    with monkeypatch.context() as patch:
        patch.setattr(spool, "_definitions", Full())
        spool.define("samples", [[SAMPLED], [(5, 0, 0, 1, 0)]], is_needed=False)
    spool.close()
    run = collected(tmp_path)
    assert len(run.records) == 3
    assert run.samples is None


@pytest.mark.parametrize("told", ["7", "[[1, 2]]", "[[1e999, 0, 0, 1, 0]]", '[["a", 0, 0, 1, 0]]'])
def test_samples_that_are_none_are_a_sentence(tmp_path, told):
    write(tmp_path, 1).close()
    with (tmp_path / "0.definitions").open("a") as file:
        file.write(f'["samples", [[], {told}]]\n')
    with pytest.raises(TraceError, match="records of process 0 are damaged"):
        collected(tmp_path)


def test_samples_during_a_sync_are_waiting(tmp_path):
    spool = write(tmp_path, 2)
    times = [1, 2, 3, 4, 11, 12, 13, 14]
    spool.define(
        "samples", [[SAMPLED], [(time, 0, Doing.BLOCKED, 1, 0) for time in times]], is_needed=False
    )
    spool.close()
    waiting = collected(tmp_path).samples["doing"] == Doing.WAITING
    assert np.array(times)[waiting].tolist() == [2, 3, 12, 13]
