"""The report as JSON."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import bsplib
from bsplib.profiler.next_run import next_run_s
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import RowChoice
from bsplib.profiler.report.document import document
from bsplib.profiler.report.rows import MOST_ROWS, SORTS
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
    assert "are lost in body (test_report_document.py line 27), by process 2" in first["text"]
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


def test_a_run_names_the_rates_of_its_losses(ask):
    assert ask()["runs"][0]["rates"]["source"] == "ideal"
    rates = ask("--machine", "ideal:g=2e-9,l=1e-5", "--speed", "0.5x")["runs"][0]["rates"]
    assert rates == {
        "g_s_per_byte": 2e-9,
        "l_s_per_superstep": 1e-5,
        "h_rule": "max",
        "computation_ratio": 2.0,
        "source": "ideal",
        "note": "",
    }


def test_nodes_have_costs_by_process_and_edges_name_their_nodes(ask):
    run = ask()["runs"][1]
    nodes = {node["id"]: node for node in run["nodes"]}
    root = nodes[run["root"]]
    assert (root["name"], root["kind"], root["supersteps"]) == ("body", "function", 5)
    assert root["comp_by_process_s"] == pytest.approx([5e-3, 5e-3, 15e-3, 5e-3])
    assert root["comp_max_s"] == pytest.approx(15e-3)
    assert root["comp_avg_s"] == pytest.approx(sum(root["comp_by_process_s"]) / 4)
    assert root["h_by_process_bytes"] == [40, 40, 40, 40]
    (edge,) = [edge for edge in run["edges"] if nodes[edge["callee"]]["sync"] == "sync"]
    assert edge["caller"] == run["root"]
    assert edge["loss_s"] == pytest.approx(run["loss_s"])


def test_choices_of_rows_hold_for_the_document_too(ask):
    nodes = ask("--depth", 0)["runs"][0]["nodes"]
    assert [node["name"] for node in nodes] == ["body"]
    nodes = ask("--sort", "name", "--top", 1)["runs"][1]["nodes"]
    assert [node["name"] for node in nodes] == ["body"]
    run = ask("--metric", "comp-imb", "--top", 1)["runs"][1]
    assert run["path"]["name"] == "comp-imb"
    assert len(run["path"]["nodes"]) == 2
    assert run["edges"] == []


def test_without_a_number_all_nodes_are_listed(script):
    program = script(1)
    for number in range(100):
        program.step(f"main stage_{number}:{number}", w=1)
    (run,) = document(Profile(Trace((program.run(),))).runs)["runs"]
    assert len(run["nodes"]) == 201


def test_of_one_node_its_callers_and_callees_are_listed(script):
    program = script(1)
    program.step("main a shared x:1", w=1)
    program.step("main b shared x:1", w=1)
    entries = Profile(Trace((program.run(),))).runs
    (run,) = document(entries, node="shared")["runs"]
    assert {node["name"] for node in run["nodes"]} == {"a", "b", "shared", "x"}
    (run,) = document(entries, node="shared", choice=RowChoice("name", top=1))["runs"]
    assert {node["name"] for node in run["nodes"]} == {"a"}


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


def test_the_command_has_the_orders_and_the_rows_of_the_report():
    options = {option.name: option for option in bsp.commands["report"].params}
    assert tuple(options["sort"].type.choices) == SORTS
    assert f"[default: {MOST_ROWS};" in options["top"].help


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
