"""The whole profile as JSON, read back by the json module."""

import json

import pytest

from bsplib.profiler import format as fmt
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from tests.commands import run_bsp


def read(exported):
    (run,) = json.loads(exported.text("json"))["runs"]
    return run


def test_of_repeats_the_run_of_median_time_is_written_with_the_intervals_of_all(script, tmp_path):
    runs = []
    for number, excess in enumerate((100, 90, 120)):
        program = script(2)
        program.step("main relax", w=[1000, 1000 + 10 * excess])
        runs.append(program.run(meta={"repeat": [number, 3], "program": "app.py"}))
    write_trace(tmp_path / "r.bsp", Trace(tuple(runs)))
    asked = ["export", str(tmp_path / "r.bsp"), "--out", "-", "--format", "json"]
    done = run_bsp(*asked)
    content = json.loads(done.output)
    assert [run["run"] for run in content["runs"]] == [1]
    assert content["repeats"][0]["runs"] == [1, 2, 3]
    assert content["repeats"][0]["elapsed_s"] == pytest.approx([1.9e-6, 2.2e-6])


def test_hostile_names_are_strings_without_control_characters(hostile):
    names = [entry["name"] for entry in read(hostile)["nodes"]]
    assert sorted(names) == sorted(fmt.visible(node.name) for node in hostile.nodes.values())
    assert all(name.isprintable() for name in names)
