"""How many examples Hypothesis draws.

``BSP_EXAMPLES`` multiplies the numbers that stand in the tests; ``pytest --all`` draws twice as
many where it is not set.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

TIMES = float(os.environ.get("BSP_EXAMPLES", "1"))


def examples(count: int, **more: Any) -> settings:
    """Draw so many examples, times ``BSP_EXAMPLES``, of which each takes as long as it takes."""
    return settings(max_examples=max(1, round(count * TIMES)), deadline=None, **more)
