"""The figure of a probed Machine."""

from __future__ import annotations

import pytest

from bsplib.machine import Machine
from bsplib.machine.measured import Curve, Measured
from bsplib.profiler.models.machine_plot import g_by_processes, plot_machine

CURVE = Curve((100, 1000), (110e-9, 1010e-9))  # 1 ns a byte and 10 ns
ENTRIES = [
    Measured(1, empty=1e-8),
    Measured(2, empty=1e-8, patterns={"exchange": CURVE, "all-to-all": CURVE}),
    Measured(4, empty=2e-8, patterns={"exchange": Curve((100, 1000), (210e-9, 2010e-9))}),
]
PROBED = Machine("$a$", "x", 1e-9, 1e-6, p=2, measured=tuple(ENTRIES))


def test_g_is_the_slope_of_a_line_for_each_number_of_processes():
    assert g_by_processes(ENTRIES, "exchange") == pytest.approx({2: 1e-9, 4: 2e-9})
    assert g_by_processes(ENTRIES, "all-to-all") == pytest.approx({2: 1e-9})
    assert g_by_processes(ENTRIES, "ping-pong") == {}


@pytest.mark.lengthy
def test_the_figure_names_the_patterns_that_were_measured(tmp_path):
    path = tmp_path / "m.svg"
    plot_machine(PROBED, path)
    text = path.read_text()
    assert "<!-- exchange -->" in text
    assert "<!-- all-to-all -->" in text
    assert "ping-pong" not in text
