"""A run in many windows says the same as in one, and a window has whole supersteps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler import loss_records, paths, window
from bsplib.profiler.book import Book
from bsplib.profiler.departures import summed_up, thinned
from bsplib.profiler.picture import picture_of
from bsplib.profiler.profile import Profile
from bsplib.profiler.rates import Rates
from bsplib.profiler.report.document import document
from bsplib.profiler.traffic import matrix_of
from bsplib.recording import packing, tables
from bsplib.recording.records import Trace
from bsplib.recording.trace import read_trace, write_trace
from bsplib.sync_kinds import Kind
from tests.drawn import examples
from tests.recordings import record_run

from .test_properties import programs


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_records, "FEW", 2)  # windows cut rows of supersteps
        whole = said(run)
        patch.setattr(tables, "ROWS", rows)
        patch.setattr(window, "ROWS", rows)
        check_same(whole, said(run))


@pytest.mark.lengthy
def test_what_was_long_ago_is_the_root_of_waiting_for_paths_that_never_meet(script, monkeypatch):
    """Two pairs of processes go on alone, and the slower pair was slow in the first half only."""
    program = script(4)
    for name, slow in [("early", 10), ("late", 1)]:
        for _ in range(100):
            waits = [slow - 1, 0, 0, 0]
            program.step(name, [1, slow, 1, 1], waits=waits, kind=Kind.OBLSYNC)
    program.step("main")
    run = program.run()
    for place, name in [(tables, "ROWS"), (window, "ROWS"), (paths, "_MOST_KEPT")]:
        monkeypatch.setattr(place, name, 40)
    sums = Book(run, Rates(0.0, 0.0)).sums
    assert list(sums.losses.values()) == [{1: 3 * 100 * (10 - 1)}]


@examples(15)
@given(st.data(), st.integers(1, 12), st.integers(1, 3))
def test_a_picture_and_traffic_of_many_windows_are_those_of_one(script, data, rows, most_rows):
    run = data.draw(programs(script, one_stack=False)).run()

    def shown():
        picture = picture_of(Book(run, Rates(g=1e-9, l=1e-9)), most_rows=most_rows)
        by_superstep = picture.by_superstep(0, picture.steps.count, 5)
        # Columns of whole bins: inside a bin its amounts are spread evenly.
        by_time = picture.by_time(picture.begin_ns, picture.end_ns, 8)
        points = thinned(summed_up(run, 1e-9, 1e-9).rows())
        matrix = matrix_of(run, run.records["pid"] > 0)
        return [vars(each) for each in (by_superstep, by_time, points, matrix)]

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


def test_records_of_a_trace_are_read_when_they_are_asked_for(tmp_path, script):
    program = script(3)
    program.step("main", w=10, puts=[(0, 1, 8)])
    path = tmp_path / "run.bsp"
    write_trace(path, Trace((program.run(),)))
    (run,) = read_trace(path).runs
    assert isinstance(run.__dict__["records"], packing.StoredTable)
    assert (run.records == program.run().records).all()
    assert isinstance(run.__dict__["records"], np.ndarray)


def positions(run):
    """The positions of the records in all windows."""
    return sorted(np.concatenate([each.position for each in window.windows(run)]).tolist())


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

    run = record_run(path, main, nprocs=4, backend="sim")
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


def test_a_trace_that_is_shown_is_the_one_that_was_read(tmp_path, script):
    program = script(3)
    program.step("main", w=10)
    path = tmp_path / "run.bsp"
    write_trace(path, Trace((program.run(),)))
    (run,) = read_trace(path).runs
    path.write_bytes(b"another file")  # in its place
    assert (run.records == program.run().records).all()
