"""The profile for speedscope, checked against the published types of its file format."""

import json

import pytest

from bsplib.profiler import format as fmt
from bsplib.profiler.export import speedscope
from bsplib.profiler.limits import TooLargeError

UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}


def read(exported):
    return json.loads(exported.text("speedscope"))


def below(profile, frame):
    """The time of a profile in which a frame is on the stack."""
    pairs = zip(profile["samples"], profile["weights"], strict=True)
    return sum(weight for stack, weight in pairs if frame in stack)


@pytest.mark.parametrize("name", ["broadcast", "hostile", "tree", "empty"])
def test_the_file_is_as_the_schema_says(name, request):
    file = read(request.getfixturevalue(name))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    assert isinstance(file["name"], str)
    assert 0 <= file["activeProfileIndex"] < len(file["profiles"])
    assert set(file["shared"]) == {"frames"}
    for frame in file["shared"]["frames"]:
        assert set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame["name"], str)
        assert isinstance(frame.get("file", ""), str)
        assert isinstance(frame.get("line", 0), int)
    frames = range(len(file["shared"]["frames"]))
    for profile in file["profiles"]:
        assert set(profile) == {
            "type",
            "name",
            "unit",
            "startValue",
            "endValue",
            "samples",
            "weights",
        }
        assert profile["type"] == "sampled"
        assert profile["unit"] in UNITS
        assert profile["startValue"] <= profile["endValue"]
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(frame in frames for stack in profile["samples"] for frame in stack)
        assert all(weight > 0 for weight in profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]


def test_each_process_has_a_profile_with_the_time_of_every_node(broadcast):
    _, *profiles = read(broadcast)["profiles"]
    assert [profile["name"] for profile in profiles] == [f"process {pid}" for pid in range(16)]
    phases = len(broadcast.costs)
    for pid in (0, 7):
        for frame, cost in enumerate(broadcast.costs.values()):
            time_s = sum(cost[metric].pie[pid] for metric in ("comp", "comm", "idle"))
            assert below(profiles[pid], frame) == pytest.approx(1e9 * time_s, abs=1)
        whole = broadcast.costs[broadcast.callgraph.root]
        for phase, metric in ((0, "comp"), (2, "comm"), (3, "idle")):
            assert below(profiles[pid], phases + phase) == round(1e9 * whole[metric].pie[pid])


def test_the_time_of_a_process_is_in_the_order_of_its_supersteps(broadcast):
    profile = read(broadcast)["profiles"][1]
    cost_centres = [stack[-2] for stack in profile["samples"]]
    frames = {name: number for number, name in enumerate(broadcast.costs)}
    records = broadcast.run.records
    rows = (records["pid"] == 0).nonzero()[0]
    origins = broadcast.callgraph.origins
    expected = [frames[origins[o].chain[-1]] for o in broadcast.callgraph.origin_of_records()[rows]]
    merged = [a for a, b in zip(cost_centres, [None, *cost_centres], strict=False) if a != b]
    assert merged == [a for a, b in zip(expected, [None, *expected], strict=False) if a != b]


def test_the_first_profile_has_the_losses_of_every_node(broadcast):
    losses = read(broadcast)["profiles"][0]
    assert losses["name"] == "losses"
    book = broadcast.request.book
    for frame, name in enumerate(broadcast.costs):
        expected = 1e9 * book.nodes[name].loss_s
        assert below(losses, frame) == pytest.approx(expected, abs=len(losses["samples"]))


def test_waiting_for_a_core_is_a_frame_of_its_own(script, exported):
    made = script(2)
    made.step("main", [1000, 1000], cpu=[1000, 400])
    file = read(exported(made.run()))
    names = [frame["name"] for frame in file["shared"]["frames"]]
    profile = file["profiles"][2]
    found = {
        names[stack[-1]]: w for stack, w in zip(profile["samples"], profile["weights"], strict=True)
    }
    assert found == {"computation": 400, "waiting for a core": 600}


def test_hostile_names_are_strings(hostile):
    names = [frame["name"] for frame in read(hostile)["shared"]["frames"]]
    assert names[: len(hostile.nodes)] == [fmt.label(node) for node in hostile.nodes.values()]


def test_too_many_samples_are_refused_with_the_way_out(broadcast, monkeypatch):
    monkeypatch.setattr(speedscope, "MOST_SAMPLES", 100)
    with pytest.raises(TooLargeError, match=r"more than 100: choose a part with --supersteps A:B"):
        broadcast.bytes("speedscope", top=1)
