"""The pattern of a superstep: who sends to whom.

A Machine may have a g and an L for each of ``PATTERNS``. Virtual processors and the
models that replay a trace find the pattern of a superstep by the same rule, this one.
"""

from __future__ import annotations

from collections.abc import Iterable


def pattern_of(links: Iterable[tuple[int, int]]) -> str | None:
    """Return the one of ``PATTERNS`` that comes nearest.

    One message to all and a different one to each are not told apart.

    Args:
        links: sender and receiver of each transfer.

    Returns:
        None where nothing was sent.

    Source: Roda et al. 1999, section 1.
    """
    pairs = set(links)
    if not pairs:
        return None
    senders, receivers = {sender for sender, _ in pairs}, {receiver for _, receiver in pairs}
    if len(pairs) == len(senders) == len(receivers):
        return "exchange" if senders == receivers else "ping-pong"
    if len(senders) == 1:
        return "personalised-one-to-all"
    return "all-to-one" if len(receivers) == 1 else "all-to-all"
