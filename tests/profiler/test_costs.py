from __future__ import annotations

import numpy as np
import pytest

from bsplib.profiler.costs import METRICS, h_relation, record_costs, superstep_numbers
from bsplib.profiler.survey import waiting_ns
from bsplib.sync_kinds import Kind


def costs_of(run):
    """Cost by metric, each a list over the records."""
    return dict(zip(METRICS, record_costs(run).tolist(), strict=True))


def test_computation_is_what_neither_calls_nor_sub_groups_took(script):
    program = script(2)
    with program.partition(1, 1) as (left, right):
        program.step("main inner", w=70, group=left)
        program.step("main inner", w=50, group=right)
    program.step("main", w=[10, 40], calls=[3, 5])
    assert costs_of(program.run())["comp"] == [70, 50, 10, 40]


def test_idle_is_from_arrival_to_release_and_communication_the_rest(script):
    program = script(2)
    program.step("main", w=[10, 40], calls=[3, 5], transfer=7)
    costs = costs_of(program.run())
    assert costs["idle"] == [45 - 13, 0]
    assert costs["comm"] == [3 + 7, 5 + 7]


def test_a_put_goes_out_of_the_sender_and_into_the_receiver(script):
    program = script(3)
    program.step("main", puts=[(0, 1, 8), (0, 2, 8), (1, 2, 5)])
    h_out, h_in = h_relation(program.run())
    assert h_out.tolist() == [16, 5, 0]
    assert h_in.tolist() == [0, 8, 13]


def test_a_get_comes_into_the_asker_and_goes_out_of_its_partner(script):
    program = script(3)
    program.step("main", gets=[(0, 1, 8), (0, 2, 8)])
    h_out, h_in = h_relation(program.run())
    assert h_out.tolist() == [16, 0, 0]
    assert h_in.tolist() == [0, 8, 8]


def test_h_of_a_process_is_the_greater_of_in_and_out_and_not_their_sum(script):
    program = script(2)
    program.step("main", puts=[(0, 1, 8), (1, 0, 3)], gets=[(1, 0, 2)])
    assert costs_of(program.run())["h"] == [8, 8]


def test_transfers_to_self_are_no_part_of_h(script):
    program = script(2)
    program.step("main", puts=[(0, 1, 8)])
    run = program.run()
    run.records["self_bytes"] = 1000
    run.records["self_messages"] = 1
    assert costs_of(run)["h"] == [8, 8]


def test_h_is_counted_in_the_superstep_of_the_partner_with_the_same_number(script):
    program = script(2)
    program.step("main", puts=[(0, 1, 8)], kind=Kind.OBLSYNC, waits=[0, 5])
    program.step("main", puts=[(0, 1, 3)])
    h_out, h_in = h_relation(program.run())
    assert h_out.tolist() == [8, 0, 3, 0]
    assert h_in.tolist() == [0, 8, 0, 3]


def test_h_in_a_sub_group_does_not_reach_the_parents_superstep_of_that_number(script):
    program = script(2)
    with program.partition(2) as (sub,):
        program.step("main inner", group=sub, puts=[(0, 1, 8)])
    program.step("main", puts=[(1, 0, 3)])
    h_out, h_in = h_relation(program.run())
    assert h_out.tolist() == [8, 0, 0, 3]
    assert h_in.tolist() == [0, 8, 3, 0]


def test_traffic_to_a_process_that_broke_off_counts_for_the_asker_alone(script):
    program = script(3)
    program.step(["main", "main", None], puts=[(0, 2, 8), (1, 2, 3)])
    h_out, h_in = h_relation(program.run())
    assert h_out.tolist() == [8, 3]
    assert h_in.tolist() == [0, 0]


def test_supersteps_are_numbered_over_groups_whatever_the_order_of_the_records(script):
    program = script(2)
    with program.partition(1, 1) as (left, right):
        program.step("main", group=left)
        program.step("main", group=right)
    program.step("main")
    program.step("main")
    run = program.run()
    numbers = superstep_numbers(run)
    assert numbers.tolist() == [2, 3, 0, 0, 1, 1]
    shuffled = np.random.default_rng(1).permutation(len(run.records))
    run.records[:] = run.records[shuffled]
    assert superstep_numbers(run).tolist() == numbers[shuffled].tolist()


@pytest.mark.parametrize("nprocs", [1, 4])
def test_a_run_without_records_has_no_costs(script, nprocs):
    assert record_costs(script(nprocs).run()).shape == (4, 0)


# -- more processes than cores ----------------------------------------------------------------


def test_waiting_for_a_core_is_no_computation(script):
    program = script(2)
    program.step("main", w=[90, 50], cpu=[30, 80])
    run = program.run()
    assert costs_of(run)["comp"] == [30, 50]  # never more than passed
    assert waiting_ns(run) == 60 + 0


def test_cpu_time_of_the_computation_has_no_part_in_calls(script):
    program = script(2)
    program.step("main", w=[60, 60], calls=[20, 0], cpu=[30, 40])
    run = program.run()
    assert costs_of(run)["comp"] == [30, 40]
    assert costs_of(run)["comm"] == [20, 0]
    assert waiting_ns(run) == 30 + 20


def test_a_superstep_of_no_time_has_no_computation(script):
    program = script(1)
    program.step("main", w=0, cpu=[5])
    assert costs_of(program.run())["comp"] == [0]


def test_where_cpu_time_was_not_measured_nobody_knows_of_waiting(script):
    program = script(2)
    program.step("main", w=[90, 50])
    assert waiting_ns(program.run()) is None


def test_waiting_counts_where_it_was_and_not_again_around_a_sub_group(script):
    program = script(2)
    with program.partition(1, 1) as (left, right):
        program.step("main inner", w=70, cpu=[30], group=left)
        program.step("main inner", w=50, cpu=[50], group=right)
    program.step("main", w=[10, 40], cpu=[10, 15])
    run = program.run()
    assert costs_of(run)["comp"] == [30, 50, 10, 15]
    assert waiting_ns(run) == 40 + 25


def test_equal_work_of_sixteen_processes_on_two_cores_is_in_balance(script):
    program = script(16)
    for _ in range(3):
        # Two at a time: what each does takes 1000, and it waits for those before it.
        program.step("main", w=[1000 * (pid // 2 + 1) for pid in range(16)], cpu=[1000] * 16)
    reading = program.reading()
    assert reading.ns("main") == (3000, 3000, 3000)
    assert reading.cost("main").comp.percentages() == (100, 100)
