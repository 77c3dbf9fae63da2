"""The communication pattern of a superstep: which processes send to which.

A Machine may have a g and an L for each of ``PATTERNS``. Virtual processors and the
models that replay a trace both recognise patterns by the rule in this module.
"""

from __future__ import annotations

from collections.abc import Iterable

PATTERNS = (
    "exchange",
    "ping-pong",
    "one-to-all",
    "personalised-one-to-all",
    "all-to-one",
    "all-to-all",
)
"""The patterns of Roda et al. 1999, section 3, each with its own g and L."""


def pattern_of(links: Iterable[tuple[int, int]]) -> str | None:
    """Return the pattern that is most similar, one of ``PATTERNS``.

    The links do not show whether one process sends the same data to all or different data
    to each; both count as ``personalised-one-to-all``.

    Args:
        links: sender and receiver of each transfer.

    Returns:
        The name of the pattern; None if nothing was sent.

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
