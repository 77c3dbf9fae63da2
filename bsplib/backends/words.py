"""Words for processes, as both backends use them in errors."""

from __future__ import annotations

from collections.abc import Sequence

_LISTED = 8


def named(pids: Sequence[int]) -> str:
    """Return words for some processes, such as ``processes 0 to 3`` or ``process 5``.

    Args:
        pids: at least one; the words give them in rising order.
    """
    known = sorted(pids)
    first, last = known[0], known[-1]
    if len(known) == 1:
        return f"process {first}"
    if known == list(range(first, last + 1)):
        return f"processes {first} to {last}"
    if len(known) > _LISTED:
        return f"{len(known)} processes from {first} to {last}"
    return f"processes {', '.join(map(str, known))}"
