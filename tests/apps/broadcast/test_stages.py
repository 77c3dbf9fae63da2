"""One stage against two with 16 processes: the equations, virtual processors, and the paper."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import bsplib
from bsplib import Machine
from bsplib.apps.broadcast import broadcast, stages

EXPECTED = {"max": 8, "sum": 16 / 3}


def free_of_latency(rule):
    return Machine("by hand", "made up", g=1e-9, l=0.0, h=rule)


def seconds(bsp, size, nbroadcasts):
    """Broadcast in one stage, then in two; return how long both took."""
    bsp.charge(0)
    values = bsp.zeros(size)
    times = [bsp.time()]
    for spread in (broadcast.bcast_onestage, broadcast.bcast_twostage):
        for _ in range(nbroadcasts):
            spread(bsp, values)
        times.append(bsp.time())
    return np.diff(times)


@pytest.mark.parametrize(("rule", "expected"), EXPECTED.items())
@pytest.mark.parametrize("size", [16, 4096])
def test_two_stages_are_8_times_as_fast_by_max_and_16_thirds_by_sum(rule, expected, size):
    machine = free_of_latency(rule)
    times = bsplib.run(seconds, size, 3, nprocs=16, backend="sim", machine=machine)
    one, two = times[0]
    assert one / two == pytest.approx(expected, rel=0.01)
    assert stages.factor(machine, 16, size * 8) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rule", EXPECTED)
def test_the_l_that_explains_the_paper_gives_its_factor(rule):
    size, g = 4096, 1e-9
    latency = stages.explaining_l(rule, 16, stages.MEASURED) * size * 8 * g
    machine = Machine("by hand", "made up", g=g, l=latency, h=rule)
    assert pytest.approx(4.15, abs=0.005) == stages.MEASURED
    assert stages.factor(machine, 16, size * 8) == pytest.approx(stages.MEASURED)
    times = bsplib.run(seconds, size, 1, nprocs=16, backend="sim", machine=machine)
    assert times[0][0] / times[0][1] == pytest.approx(stages.MEASURED, rel=1e-3)


def test_the_command_prints_them_where_16_processes_broadcast():
    line = "--nprocs 16 --backend sim --size 64 --onestage 1 --twostage 1"
    result = CliRunner().invoke(broadcast.command, line.split())
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-3:] == [
        "Two stages against one for 16 processes, n bytes (Jarvis et al. 2002 measured 4.15 on a "
        "Cray T3E):",
        "  h = max(in, out): 8.00 times as fast where l = 0, and 4.15 times where l = 0.988 n g",
        "  h = in + out: 5.33 times as fast where l = 0, and 4.15 times where l = 0.455 n g",
    ]
