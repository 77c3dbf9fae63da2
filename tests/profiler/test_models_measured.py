"""Replays on a Machine that a probe measured, with totals that were computed by hand."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from bsplib.errors import UsageError
from bsplib.machine import Machine, load_machine
from bsplib.machine.measured import Curve, Measured
from bsplib.profiler import format as fmt
from bsplib.profiler.models.prediction import predict
from bsplib.profiler.models.replay import MODELS, replay
from bsplib.profiler.models.report import print_predictions
from bsplib.profiler.prices import ReplayPrices, choose_prices
from bsplib.profiler.timeline import Timeline
from bsplib.sync_kinds import Kind
from tests.commands import printed_by

NS = 1e-9
THREE = Measured(
    3,
    empty=5 * NS,
    call=10 * NS,
    slowdown=1.5,
    patterns={
        "ping-pong": Curve((0, 100), (10 * NS, 110 * NS)),
        "personalised-one-to-all": Curve((0, 100), (20 * NS, 220 * NS)),
        "all-to-all": Curve((0, 100), (30 * NS, 330 * NS)),
    },
)
PROBED = Machine(
    *("here", "made up", NS, 7 * NS), speed=1e9, host="node7", cores=2, p=3, measured=(THREE,)
)


def times(run, machine=PROBED, pattern="auto"):
    timeline, prices = Timeline(run), ReplayPrices(machine, pattern=pattern)
    return {model: pytest.approx(replay(timeline, model, prices).total_s * 1e9) for model in MODELS}


def alike(value):
    return dict.fromkeys(MODELS, value)


def test_a_superstep_costs_its_pattern_and_size(script):
    program = script(3)
    program.step("main", w=[1, 2, 3], puts=[(0, 1, 50)])  # 60 ns
    program.step("main")  # an empty sync: 5 ns
    assert times(program.run()) == alike(3 + 60 + 5) | {"MPM": 2 + 60 + 5}


def test_the_models_differ_in_whose_bytes_and_calls_they_count(script):
    """Process 0 makes three calls of 10 B to 1; process 2 moves 100 B to 0.

    The pattern of each is ``all-to-all``, with two calls; h is 100 of 0 and 2, 30 of 1.
    """
    program = script(3)
    program.step("main", puts=[(0, 1, 10)] * 3 + [(2, 0, 100), (1, 0, 0)])
    # The greatest of each: h = 100, 3 calls; and of process 0 alone, too.
    assert {name: times(program.run())[name] for name in ("BSP", "OBSP*", "BSPWB")} == (
        dict.fromkeys(("BSP", "OBSP*", "BSPWB"), 330 + 10)
    )


def test_an_oblivious_superstep_is_priced_by_whom_a_process_waits_for(script):
    program = script(3)
    puts = [(0, 1, 50)]
    program.step("main", w=[4, 1, 9], puts=puts, kind=Kind.OBLSYNC, waits=[0, 3, 0])
    found = times(program.run())
    assert found["MPM"] == found["OBSP*"] == 4 + 60
    assert found["BSP"] == 9 + 60


# -- the same host ----------------------------------------------------------------------------


def recorded(script, **meta):
    program = script(3)
    program.step("main", w=[1000, 1000, 1000], puts=[(0, 1, 100)], waits=[0, 0, 0], transfer=50)
    default = asdict(load_machine("shared-memory"))
    known = {"machine": default, "host": "node7", "backend": "shm", "program": "x.py"}
    return program.run(meta=known | meta)


def test_the_machine_of_the_host_of_a_run_needs_no_speed(script):
    prices = choose_prices(recorded(script), PROBED)
    assert (prices.ratio, prices.pattern) == (1, "auto")
    with pytest.raises(UsageError, match="does not have the speed of the computer"):
        choose_prices(recorded(script, host="node8"), PROBED)
    assert choose_prices(recorded(script), PROBED, speed="2x").ratio == 0.5


def test_processes_that_share_cores_take_turns(script):
    """Three processes on two cores: what is recorded is CPU time, without the waits for a core."""
    program = script(3)
    program.step("main", w=[1500] * 3, cpu=[1000] * 3, puts=[(0, 1, 100)], waits=[0, 0, 0])
    default = asdict(load_machine("shared-memory"))
    known = {"machine": default, "host": "node7", "backend": "shm", "cpu_measured": True}
    run = program.run(meta=known)
    prices = choose_prices(run, PROBED)
    assert prices.ratio == 1.5
    prediction = predict(run, prices)
    assert not prediction.is_elsewhere
    assert prediction.totals["BSP"].comp_s == pytest.approx(1500e-9)


def test_the_error_is_that_of_the_totals_in_the_table(script):
    """Also where processes share cores, and where synchronisation is a part of the prediction."""
    program = script(3)
    program.step("main", w=[1500] * 3, cpu=[1000] * 3, puts=[(0, 1, 100)], waits=[0, 70, 70])
    machine = load_machine("shared-memory")
    known = {"machine": asdict(machine), "backend": "shm", "cpu_measured": True}
    run = program.run(meta=known)
    prediction = predict(run, choose_prices(run), ("BSP",))
    assert not prediction.is_elsewhere
    text = printed_by(print_predictions, [prediction])
    took, found = prediction.totals.values()
    assert took.waiting_s
    assert fmt.seconds(took.comp_s + took.waiting_s) in text
    assert fmt.seconds(found.comp_s) in text
    error = 100 * (took.total_s - found.total_s) / took.total_s
    assert prediction.error_percent("BSP") == pytest.approx(error)
    assert f"{error:.1f}%" in text
    elsewhere = predict(run, choose_prices(run, PROBED, speed="2x"), ("BSP",))
    assert elsewhere.error_percent("BSP") is None
