"""The SQL story over several seeds, and where the bitonic sample pays."""

from __future__ import annotations

from statistics import median

import pytest

import bsplib
from bsplib.apps.papers import entries, seeds
from bsplib.apps.sorting import sample_sort
from bsplib.apps.sql.plan import STAGES
from bsplib.apps.work import SPEED
from bsplib.machine import Machine, load_machine


@pytest.fixture(scope="module")
def rows():
    return seeds.read()


def test_the_file_has_all_stages_of_every_seed(rows):
    found = seeds.by_stage(rows)
    numbers = [row.seed for row in found["original"]]
    assert numbers == list(range(len(numbers)))
    for stage in STAGES:
        assert [row.seed for row in found[stage]] == numbers


def test_the_file_is_written_and_read_without_loss(rows):
    assert seeds.read(seeds.as_text(rows)) == rows


def test_a_spread_is_median_least_and_greatest():
    assert seeds.spread([3.0, 1.0, 2.0, 17.2]) == "2% (1% to 17%)"
    assert seeds.spread([-3.0, 1.0, 2.0], "+") == "+1% (-3% to +2%)"


def test_a_sort_costs_w_g_h_and_l_by_the_rule_of_the_machine(rows):
    row = rows[0]
    by_max = Machine("m", "x", 1e-9, 1e-6)
    assert row.sort_s(by_max) == pytest.approx(
        row.sort_w + 1e-9 * row.sort_h + 1e-6 * row.sort_steps
    )
    slow = Machine("m", "x", 1e-9, 1e-6, h="sum", speed=SPEED / 4)
    assert row.sort_s(slow) == pytest.approx(
        4 * row.sort_w + 1e-9 * row.sort_h_sum + 1e-6 * row.sort_steps
    )


def test_the_entries_have_median_and_range_and_the_papers_machine_first(rows):
    found = list(entries.story())
    for item in found:
        if item.lives.endswith("seeds") and "pays up to" not in item.what:
            assert "to" in item.ours, item
    gains = [item for item in found if item.place == "section 4.3" and "gain of" in item.what]
    assert len(gains) == 2
    for item in gains:
        assert item.ours.startswith("Cray T3E")
    bitonic = seeds.gains(rows, "bitonic", load_machine("shared-memory"))
    assert f"{median(bitonic):+.0f}%" in gains[1].ours


@pytest.mark.slow
def test_a_seed_that_is_run_again_has_the_row_of_the_file(rows):
    """With a tenth of the rows: that the runs can be repeated, and what they measure."""
    one, two = (seeds.stages_of(1, size=120_000) for _ in range(2))
    assert one == two
    assert [row.stage for row in one] == list(STAGES)


# -- where the bitonic sample pays ----------------------------------------------------------------


@pytest.mark.parametrize("rule", ["max", "sum"])
def test_the_map_is_what_the_program_costs(rule, tmp_path):
    size, p = 40_000, 8
    path = tmp_path / "m.toml"
    machine = Machine("m", "x", 3e-9, 2e-5, h=rule)
    path.write_text(machine.text())

    def cost(sort):
        times = bsplib.run(
            timed, size, sort, nprocs=p, backend="sim", machine=str(path), wait="auto"
        )
        return max(times)

    found = cost("one") - cost("bitonic")
    assert found == pytest.approx(seeds.gain_s(machine, p, size), rel=0.1)


def timed(bsp, size, sort):
    sample_sort.main(bsp, size, oversampling="theory", sample_sort=sort)
    return bsp.time()


def test_up_to_the_greatest_l_it_pays():
    machine = load_machine("shared-memory")
    limit = seeds.greatest_l(machine, 16, 10**6)
    for latency, sign in ((0.99 * limit, 1), (1.01 * limit, -1)):
        there = Machine("m", "x", machine.g, latency)
        assert sign * seeds.gain_s(there, 16, 10**6) > 0


def test_by_the_sum_of_in_and_out_the_network_sends_more_up_to_16_processes():
    free = {"speed": 1e30}
    for rule, first in (("max", 8), ("sum", 32)):
        machine = Machine("m", "x", 1e-9, 0.0, h=rule, **free)
        pays = [p for p in (4, 8, 16, 32, 64) if seeds.saved_s(machine, p, 10**6)[0] > 1e-9]
        assert pays[0] == first
