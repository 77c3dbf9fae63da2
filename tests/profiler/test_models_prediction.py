"""Predictions in total and by node, what they are priced by, and bsp predict."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from bsplib.errors import UsageError
from bsplib.machine import Machine, Pattern
from bsplib.profiler.models.prediction import predict
from bsplib.profiler.models.replay import MODELS, replay
from bsplib.profiler.models.report import print_predictions
from bsplib.profiler.prices import ReplayPrices, choose_prices, recognise, recorded_machine
from bsplib.profiler.timeline import Timeline
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from bsplib.sync_kinds import Kind
from tests.commands import printed_by, run_bsp

HERE = Machine("here", "made up", g=1e-9, l=1e-6, speed=2e9)
THERE = Machine("there", "made up", g=4e-9, l=3e-6, speed=5e8, p=16)
BARE = Machine("bare", "made up", g=4e-9, l=3e-6)


@pytest.fixture
def broadcasts(script):
    """Two callers of one function, on two processes."""
    program = script(2)
    for _ in range(2):
        program.step("main foo onestage:9", w=[2000, 0], puts=[(0, 1, 500)], transfer=900)
    program.step("main bar onestage:9", w=[1000, 0], puts=[(0, 1, 500)], transfer=800)
    program.step("main bar twostage:34", w=100, puts=[(1, 0, 50)], transfer=700)
    program.step("main:8", w=[0, 10], kind=Kind.END)
    return program.run(meta={"program": "b.py", "machine": asdict(HERE)})


# -- by node --------------------------------------------------------------------------------


def by_name(prediction, model):
    nodes = prediction.callgraph.graph.nodes(data="node")
    return {node.name: prediction.nodes[model][name] for name, node in nodes}


def test_a_node_has_what_was_spent_under_it(broadcasts):
    nodes = by_name(predict(broadcasts, ReplayPrices(HERE)), "BSP")
    assert {name: round(parts.total_s * 1e9) for name, parts in nodes.items()} == {
        "main": 5100 + 10 + 1550 + 4000,
        "foo": 4000 + 1000 + 2000,
        "onestage": 5000 + 1500 + 3000,
        "app.py line 9": 5000 + 1500 + 3000,
        "bar": 1100 + 550 + 2000,
        "twostage": 100 + 50 + 1000,
        "app.py line 34": 100 + 50 + 1000,
        "app.py line 8": 10,
    }
    parts = nodes["bar"]
    assert [round(s * 1e9) for s in (parts.comp_s, parts.comm_s, parts.sync_s)] == [1100, 550, 2000]


def test_there_is_no_error_on_another_machine_than_the_one_that_was_measured(broadcasts):
    prediction = predict(broadcasts, ReplayPrices(THERE, 4.0))
    assert prediction.is_elsewhere
    assert [prediction.error_percent(model) for model in MODELS] == [None] * 4
    text = printed([prediction])
    assert "error" not in text
    assert "%" not in text


# -- prices -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "said", "sentence"),
    [
        (
            BARE,
            {},
            "machine: bare has no speed (made up, has none); give it as in --speed 3e8 or "
            "--speed 0.5x",
        ),
        (
            THERE,
            {"speed": "fast"},
            "speed: 'fast' is no speed; give flop/s, as in 3e8, or a multiple,",
        ),
        (THERE, {"speed": "0x"}, "speed: '0x' is no speed"),
        (THERE, {"speed": "-1e9"}, "speed: '-1e9' is no speed"),
        (THERE, {"speed": "nan"}, "speed: 'nan' is no speed"),
        (THERE, {"speed": "inf"}, "speed: 'inf' is no speed"),
        (
            THERE,
            {"pattern": "ring"},
            "predict: there is no pattern 'ring'; choose one of auto, none, exchange,",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_one_sentence(broadcasts, machine, said, sentence):
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}"):
        choose_prices(broadcasts, machine, **said)


@pytest.mark.parametrize("values", [None, 3, [], {}, {"name": "m"}, {"name": 1, "g": 2}])
def test_a_trace_may_say_anything_of_its_machine(script, values):
    program = script(1)
    program.step("main")
    run = program.run(meta={"machine": values})
    assert recorded_machine(run) is None
    with pytest.raises(
        UsageError, match="the trace does not name the Machine of the run; give one"
    ):
        choose_prices(run)
    with pytest.raises(UsageError, match="the trace does not have the speed of the computer"):
        choose_prices(run, HERE)


# -- patterns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("puts", "pattern"),
    [
        ([], None),
        ([(0, 1, 8), (1, 0, 8)], "exchange"),
        ([(0, 1, 8), (1, 2, 8), (2, 3, 8), (3, 0, 8)], "exchange"),  # every one sends and gets
        ([(0, 1, 8), (2, 3, 8)], "ping-pong"),
        ([(0, 1, 8), (1, 2, 8)], "ping-pong"),
        ([(1, 0, 8), (1, 2, 8), (1, 3, 8)], "personalised-one-to-all"),
        ([(0, 2, 8), (1, 2, 8), (3, 2, 8)], "all-to-one"),
        ([(i, j, 8) for i in range(4) for j in range(4) if i != j], "all-to-all"),
        ([(0, 1, 8), (0, 2, 8), (3, 1, 8)], "all-to-all"),
    ],
)
def test_the_pattern_of_a_superstep_is_recognised(script, puts, pattern):
    program = script(4)
    program.step("main", puts=puts)
    timeline = Timeline(program.run())
    assert recognise(timeline, timeline.steps[0]) == pattern


def test_g_and_l_of_a_pattern_hold_for_the_models_of_messages(script):
    program = script(2)
    program.step("main", puts=[(0, 1, 100)])
    program.step("main", puts=[(0, 1, 100), (1, 0, 100)])
    program.step("main")
    patterns = {"ping-pong": Pattern(2e-9, 5e-9), "exchange": Pattern(3e-9, 7e-9)}
    machine = Machine("m", "x", g=1e-9, l=1e-9, patterns=patterns)

    def totals(pattern):
        timeline, prices = Timeline(program.run()), ReplayPrices(machine, pattern=pattern)
        return [round(replay(timeline, model, prices).total_s * 1e9) for model in MODELS]

    own = 203
    recognised = 205 + 307 + 1
    assert totals(None) == [own] * 4
    assert totals("auto") == [own, recognised, recognised, recognised]
    assert totals("exchange") == [own] + [2 * 307 + 7] * 3
    with pytest.raises(
        UsageError, match="m has no g and L of all-to-one; it has those of: ping-po"
    ):
        totals("all-to-one")


# -- on the terminal ----------------------------------------------------------------------------


def printed(predictions, **options):
    return printed_by(print_predictions, predictions, **options)


def test_the_tables_have_totals_and_nodes_of_all_models(broadcasts):
    text = printed([predict(broadcasts, ReplayPrices(THERE, 4.0))])
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    assert text.startswith(
        "run 1: b.py, 2 processes, on there, g 32.0 ns per word, l 3.00 µs, computation takes 4 "
        "times as long as recorded, figures measured with 16 processes\n"
    )
    assert ["model", "total", "computation", "communication", "synchronisation"] in lines
    assert ["measured", "8.41 µs", "5.11 µs", "3.30 µs"] in lines
    assert ["BSP", "38.6 µs", "20.4 µs", "6.20 µs", "12.0 µs"] in lines
    assert ["twostage", "800 ns", *["3.60 µs"] * 4] in lines
    names = ["main", "foo", "onestage", "app.py line 9", "bar", "twostage", "app.py line 34"]
    rows = [line[0] for line in lines if len(line) == 6 and line[0] in names]
    assert rows == names


def test_texts_of_a_trace_cannot_command_the_terminal(script):
    program = script(1)
    program.step("main \x1b[31mred")
    values = asdict(HERE) | {"name": "\x1b[2Jwiped [bold]"}
    run = program.run(meta={"program": "\x1b[1m", "machine": values})
    text = printed([predict(run, choose_prices(run))])
    assert "\x1b" not in text
    assert r"\x1b[2Jwiped [bold]" in text


@pytest.fixture
def bsp(broadcasts, tmp_path):
    """Run bsp predict on a trace of two runs."""
    path = tmp_path / "two.bsp"
    write_trace(path, Trace((broadcasts, broadcasts)))

    def run(*arguments):
        done = run_bsp("predict", *arguments, path)
        return done.exit_code, done.output

    return run


def test_the_command_takes_one_run_and_one_model(bsp):
    status, output = bsp("--run", "2", "--model", "obsp", "--model", "BSP")
    assert status == 0, output
    totals = output.partition("function or")[0]
    assert re.findall(r"^run \d|^ \w+\*?(?= +\d+\.\d+ µs +\d)", totals, re.MULTILINE) == [
        "run 2",
        " measured",
        " BSP",
        " OBSP*",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--machine", "abacus"], "machine: there is no Machine 'abacus'"),
        (["--machine", "cray-t3e-mpi"], "machine: Cray T3E, MPI has no speed (Roda et al."),
        (["--machine", "cray-t3e-mpi", "--speed", "1x"], "below zero); give it after its name"),
        (["--run", "3"], "there is no run 3; the trace has runs 1 to 2"),
        (["--model", "logp"], "'logp' is not one of"),
        (
            ["--pattern", "exchange"],
            "machine: here has no g and L of exchange; it has those of: no",
        ),
    ],
)
def test_a_wrong_command_is_one_sentence(bsp, arguments, words):
    status, output = bsp(*arguments)
    assert status != 0
    assert words in " ".join(output.split())
    assert "Traceback" not in output
