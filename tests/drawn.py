"""How many examples Hypothesis draws, and how often a test repeats what may depend on chance.

``BSP_EXAMPLES`` multiplies the numbers that stand in the tests. Where it is not set, a quarter of
them are drawn; ``make test-all`` draws twice as many.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

TIMES = float(os.environ.get("BSP_EXAMPLES", "0.25"))


def times(count: int) -> int:
    """Return ``count`` times ``BSP_EXAMPLES``, at least 1: how often a test repeats itself."""
    return max(1, round(count * TIMES))


def examples(count: int, **more: Any) -> settings:
    """Draw ``count`` times ``BSP_EXAMPLES`` examples, without a limit of time for each."""
    return settings(max_examples=times(count), deadline=None, **more)
