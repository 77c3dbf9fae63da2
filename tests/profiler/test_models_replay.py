"""The four models on runs written down by hand, and on programs in virtual time."""

from __future__ import annotations

import pytest

from bsplib.machine import Level, Machine
from bsplib.profiler.models.replay import MODELS, measured, replay
from bsplib.profiler.prices import ReplayPrices
from bsplib.profiler.timeline import Timeline
from bsplib.sync_kinds import Kind

OBLSYNC, END = Kind.OBLSYNC, Kind.END


def machine(g_ns=0.0, l_ns=0.0, h="max"):
    return Machine("by hand", "made up", g=g_ns * 1e-9, l=l_ns * 1e-9, h=h)


def times(run, prices):
    """Total of each model in ns, the script's own unit."""
    prices = prices if isinstance(prices, ReplayPrices) else ReplayPrices(prices)
    timeline = Timeline(run)
    return {model: pytest.approx(replay(timeline, model, prices).total_s * 1e9) for model in MODELS}


def alike(value):
    return dict.fromkeys(MODELS, value)


# -- worked examples of the papers --------------------------------------------------------


def test_four_processes_of_roda_et_al_take_10_under_mpm_and_12_under_bspwb(script):
    """Figure 1: exchanges 0-1 and 2-3, then 0-2 and 1-3; communication takes 2."""
    program = script(4)
    pairs = [(0, 1, 8), (1, 0, 8), (2, 3, 8), (3, 2, 8)]
    program.step("main", w=[4, 4, 2, 2], puts=pairs, kind=OBLSYNC, waits=[0] * 4)
    across = [(0, 2, 8), (2, 0, 8), (1, 3, 8), (3, 1, 8)]
    program.step("main", w=[2, 2, 4, 4], puts=across, kind=OBLSYNC, waits=[0] * 4)
    expected = {"BSP": 12, "BSPWB": 12, "MPM": 10, "OBSP*": 10}
    assert times(program.run(), machine(l_ns=2)) == expected


def two_processes(script, first, kind=OBLSYNC):
    program = script(2)
    program.step("main", w=[1, 2], puts=first, kind=kind, waits=[0, 0])
    exchange = [(0, 1, 8), (1, 0, 8)]
    program.step("main", w=[2, 1], puts=exchange, kind=kind, waits=[0, 0])
    return times(program.run(), machine(l_ns=1))


def test_two_processes_of_gonzalez_et_al_take_6_where_they_exchange_in_both_supersteps(script):
    """Figure 1, Omega = {0, 1} for both: 6 w, whatever the model."""
    assert two_processes(script, [(0, 1, 8), (1, 0, 8)]) == alike(6)


def test_two_processes_of_gonzalez_et_al_take_5_where_process_0_does_not_wait(script):
    """Figure 1, Omega_{1,0} = {0}: the actual 5 w that the paper prints; BSP says 6 w."""
    expected = {"BSP": 6, "BSPWB": 6, "MPM": 5, "OBSP*": 5}
    assert two_processes(script, [(0, 1, 8)]) == expected


# -- h ----------------------------------------------------------------------------------------


def test_a_superstep_costs_the_longest_w_and_g_for_the_greatest_h_and_l(script):
    program = script(3)
    program.step("main", w=[10, 40, 20], puts=[(0, 1, 100), (0, 2, 50), (2, 0, 7)])
    # Under MPM process 1 is the last: w of itself, h of process 0 that sends to it.
    assert times(program.run(), machine(g_ns=2, l_ns=3)) == alike(40 + 2 * 150 + 3)


def test_h_of_a_process_is_the_greatest_among_those_it_waits_for(script):
    """Equation 9: process 2 waits for 1, which 0 sends more to than 1 sends to 2."""
    program = script(3)
    puts = [(0, 1, 90), (1, 2, 10)]
    program.step("main", puts=puts, kind=OBLSYNC, waits=[0, 0, 0])
    program.step(["main"] * 3, w=[0, 0, 5], kind=END)
    assert times(program.run(), machine(g_ns=1))["MPM"] == 90 + 5


def test_a_slower_machine_computes_for_longer_and_communicates_as_priced(script):
    program = script(2)
    program.step("main", w=[10, 4], puts=[(0, 1, 8)])
    prices = ReplayPrices(machine(g_ns=1, l_ns=1), ratio=2.5)
    assert times(program.run(), prices) == alike(25 + 8 + 1)


# -- hosts ------------------------------------------------------------------------------------


def two_levels(h="max", **more):
    figures = {"g": 5e-9, "l": 100e-9, "inside": Level(1e-9, 7e-9)} | more
    return Machine("hosts", "made up", h=h, **figures)


HOSTS = {"meta": {"hosts": ["a", "a", "b", "b"]}}


def test_bytes_inside_a_host_and_between_hosts_have_a_g_each_and_the_widest_l_is_paid(script):
    program = script(4)
    program.step("main", w=[10, 20, 30, 40], puts=[(0, 1, 900), (0, 2, 10), (3, 1, 100)])
    # Process 1 receives 900 bytes inside its host, and 100 from the other one.
    assert times(program.run(**HOSTS), two_levels()) == alike(40 + 900 * 1 + 100 * 5 + 100)


@pytest.mark.parametrize(("size", "price"), [(200, 200 * 5), (100, 900)])
def test_the_process_with_the_highest_price_counts_not_the_one_with_most_bytes(script, size, price):
    program = script(4)
    program.step("main", puts=[(0, 1, 900), (2, 3, size)])
    run = program.run(meta={"hosts": ["a", "a", "b", "c"]})
    assert times(run, two_levels())["BSP"] == price + 100


def test_each_level_has_its_h_by_the_rule_of_the_machine(script):
    program = script(4)
    program.step("main", puts=[(0, 1, 10), (1, 0, 30), (2, 0, 100), (0, 2, 50)])
    for rule, price in (("max", 30 * 1 + 100 * 5), ("sum", 40 * 1 + 150 * 5)):
        assert times(program.run(**HOSTS), two_levels(rule))["BSP"] == price + 100


def test_a_group_on_one_host_pays_its_l_and_one_over_hosts_that_between_them(script):
    program = script(4)
    with program.partition(2, 2) as (left, right):
        program.step("main sub", w=[3, 5], puts=[(0, 1, 10)], group=left)
        program.step("main sub", kind=END, group=left)
        program.step("main sub", w=[4, 4], group=right)
        program.step("main sub", kind=END, group=right)
    program.step("main", kind=END)
    assert times(program.run(**HOSTS), two_levels()) == alike(5 + 10 * 1 + 7)
    program = script(4)
    with program.split([0, 2], [1, 3]) as (left, right):
        program.step("main sub", w=[3, 5], puts=[(0, 2, 10)], group=left)
        program.step("main sub", kind=END, group=left)
        program.step("main sub", kind=END, group=right)
    program.step("main", kind=END)
    assert times(program.run(**HOSTS), two_levels()) == alike(5 + 10 * 5 + 100)


# -- sub-groups -------------------------------------------------------------------------------


def entered_apart(script):
    """Process 1 enters the sub-group of both 60 later, and what follows it is 50 for 0."""
    program = script(2)
    program.clock[1] += 60
    with program.partition(2) as (sub,):
        program.step("main sub", w=[10, 10], puts=[(0, 1, 8)], group=sub)
        program.step("main sub", kind=END, group=sub)
    program.step("main", w=[50, 0])
    return program.run()


def test_processes_enter_a_sub_group_at_their_own_times(script):
    """Under OBSP* process 0 waits in the sub-group for 1; under MPM nobody sends to it."""
    expected = {
        "BSP": 60 + 10 + 1 + 1,  # the longest w is that of process 1, with the sub-group
        "BSPWB": 60 + 10 + 1 + 1,
        "MPM": 60 + 10 + 1 + 1,
        "OBSP*": 60 + 10 + 1 + 50 + 1,
    }
    assert times(entered_apart(script), machine(l_ns=1)) == expected


def test_sub_groups_nest_and_what_is_computed_between_is_each_groups_own(script):
    program = script(2)
    program.clock = [3, 3]
    with program.partition(2) as (outer,):
        program.clock = [8, 8]
        with program.partition(1, 1, group=outer) as (left, right):
            program.step("main a b", w=[100], group=left, kind=END)
            program.step("main a b", w=[10], group=right, kind=END)
        program.step("main a", w=[20, 30], group=outer)
        program.step("main a", kind=END, group=outer)
    program.step("main", w=[1, 2])
    run = program.run()
    timeline = Timeline(run)
    w_ns = dict(zip(timeline.position.tolist(), timeline.w_s * 1e9, strict=True))
    # In the order of the script: b, b, a (5 before the inner sub-groups), ends of a, main.
    assert [round(w_ns[place]) for place in range(8)] == [100, 10, 25, 35, 0, 0, 4, 5]
    # Under MPM process 0 is the last; after the sync of the sub-group process 1 is.
    last = {"BSP": 2, "BSPWB": 2, "MPM": 1, "OBSP*": 2}
    expected = {model: 3 + 5 + 100 + 20 + 1 + w + 1 for model, w in last.items()}
    assert times(run, machine(l_ns=1)) == expected


# -- booking ----------------------------------------------------------------------------------


def stacks_of(run, booking):
    """Computation and all by the innermost function, in ns."""
    sums = {}
    for record, comp, comm, sync in zip(
        run.records, booking.comp_s, booking.comm_s, booking.sync_s, strict=True
    ):
        name = run.stacks[record["stack"]][-1].function
        old = sums.get(name, (0, 0, 0))
        sums[name] = tuple(
            a + round(b * 1e9, 6) for a, b in zip(old, (comp, comm, sync), strict=True)
        )
    return {name: parts for name, parts in sums.items() if any(parts)}


def test_measured_time_is_booked_from_each_wait_to_who_was_waited_for(script):
    program = script(2)
    program.step(["main f", "main g"], w=[10, 40], calls=[0, 5], transfer=3)
    program.step(["main f", "main g"], w=[50, 1], transfer=2)
    program.step(["main f", "main g"], w=[0, 8], kind=END)
    run = program.run()
    took = measured(Timeline(run))
    assert took.total_s * 1e9 == pytest.approx(max(program.clock))
    assert stacks_of(run, took) == {"f": (50, 3, 0), "g": (40 + 8, 5 + 2, 0)}
