"""The report as JSON."""

from __future__ import annotations

import json

import pytest

import bsplib
from bsplib.profiler.profile import Profile
from bsplib.profiler.report.document import document
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from tests.commands import run_bsp

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
        done = run_bsp("report", "--json", *options, trace)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return run


def test_the_document_names_its_format_and_version_and_holds_all_runs(ask):
    found = ask()
    assert (found["format"], found["version"]) == ("bsp report", 3)
    assert [run["run"] for run in found["runs"]] == [1, 2]
    assert [run["run"] for run in ask("--run", 2)["runs"]] == [2]


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
    done = run_bsp("report", *form, *options, trace)
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
        run_bsp("report", *options, path).stdout for options in ([], ["--top", "0"], ["--top", "7"])
    ]
    assert [text.count("stage_") > 50 for text in texts] == [False, True, False]
    assert "and 81 more nodes" in texts[0]
    assert "more node" not in texts[1]
    assert "and 114 more nodes" in texts[2]
