"""The profile for speedscope, checked against the published types of its file format."""

import json

import pytest

from bsplib.profiler import format as fmt

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


def test_the_first_profile_has_the_losses_of_every_node(broadcast):
    losses = read(broadcast)["profiles"][0]
    assert losses["name"] == "losses"
    book = broadcast.request.profile.book()
    for frame, name in enumerate(broadcast.costs):
        expected = 1e9 * book.nodes[name].loss_s
        assert below(losses, frame) == pytest.approx(expected, abs=len(losses["samples"]))


def test_hostile_names_are_strings(hostile):
    names = [frame["name"] for frame in read(hostile)["shared"]["frames"]]
    assert names[: len(hostile.nodes)] == [fmt.label(node) for node in hostile.nodes.values()]
