"""The report as JSON."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import bsplib
from bsplib.profiler.next_run import next_run_s
from bsplib.profiler.profile import Profile
from bsplib.profiler.report.document import document
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from bsplib.tools.cli import main as bsp

HOSTILE = "\x1b[31m\ud800<b>"


def body(bsp, n):
    for _ in range(n):
        bsp.charge(3e-3 if bsp.pid == 2 else 1e-3)
        bsp.put((bsp.pid + 1) % bsp.nprocs, [1.0], bsp.zeros(1))
        bsp.sync()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "two.bsp"
    for n in (1, 5):
        bsplib.run(body, n, nprocs=4, backend="sim", profile=path)
    return path


@pytest.fixture
def ask(trace):
    """Print the report of the trace as JSON, and read it."""

    def run(*options):
        done = CliRunner().invoke(bsp, ["report", "--json", *map(str, options), str(trace)])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return run


def test_the_document_names_its_format_and_version_and_holds_all_runs(ask):
    found = ask()
    assert (found["format"], found["version"]) == ("bsp report", 2)
    assert [run["run"] for run in found["runs"]] == [1, 2]
    assert [run["run"] for run in ask("--run", 2)["runs"]] == [2]


def test_a_run_has_its_verdict_and_its_losses_in_seconds(ask):
    run = ask()["runs"][1]
    assert run["balanced"] is False
    assert (run["nprocs"], run["backend"], run["complete"], run["error"]) == (4, "sim", True, "")
    assert run["loss_s"] == pytest.approx(5 * 1.5e-3)
    assert run["time_s"] == pytest.approx(5 * 3e-3)
    (first, *_), (loss, *_) = run["verdict"], run["losses"]
    assert first["kind"] == loss["kind"] == "fixed"
    assert first["seconds"] == loss["seconds"] == pytest.approx(5 * 1.5e-3)
    assert first["text"].startswith(loss["text"].removesuffix("."))
    spent = run["account"]
    assert sum(spent["run_ns"].values()) == spent["elapsed_ns"] * run["nprocs"]
    assert spent["run_ns"]["imbalance"] == pytest.approx(4 * 5 * 1.5e6)
    assert first["without_s"] == pytest.approx(spent["elapsed_ns"] / 1e9 - 5 * 1.5e-3)
    assert run["verdict_rest"]["text"].startswith("The other ")
    assert "are lost in body (test_report_document.py line 25), by process 2" in first["text"]
    assert loss["pids"] == [2]
    assert loss["chain"] == run["path"]["nodes"]
    assert first["node"] == loss["chain"][-1]


def test_runs_that_repeat_each_other_have_intervals_over_all_of_them(script):
    runs = []
    for number, excess in enumerate((120, 100, 90)):
        program = script(2)
        for _ in range(10):
            program.step("main relax", w=[100, 100 + excess])
        runs.append(program.run(meta={"repeat": [number, 3]}))
    profiles = Profile(Trace(tuple(runs))).runs
    (repeats,) = document(profiles)["repeats"]
    assert (repeats["runs"], repeats["median"]) == ([1, 2, 3], 2)
    assert repeats["elapsed_s"] == pytest.approx([1.9e-6, 2.2e-6])
    assert repeats["account_s"]["imbalance"] == pytest.approx([0.45e-6, 0.6e-6])
    (sentence,) = repeats["verdict"]
    assert sentence["interval_s"] == pytest.approx([0.45e-6, 0.6e-6])
    assert (sentence["found"], sentence["in_most_runs"], sentence["part"]) == (3, True, "imbalance")
    without_s = [run["verdict"][0]["without_s"] for run in document(profiles)["runs"]]
    assert sentence["without_interval_s"] == pytest.approx(next_run_s(without_s))
    alone = document(profiles[:1], among=profiles)
    assert [run["run"] for run in alone["runs"]] == [1]
    assert alone["repeats"] == [repeats]


def test_texts_from_a_trace_are_made_safe(script):
    program = script(1)
    program.step(f"main {HOSTILE}", w=1)
    run = program.run(meta={"program": HOSTILE, "host": HOSTILE, "machine": {"name": HOSTILE}})
    text = json.dumps(document(Profile(Trace((run,))).runs), ensure_ascii=False)
    assert text.isprintable()
    assert r"\\x1b[31m\\ud800<b>" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--speed", "2x"], "it needs --machine"),
        (["--machine", "nowhere"], "there is no Machine 'nowhere'"),
        (["--node", "nothing"], "no node is called 'nothing'"),
        (["--sort", "size"], "'size' is not one of 'loss', 'time', "),
        (["--top", "-1"], "-1 is not in the range x>=0"),
        (["--metric", "red"], "'red' is no metric; choose one of loss, sync, "),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_cannot_be_printed_is_one_sentence_and_nothing_else(trace, options, words, form):
    done = CliRunner().invoke(bsp, ["report", *form, *options, str(trace)])
    assert done.exit_code in {1, 2}
    assert done.stdout == ""
    assert words in done.stderr


def test_zero_rows_means_all(script, tmp_path):
    program = script(1)
    for number in range(60):
        program.step(f"main stage_{number}:{number}", w=1)
    path = tmp_path / "many.bsp"
    write_trace(path, Trace((program.run(),)))
    texts = [
        CliRunner().invoke(bsp, ["report", *options, str(path)]).stdout
        for options in ([], ["--top", "0"], ["--top", "7"])
    ]
    assert [text.count("stage_") > 50 for text in texts] == [False, True, False]
    assert "and 81 more nodes" in texts[0]
    assert "more node" not in texts[1]
    assert "and 114 more nodes" in texts[2]
