"""Plans for the evaluation of the queries: the stages of the paper, and the fast method."""

from __future__ import annotations

from dataclasses import dataclass

from apps.sql.errors import QueryError
from apps.sql.sorting import SampleSort

EXPERIMENTAL = 1
"""The oversampling factor that was found by timing alone: too small for an even sort."""


@dataclass(frozen=True)
class Plan:
    """How rows are distributed at first, and how equal ones are found."""

    title: str
    balance: bool
    """Whether to balance the input before the first query."""
    sort: SampleSort | None
    """Options of the sorts for groups and joins; if None, these work by owner."""


_ONE, _ALL = SampleSort("theory", "one"), SampleSort("theory", "bitonic")

STAGES = {
    "original": Plan("original", balance=False, sort=SampleSort(EXPERIMENTAL)),
    "balanced": Plan("input balanced", balance=True, sort=SampleSort(EXPERIMENTAL)),
    "theoretical": Plan("theoretical factor", balance=True, sort=_ONE),
    "bitonic": Plan("bitonic sample sort", balance=True, sort=_ALL),
}
"""Those of Jarvis et al., sections 4.1 to 4.3, in this order."""

OWNER = Plan("by owner", balance=False, sort=None)
PLANS = {**STAGES, "owner": OWNER}


def plan_of(name: str) -> Plan:
    """Return a plan by its name.

    Raises:
        QueryError: there is none.
    """
    if name not in PLANS:
        raise QueryError(f"there is no stage {name!r}; there are {', '.join(PLANS)}")
    return PLANS[name]
