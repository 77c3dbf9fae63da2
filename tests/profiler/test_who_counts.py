"""The processes that count in the maximum, average and minimum of a node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler.costs import METRICS, record_costs
from tests.drawn import examples

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
