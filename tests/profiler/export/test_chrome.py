"""The course of a run in the Trace Event Format, checked against the rules of its document."""

import json
from collections import defaultdict

import pytest

from bsplib.profiler import format as fmt
from bsplib.profiler.export import chrome
from bsplib.profiler.limits import TooLargeError

REQUIRED = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
    "M": {"name", "ph", "pid", "args"},
    "C": {"name", "ph", "ts", "pid", "args"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
}
"""Fields that an event of each phase has to have."""

WAIT = "idle"


def read(exported):
    return json.loads(exported.text("chrome"))["traceEvents"]


def slices(events, category=None):
    return [e for e in events if e["ph"] == "X" and category in {None, e["cat"]}]


def ns(us):
    return round(1000 * us)


def span(event):
    return ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])


@pytest.fixture(scope="module")
def nested(script, exported):
    """Four processes, in two sub-groups inside their second superstep."""
    made = script(4)
    made.step("main", [5000, 6000, 7000, 8000], transfer=1000, puts=[(0, 1, 8)])
    with made.partition(2, 2) as (left, right):
        made.step("main part", [1000, 3000], transfer=500, group=left, puts=[(1, 0, 40)])
        made.step("main part", [2000, 2000], transfer=500, group=left)
        made.step("main part", [9000, 1000], transfer=500, group=right)
    made.step("main", [4000, 4000, 4000, 4000], calls=[0, 100, 0, 0])
    return exported(made.run())


RUNS = ["broadcast", "hostile", "nested", "empty"]


@pytest.mark.parametrize("name", RUNS)
def test_every_event_has_the_fields_of_its_phase(name, request):
    for event in read(request.getfixturevalue(name)):
        assert set(event) - {"args", "tid"} == REQUIRED[event["ph"]] - {"args", "tid"}
        assert set(event) >= REQUIRED[event["ph"]]
        assert event.get("dur", 0) >= 0
        assert event.get("ts", 0) >= 0


@pytest.mark.parametrize("name", RUNS)
def test_slices_of_a_track_contain_each_other_or_do_not_overlap(name, request):
    tracks = defaultdict(list)
    for event in slices(read(request.getfixturevalue(name))):
        tracks[event["tid"]].append(span(event))
    for spans in tracks.values():
        open_until = []
        for start, end in sorted(spans, key=lambda x: (x[0], -x[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)


def test_every_process_has_a_named_track_in_order(broadcast):
    events = read(broadcast)
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {pid: f"process {pid}" for pid in range(16)}
    order = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
    assert order == {pid: pid for pid in range(16)}
    (program,) = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert program == "bcast.py --size 40000"


@pytest.mark.parametrize("name", ["broadcast", "nested"])
def test_each_superstep_is_one_slice_from_start_to_end(name, request):
    exported = request.getfixturevalue(name)
    found = {
        (e["tid"], e["args"]["group"], e["args"]["superstep"]): (*span(e), e["args"]["node"])
        for e in slices(read(exported), "superstep")
    }
    records = exported.run.records
    leaves = [
        exported.callgraph.origins[o].chain[-1] for o in exported.callgraph.origin_of_records()
    ]
    assert found == {
        (int(r["pid"]), int(r["group"]), int(r["superstep"])): (r["start"], r["end"], leaf)
        for r, leaf in zip(records, leaves, strict=True)
    }


@pytest.mark.parametrize("name", ["broadcast", "nested"])
def test_the_phases_of_each_process_add_up_to_its_costs(name, request):
    exported = request.getfixturevalue(name)
    sums = defaultdict(int)
    for event in slices(read(exported), "phase"):
        sums[event["tid"], event["name"]] += ns(event["dur"])
    whole = exported.costs[exported.callgraph.root]
    for metric, phase in (("comp", "computation"), ("comm", "communication"), ("idle", WAIT)):
        found = [sums[pid, phase] for pid in range(exported.run.nprocs)]
        assert found == [round(1e9 * value) for value in whole[metric].pie]


def test_phases_lie_inside_their_superstep_in_order(broadcast):
    events = slices(read(broadcast))
    inside = None
    for event in events:
        if event["cat"] == "superstep":
            inside, before = span(event), event["ts"]
        else:
            start, end = span(event)
            assert inside[0] <= start <= end <= inside[1]
            assert event["ts"] >= before
            before = event["ts"]


def test_waiting_for_a_core_is_a_phase_of_its_own(script, exported):
    made = script(2)
    made.step("main", [1000, 1000], cpu=[1000, 400])
    found = slices(read(exported(made.run())), "phase")
    assert [(e["tid"], e["name"], ns(e["dur"])) for e in found] == [
        (0, "computation", 1000),
        (1, "computation", 400),
        (1, "waiting for a core", 600),
    ]


def test_the_computation_of_a_superstep_is_around_its_sub_groups(nested):
    mine = [e for e in slices(read(nested)) if e["tid"] == 2]
    sub = [span(e) for e in mine if e["cat"] == "superstep" and e["args"]["group"] > 0]
    (whole,) = [
        span(e)
        for e in mine
        if e["cat"] == "superstep" and e["args"]["group"] == 0 and e["args"]["superstep"] == 1
    ]
    assert all(whole[0] <= start <= end <= whole[1] for start, end in sub)


def test_arguments_of_a_superstep_have_its_bytes(nested):
    found = {
        (e["tid"], e["args"]["group"], e["args"]["superstep"]): e["args"]
        for e in slices(read(nested), "superstep")
    }
    assert (found[0, 0, 0]["h_out_bytes"], found[0, 0, 0]["h_in_bytes"]) == (8, 0)
    assert (found[0, 1, 0]["h_out_bytes"], found[0, 1, 0]["h_in_bytes"]) == (0, 40)
    assert found[0, 0, 0]["sync"] == "sync"


def test_the_counter_shows_the_h_of_supersteps_with_their_sub_groups(nested):
    counts = [e for e in read(nested) if e["ph"] == "C"]
    assert [e["args"] for e in counts] == [
        {"maximum": 8.0, "average": 4.0},
        {"maximum": 40.0, "average": 20.0},
        {"maximum": 0.0, "average": 0.0},
    ]
    assert [ns(e["ts"]) for e in counts] == [0, 9000, nested.run.records["end"].max()]


def test_arrows_lead_from_the_slowest_process_to_the_next_slowest(broadcast):
    events = read(broadcast)
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    steps = sorted({int(step) for step in broadcast.run.records["superstep"]})
    assert starts.keys() == ends.keys() == set(range(len(steps) - 1))
    comp = broadcast.run.records["arrive"] - broadcast.run.records["start"]
    comp = comp - broadcast.run.records["comm_calls"]
    for arrow, step in enumerate(steps[:-1]):
        rows = broadcast.run.records["superstep"] == step
        slowest = broadcast.run.records["pid"][rows][comp[rows].argmax()]
        assert starts[arrow]["tid"] == slowest
        assert ends[arrow]["ts"] >= starts[arrow]["ts"]


@pytest.mark.parametrize("name", ["broadcast", "nested"])
def test_arrows_begin_and_end_inside_a_slice(name, request):
    events = read(request.getfixturevalue(name))
    for arrow in (e for e in events if e["ph"] in {"s", "f"}):
        at = ns(arrow["ts"])
        spans = [span(e) for e in slices(events) if e["tid"] == arrow["tid"]]
        assert any(start <= at < end for start, end in spans)


def test_hostile_names_are_strings(hostile):
    names = {e["name"] for e in slices(read(hostile), "superstep")}
    leaves = [node for node in hostile.nodes.values() if node.kind == "cost_centre"]
    assert names == {fmt.label(node) for node in leaves}


def test_too_many_records_are_refused_with_the_way_out(broadcast, monkeypatch):
    monkeypatch.setattr(chrome, "MOST_RECORDS", 100)
    with pytest.raises(TooLargeError, match=r"more than 100: choose a part with --supersteps A:B"):
        broadcast.bytes("chrome", top=1)


def test_a_part_of_the_supersteps_can_be_chosen(broadcast):
    events = json.loads(broadcast.text("chrome", supersteps=(2, 3)))["traceEvents"]
    assert {e["args"]["superstep"] for e in slices(events, "superstep")} == {2, 3}
