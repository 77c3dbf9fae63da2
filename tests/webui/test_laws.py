"""The page computes what collectives cost as Python does."""

import math

import numpy as np
import pytest

from bsplib.experiments.collective_costs import COSTS

pytestmark = pytest.mark.browser


def test_what_collectives_cost_is_the_same_on_the_page(served, broadcast_trace, show, tab):
    random = np.random.default_rng(3)
    cells = [
        (name, int(k) * int(count), int(k), int(p), float(r))
        for name in COSTS
        for k, count, p, r in zip(
            random.choice([1, 4, 8, 16], 100),
            random.choice([1, 3, 10, 100, 999, 12345], 100),
            random.choice([1, 2, 3, 5, 7, 8, 9, 13, 16, 33, 64], 100),
            random.choice([0.0, 500.0, 4000.0, 2e4, 1e300], 100),
            strict=True,
        )
    ]
    with served(broadcast_trace) as url:
        show(tab, url)
        found = tab.evaluate(
            """async (cells) => {
              const { evaluate } = await import("./static/laws.js");
              const of = (quantity, [name, m, k, p, r]) =>
                evaluate([m, k, "$p", r, `${quantity}_${name}`], { p });
              return cells.map((cell) => [of("h", cell), of("steps", cell)]);
            }""",
            cells,
        )
    for (name, *arguments), pair in zip(cells, found, strict=True):
        assert all(map(math.isclose, pair, COSTS[name](*arguments))), (name, arguments)
