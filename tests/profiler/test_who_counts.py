"""The processes that count in the maximum, average and minimum of a node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bsplib
from bsplib.profiler.callgraph import build
from bsplib.profiler.costs import METRICS, record_costs
from bsplib.profiler.critical import critical_path
from bsplib.recording.trace import read_trace
from tests.drawn import examples

MILLISECOND = 1_000_000


def percentages(reading, place, metric="comp"):
    return reading.cost(place)[metric].percentages()


def test_a_sub_group_of_one_process_in_sixteen_is_a_sixteenth_of_the_whole(script):
    program = script(16)
    with program.partition(1, 15) as (alone, others):
        program.step("main", w=10**9, group=alone)
        program.step("main", group=others)
    program.step("main")
    assert percentages(program.reading(), "main") == (6, 0)


def test_a_straggler_that_takes_another_branch_is_out_of_balance_there(script):
    program = script(8)
    work = [50 * MILLISECOND, *[MILLISECOND] * 7]
    program.step(["main heavy", *["main light"] * 7], w=work)
    program.step("main balanced_noise", w=[10 * MILLISECOND + pid for pid in range(8)])
    reading = program.reading()
    assert percentages(reading, "heavy") == (12, 0)
    chain = critical_path(reading.callgraph, "comp-imb")
    assert reading.chain(chain) == "main > heavy > app.py line 12"


def recorded(main, nprocs, folder):
    """The one run of a program on virtual processors."""
    path = folder / "trace.bsp"
    bsplib.run(main, nprocs=nprocs, backend="sim", profile=path)
    (run,) = read_trace(path).runs
    return run


def heavy(bsp):
    bsp.charge(0.05)
    bsp.sync()


def light(bsp):
    bsp.charge(0.001)
    bsp.sync()


def balanced_noise(bsp):
    bsp.charge(0.01 + 1e-6 * bsp.pid)
    bsp.sync()


def test_a_charging_straggler_leads_the_critical_path(read, tmp_path):
    def main(bsp):
        bsp.charge(0.0)
        if bsp.pid == 0:
            heavy(bsp)
        else:
            light(bsp)
        balanced_noise(bsp)

    reading = read(build(recorded(main, 8, tmp_path)))
    assert percentages(reading, "heavy") == (12, 0)
    chain = critical_path(reading.callgraph, "comp-imb")
    assert reading.names[chain[1]] == "heavy"


def test_processes_that_rest_while_others_are_in_a_split_count_0(read, tmp_path):
    def main(bsp):
        bsp.charge(0.0)
        with bsp.split(0 if bsp.pid % 4 == 0 else None) as sub:
            if sub is not None:
                heavy(sub)
        with bsp.partition([4, 8]) as half, half.split(bsp.pid % 2) as sub:
            light(sub)

    reading = read(build(recorded(main, 8, tmp_path)))
    assert percentages(reading, "heavy") == (25, 0)  # 2 processes of 8
    assert percentages(reading, "light") == (100, 100)
    for _, cost in reading.callgraph.graph.nodes(data="cost"):
        assert cost.comp.average == pytest.approx(sum(cost.comp.pie) / 8)


# -- any run --------------------------------------------------------------------------------

FUNCTIONS = "one", "two", "three"


def add_steps(draw, program, group, most):
    """Let a group end some supersteps, with sub-groups of its processes inside."""
    pids = list(program.groups[group].members)
    for _ in range(draw(st.integers(0, most))):
        if draw(st.booleans()):
            mixed = draw(st.permutations(pids))
            marks = sorted(draw(st.sets(st.integers(1, len(pids)), max_size=3)))
            chosen = [mixed[a:b] for a, b in zip([0, *marks], marks, strict=False)]
            with program.split(*chosen, group=group) as numbers:
                for number in numbers:
                    add_steps(draw, program, number, most - 1)
        stack = st.sampled_from([f"main {name}" for name in FUNCTIONS])
        each = {"min_size": len(pids), "max_size": len(pids)}
        w = draw(st.lists(st.integers(0, 100), **each))
        program.step(draw(st.lists(stack, **each)), w, group=group)


def programs(script):
    """Runs of up to five processes, with partitions and splits inside one another."""

    @st.composite
    def program(draw):
        written = script(draw(st.integers(1, 5)))
        add_steps(draw, written, 0, 3)
        return written

    return program()


def expected(run, chosen, costs, group=0):
    """Maximum, average, minimum and count, and whether there is anything: as defined."""
    pids = run.groups[group].members
    records = run.records
    rows = np.flatnonzero(chosen & (records["group"] == group))
    total = np.zeros(4)
    for superstep in set(records["superstep"][rows].tolist()):
        values = [costs[row] for row in rows if records["superstep"][row] == superstep]
        values += [0] * (len(pids) - len(values))
        total += [max(values), sum(values) / len(pids), min(values), 1]
    partitions = {}
    for number, info in enumerate(run.groups):
        if info.parent == group:
            partitions.setdefault(info.ordinal, []).append(number)
    found = len(rows) > 0
    for siblings in partitions.values():
        parts = {sub: expected(run, chosen, costs, sub) for sub in siblings}
        parts = {sub: total for sub, (total, there) in parts.items() if there}
        if not parts:
            continue
        found = True
        top, _, low, count = zip(*parts.values(), strict=True)
        mean = sum(part[1] * run.groups[sub].size for sub, part in parts.items()) / len(pids)
        covered = sum(run.groups[sub].size for sub in parts) == len(pids)
        total += [max(top), mean, min(low) if covered else 0, max(count)]
    return total, found


@examples(100)
@given(st.data())
def test_any_run_is_summed_over_all_processes_of_each_group(script, data):
    program = data.draw(programs(script))
    run, reading = program.run(), program.reading()
    comp = record_costs(run)[METRICS.index("comp")]
    functions = np.array([stack[-1].function for stack in run.stacks])
    for name in set(functions):
        chosen = functions[run.records["stack"]] == name
        top, mean, low, count = expected(run, chosen, comp)[0]
        assert reading.ns(name) == pytest.approx((top, mean, low))
        assert reading.cost(name).count == count
