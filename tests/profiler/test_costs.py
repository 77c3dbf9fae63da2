from __future__ import annotations

from bsplib.profiler.costs import METRICS, computation_ns, computing_of, h_relation, record_costs
from bsplib.profiler.survey import waiting_ns


def costs_of(run):
    """Cost by metric, each a list over the records."""
    return dict(zip(METRICS, record_costs(run).tolist(), strict=True))


def test_traffic_to_a_process_that_broke_off_counts_for_the_asker_alone(script):
    program = script(3)
    program.step(["main", "main", None], puts=[(0, 2, 8), (1, 2, 3)])
    h_out, h_in = h_relation(program.run())
    assert h_out.tolist() == [8, 3]
    assert h_in.tolist() == [0, 0]


# -- more processes than cores ----------------------------------------------------------------


def test_waiting_counts_where_it_was_and_not_again_around_a_sub_group(script):
    program = script(2)
    with program.partition(1, 1) as (left, right):
        program.step("main inner", w=70, cpu=[30], group=left)
        program.step("main inner", w=50, cpu=[50], group=right)
    program.step("main", w=[10, 40], cpu=[10, 15])
    run = program.run()
    assert costs_of(run)["comp"] == [30, 50, 10, 15]
    assert waiting_ns(run) == 40 + 25


def test_what_waited_for_a_core_is_no_more_than_what_was_no_cpu_time(script):
    program = script(1)
    program.step("main", w=[100], cpu=[80])
    run = program.run()
    run.records["comp_ready"] = 30  # as read; both readings together exceed the time
    parts = computing_of(run.records)
    assert [each.tolist() for each in parts] == [[80], [0], [20]]
    assert computation_ns(run).tolist() == [80.0]
