"""The course of a run in the Trace Event Format, checked against the rules of its document."""

import json

import pytest

from bsplib.profiler import format as fmt

REQUIRED = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
    "M": {"name", "ph", "pid", "args"},
    "C": {"name", "ph", "ts", "pid", "args"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
}
"""Fields that an event of each phase has to have."""


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


def test_phases_are_divided_evenly_among_what_is_before_and_after_sub_groups(script, exported):
    made = script(1)
    made.clock = [3000]
    with made.partition(1) as (inner,):
        made.step("main part", w=[500], group=inner)
    made.step("main", w=[1000], calls=[4000])
    events = slices(read(exported(made.run())), "phase")
    assert [(event["name"], *span(event)) for event in events] == [
        ("computation", 0, 1500),
        ("communication", 1500, 3000),
        ("computation", 3500, 6000),
        ("communication", 6000, 8500),
        ("computation", 3000, 3500),
    ]


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


def test_hostile_names_are_strings(hostile):
    names = {e["name"] for e in slices(read(hostile), "superstep")}
    leaves = [node for node in hostile.nodes.values() if node.kind == "cost_centre"]
    assert names == {fmt.label(node) for node in leaves}
