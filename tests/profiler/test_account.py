"""What the time of a run is booked as, on runs that are defined by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given

from bsplib.errors import TraceError
from bsplib.profiler.account import Account
from bsplib.profiler.book import Book
from bsplib.profiler.rates import Rates, rates_of_run
from bsplib.profiler.window import windows
from bsplib.sync_kinds import Kind
from tests.bsplib.random_programs.checks import record
from tests.bsplib.random_programs.generator import programs as random_programs
from tests.bsplib.random_programs.program import charging_main
from tests.drawn import examples

from .test_book import check

FREE = Rates(g=0.0, l=0.0)
RATES = Rates(g=2e-9, l=30e-9)


def whole(program, rates=FREE):
    """The parts of the account of a script that are not 0."""
    return {name: ns for name, ns in Book(program.run(), rates).whole().items() if ns}


@examples(16, suppress_health_check=list(HealthCheck))
@given(random_programs())
def test_nothing_is_unexplained_on_virtual_processors(program):
    _, run = record(program, "sim", body=charging_main)
    assert check(run, rates_of_run(run)).whole()["unexplained"] == 0


def test_communication_is_bytes_then_uneven_bytes_then_l_then_unexplained(script):
    program = script(2)
    program.step("main", w=10, transfer=100, puts=[(0, 1, 20)])
    program.step("main", w=10, transfer=100)
    # h is 20 in and out of both: 40 of 100 ns, then 30 for l.
    assert whole(program, RATES) == {
        "useful": 40, "transfers": 80, "latency": 120, "unexplained": 200,
    }  # fmt: skip


def test_calls_on_a_core_are_transfers_also_where_they_take_longer_than_g_h(script):
    program = script(2)
    program.step("main", calls=[70, 70], transfer=20, puts=[(0, 1, 20)])
    # Of 90 ns 70 are in calls: more than g h, which is 40. The sync is not longer than l.
    assert whole(program, RATES) == {"transfers": 140, "latency": 40}


def in_states(program, cpu, ready=(0, 0), rates=RATES):
    """The account of a run of two processes with these times in calls and syncs together."""
    run = program.run()
    run.records["comm_cpu"], run.records["comm_ready"] = cpu, ready
    return {part: ns for part, ns in Book(run, rates).whole().items() if ns}


def test_a_process_that_sleeps_in_a_call_is_blocked_and_others_wait_for_that(script):
    program = script(2)
    program.step("main", calls=[60, 0])
    # Process 0 had a core for 20 of the 60 ns in the call. Process 1 waits for it all the time.
    assert in_states(program, cpu=[20, 60]) == {
        "transfers": 20, "blocked": 40 + 40, "transfer_imbalance": 20,
    }  # fmt: skip


def test_sleep_beyond_the_wait_for_the_last_arrival_is_blocked(script):
    program = script(2)
    program.step("main", w=[10, 60], transfer=100)
    # Process 0 was idle for 50 ns, and asleep for 110: it slept for 60 more, of which 30 are l.
    assert in_states(program, cpu=[40, 100]) == {
        "useful": 70, "imbalance": 50, "latency": 60, "blocked": 60, "unexplained": 80,
    }  # fmt: skip


def test_who_left_the_superstep_before_later_since_it_was_blocked_makes_others_wait(script):
    program = script(2)
    program.step("main", w=[10, 10], transfer=20)
    program.step("main", w=[10, 10])
    run = program.run()
    end, start = (run.records[name] for name in ("end", "start"))
    later = np.array([0, 60])
    end[:2] += later
    start[2:] += later
    for name in ("arrive", "released", "end"):
        run.records[name][2:] = 100
    run.records["arrive"][2] = 40
    run.records["comm_cpu"], run.records["comm_ready"] = [20, 20, 60, 0], 0
    account = Book(run, FREE).whole()
    assert (account["blocked"], account["unexplained"]) == (60 + 60, 40)


def test_who_waits_for_a_process_without_a_core_waits_for_the_core(script):
    program = script(2)
    program.step("main", w=[100, 40], cpu=[40, 40])
    assert whole(program) == {"useful": 80, "core": 120}


def waiting(program, **ready):
    """Return the account of a run whose processes were ready in their communication so long."""
    run = program.run()
    run.records["comm_ready"] = 0
    for name, ns in ready.items():
        run.records["comm_ready"][run.records["pid"] == int(name[-1])] = ns
    account = Book(run, RATES)
    return {part: ns for part, ns in account.whole().items() if ns}


def test_time_without_a_core_after_the_release_is_no_latency(script):
    program = script(2)
    program.step("main", w=[10, 10], transfer=100)
    # All are released at once, so that 90 of the 100 ns were without a core.
    assert waiting(program, process0=90, process1=90) == {
        "useful": 20, "latency": 20, "core": 180,
    }  # fmt: skip


def test_an_oblivious_superstep_waits_for_the_process_that_released_it(script):
    program = script(3)
    program.step("main", w=[10, 50, 90], waits=[40, 0, 0], kind=Kind.OBLSYNC)
    (window,) = windows(program.run())
    assert Account(window, FREE).behind[:3].tolist() == [1, 1, 2]
    assert whole(program)["imbalance"] == 40


def test_the_end_of_a_run_that_broke_off_is_what_lies_after_the_records(script):
    program = script(3)
    program.step("main", w=10)
    program.step(["main", "main", None], w=[5, 25, 0], kind=Kind.END)
    assert whole(program) == {"useful": 60, "ends": 45}


def test_records_that_overlap_are_refused(script):
    program = script(2)
    for _ in range(3):
        program.step("main", w=10)
    run = program.run()
    run.records["start"][2:] = 0
    with pytest.raises(TraceError, match="superstep 2 of process 0 in group 0 begins 20 ns before"):
        Book(run, FREE).whole()
