"""The page writes numbers by the same rules as the profiler."""

import numpy as np
import pytest

from bsplib.profiler import format as fmt
from bsplib.profiler.summary import Summary

pytestmark = pytest.mark.browser

RANDOM = np.random.default_rng(5)
VALUES = [
    *(0.0, 1.0, 999.5, 0.02625, 0.0262, 2.125, 1e-9, 5e-10, 9.995e-4, 0.9995, 123456.5, 1e15),
    *(float(f"{value:.4g}") for value in 10 ** RANDOM.uniform(-10, 13, 300)),
    *(int(value) / 8 for value in RANDOM.integers(1, 10**5, 100)),
]


@pytest.fixture(scope="module")
def page_writes(served, broadcast_trace, show, _shared_tab):
    """Write values with a function of the page."""
    tab = _shared_tab.page
    with served(broadcast_trace) as url:
        show(tab, url)
        yield lambda function, values: tab.evaluate(
            """async ([name, values]) => {
              const format = await import("./static/format.js");
              return values.map((value) => format[name](value));
            }""",
            [function, values],
        )


def test_times_are_written_as_in_the_terminal(page_writes):
    assert page_writes("seconds", VALUES) == [fmt.seconds(value) for value in VALUES]


def test_sizes_are_written_as_in_the_terminal(page_writes):
    assert page_writes("bytes", VALUES) == [fmt.size(value) for value in VALUES]


def test_balances_are_written_as_in_the_terminal(page_writes):
    summaries = [
        Summary(8.0, 8.0 * average, 8.0 * average * least, ())
        for average in (0.0, 0.125, 0.385, 0.415, 1.0)
        for least in (0.0, 0.5, 1.0)
    ]
    texts = page_writes(
        "balance",
        [{"max": s.maximum, "avg": s.average, "min": s.minimum} for s in summaries],
    )
    assert texts == [fmt.balance(summary) for summary in summaries]
