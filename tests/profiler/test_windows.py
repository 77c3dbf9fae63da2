"""A run in many windows says the same as in one, and a window has whole supersteps."""

from __future__ import annotations

import io
import json
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bsplib
from bsplib.console import Console
from bsplib.errors import TraceError
from bsplib.profiler import window
from bsplib.profiler.book import Book
from bsplib.profiler.departures import departures
from bsplib.profiler.picture import picture_of
from bsplib.profiler.profile import Profile
from bsplib.profiler.rates import Rates
from bsplib.profiler.report import print_report
from bsplib.profiler.report.document import document
from bsplib.profiler.traffic import RunTraffic
from bsplib.recording import spool, stored, tables
from bsplib.recording.records import RECORD, Trace
from bsplib.recording.trace import read_trace, write_trace
from tests.drawn import examples

from .test_properties import programs


@pytest.fixture
def short(monkeypatch):
    """Returns a function that sets the rows of chunks and windows."""

    def shorten(rows):
        monkeypatch.setattr(tables, "ROWS", rows)
        monkeypatch.setattr(window, "ROWS", rows)

    return shorten


def said(run):
    """Everything that a report says of a run, but for the order of equal losses."""
    found = document(Profile(Trace((run,))).runs)["runs"][0]
    found["losses"].sort(key=lambda loss: json.dumps(loss, default=str))
    return json.loads(json.dumps(found, default=str))


def check_same(one, other):
    """Check that two reports differ by the rounding of sums of fractions at most."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            check_same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for each in zip(one, other, strict=True):
            check_same(*each)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12)
    else:
        assert one == other


@examples(25)
@given(st.data(), st.integers(1, 12))
def test_a_report_of_many_windows_says_what_one_of_a_single_window_says(script, data, rows):
    run = data.draw(programs(script, one_stack=False)).run()
    whole = said(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS", rows)
        patch.setattr(window, "ROWS", rows)
        check_same(whole, said(run))


@examples(15)
@given(st.data(), st.integers(1, 12), st.integers(1, 3))
def test_a_picture_and_traffic_of_many_windows_are_those_of_one(script, data, rows, most_rows):
    run = data.draw(programs(script, one_stack=False)).run()

    def shown():
        picture = picture_of(Book(run, Rates(g=1e-9, l=1e-9)), most_rows=most_rows)
        by_superstep = picture.by_superstep(0, picture.steps.count, 5)
        by_time = picture.by_time(0, picture.steps.ended_ns, 7)
        points, counts = departures(run, 1e-9, 1e-9).thinned(4)
        pieces = [vars(each) for each in (by_superstep, by_time, points)]
        return [*pieces, counts, vars(RunTraffic(run).matrix(run.records["pid"] > 0))]

    whole = shown()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS", rows)
        patch.setattr(window, "ROWS", rows)
        check_same(plain(whole), plain(shown()))


def plain(value):
    """Return arrays and objects as lists and dictionaries."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tables.Columns):
        return plain(value.fields)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return plain(vars(value))
    return [plain(each) for each in value] if isinstance(value, list) else value


@examples(25)
@given(st.data(), st.integers(1, 12))
def test_each_superstep_is_in_one_window_with_all_its_records_and_traffic(script, data, rows):
    run = data.draw(programs(script, one_stack=False)).run()
    seen, steps, sizes = [], set(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS", rows)
        patch.setattr(window, "ROWS", rows)
        for part in window.windows(run):
            records = part.run.records[part.fresh]
            for name in window.FIELDS:
                assert (records[name] == run.records[name][part.position]).all()
            here = set(zip(records["group"].tolist(), records["superstep"].tolist(), strict=True))
            assert not here & steps
            steps |= here
            seen += part.position.tolist()
            callers = part.run.traffic["record"]
            mine = callers >= part.halo
            expected = np.isin(run.traffic["record"], part.position)
            assert sorted(part.position[callers[mine] - part.halo]) == sorted(
                run.traffic["record"][expected]
            )
            sizes += int(part.run.traffic["bytes"][mine].sum())
    assert sorted(seen) == list(range(len(run.records)))
    assert sizes == run.traffic["bytes"].sum()


def test_the_halo_is_the_last_root_superstep_before_a_window(script, short):
    program = script(2)
    for _ in range(5):
        program.step("main", w=10, puts=[(0, 1, 8)])
    short(4)
    halos = [
        (part.run.records["superstep"][: part.halo].tolist(), part.halo_steps)
        for part in window.windows(program.run())
    ]
    assert halos[0] == ([], 0)
    assert all(steps == 1 and len(set(halo)) == 1 and len(halo) == 2 for halo, steps in halos[1:])


def test_records_of_a_trace_are_read_when_they_are_asked_for(tmp_path, script):
    program = script(3)
    program.step("main", w=10, puts=[(0, 1, 8)])
    path = tmp_path / "run.bsp"
    write_trace(path, Trace((program.run(),)))
    (run,) = read_trace(path).runs
    assert isinstance(run.__dict__["records"], stored.StoredTable)
    assert run.is_fixed
    assert (run.records == program.run().records).all()
    assert isinstance(run.__dict__["records"], np.ndarray)


def positions(run):
    """The positions of the records in all windows."""
    return sorted(np.concatenate([each.position for each in window.windows(run)]).tolist())


def test_windows_are_the_same_after_a_run_was_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "ROWS_AT_FIRST", 2)
    monkeypatch.setattr(spool, "CHUNK_ROWS", 2)
    path = tmp_path / "run.bsp"

    def main(bsp):
        for _ in range(3):
            bsp.sync()

    bsplib.run(main, nprocs=3, profile=path)
    (run,) = read_trace(path).runs
    chunks = len(run.table("records").bounds)
    before = positions(run)
    assert len(run.records) == len(before)
    assert len(run.table("records").bounds) < chunks
    assert positions(run) == before


def test_the_check_of_a_trace_notes_what_its_chunks_cover(tmp_path):
    path = tmp_path / "run.bsp"

    def main(bsp):
        x = bsp.zeros(1)
        bsp.sync()
        for _ in range(20):
            bsp.put(0, [1.0], x)
            bsp.sync()
            with bsp.split(bsp.pid % 2) as group:
                group.sync()

    bsplib.run(main, nprocs=4, backend="sim", profile=path)
    (run,) = read_trace(path).runs
    noted = {name: run.derived[f"ranges of {name}"] for name in ("records", "traffic")}
    run.derived.clear()
    positions(run)  # which finds them again
    for name, (bounds, ranges) in noted.items():
        found_bounds, found = run.derived[f"ranges of {name}"]
        assert bounds == found_bounds == run.table(name).bounds
        assert [each.tolist() for each in ranges] == [each.tolist() for each in found]
    steps = window.root_supersteps(run)
    assert (steps.min(), steps.max()) == (
        noted["records"][1][0].min(),
        noted["records"][1][1].max(),
    )


def test_a_trace_that_was_changed_while_it_is_shown_is_refused(tmp_path, script):
    program = script(3)
    program.step("main", w=10)
    path = tmp_path / "run.bsp"
    write_trace(path, Trace((program.run(),)))
    (run,) = read_trace(path).runs
    content = path.read_bytes()
    at = content.index(b"BSPC") + 30
    with path.open("r+b") as file:  # in its place: a new file would be another one
        file.seek(at)
        file.write(bytes([content[at] ^ 1]))
    with pytest.raises(bsplib.TraceError, match="was changed while it was read"):
        Profile(Trace((run,))).runs[0].verdict()


def test_the_next_window_is_made_while_one_is_looked_at():
    made = threading.Event()

    def make():
        yield "first"
        made.set()
        yield "second"

    found = window.ahead(make())
    assert next(found) == "first"
    assert made.wait(30)
    assert list(found) == ["second"]


def test_what_is_wrong_with_a_window_is_raised_where_it_is_looked_at():
    def make():
        yield "first"
        raise TraceError("the trace is damaged")

    found = window.ahead(make())
    assert next(found) == "first"
    with pytest.raises(TraceError, match="damaged"):
        next(found)


def test_a_column_of_equal_values_takes_the_memory_of_one():
    sevens, eight = (
        tables.Columns({"x": tables.constant(*each)}, each[1]) for each in ((7, 3), (8, 1))
    )
    both = tables.joined([sevens, sevens])["x"]
    assert both.tolist() == [7] * 6
    assert both.strides == (0,)
    assert tables.joined([sevens, eight])["x"].tolist() == [7, 7, 7, 8]


@pytest.mark.parametrize(("w", "times"), [([10, 20], 3), ([20, 20], 2)])
def test_a_report_reads_the_records_again_only_where_something_is_lost(
    tmp_path, script, short, monkeypatch, w, times
):
    program = script(2)
    for _ in range(40):
        program.step("main", w=w, puts=[(0, 1, 8), (1, 0, 8)])
    short(8)
    write_trace(tmp_path / "t.bsp", Trace((program.run(),)))
    (profile,) = bsplib.load(tmp_path / "t.bsp").runs
    reads = Counter()

    def read(table, number, names=None):
        reads[table.dtype == RECORD, number] += 1
        return reader(table, number, names)

    reader = stored.StoredTable.read
    monkeypatch.setattr(stored.StoredTable, "read", read)
    print_report([profile], console=Console(file=io.StringIO()))
    assert reads == {(True, 0): times, (False, 0): times}  # of records, and of traffic
