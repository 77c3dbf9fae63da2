"""Plans for the evaluation of the queries: the stages of the paper, and the fast method."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bsplib.apps.sql.relation import QueryError
from bsplib.apps.sql.sorting import SampleSort

_SEEDS = 16
"""More than the number of queries: no two sorts draw from the same seed."""
EXPERIMENTAL = 0.4375
"""An oversampling factor as experiments find it: too small for an even sort. With it each of 16
processes draws seven rows."""


@dataclass(frozen=True)
class Plan:
    """How rows are distributed at first, and how equal ones are found."""

    title: str
    balance: bool
    """Whether to balance the input before the first query."""
    sort: SampleSort | None
    """Options of the sorts for groups and joins; if None, these work by owner."""

    def sort_of(self, query: int) -> SampleSort | None:
        """Return the options of the sort of a query, which draws a sample of its own."""
        if self.sort is None:
            return None
        return replace(self.sort, seed=_SEEDS * self.sort.seed + query)


_SMALL = SampleSort(EXPERIMENTAL)
_ONE = SampleSort("theory", "one")
_ALL = SampleSort("theory", "bitonic")

STAGES = {
    "original": Plan("original", balance=False, sort=_SMALL),
    "balanced": Plan("input balanced", balance=True, sort=_SMALL),
    "theoretical": Plan("theoretical factor", balance=True, sort=_ONE),
    "bitonic": Plan("bitonic sample sort", balance=True, sort=_ALL),
}
"""Those of Jarvis et al., sections 4.1 to 4.3, in this order."""

OWNER = Plan("by owner", balance=False, sort=None)
PLANS = {**STAGES, "owner": OWNER}


def plan_of(name: str, oversampling: float | str | None = None, seed: int = 0) -> Plan:
    """Return a plan by its name.

    Args:
        name: a key of ``PLANS``.
        oversampling: oversampling factor of the sorts, instead of that of the plan.
        seed: of the samples of the sorts.

    Raises:
        QueryError: there is none of this name, or it has no sorts to have a factor.
    """
    if name not in PLANS:
        raise QueryError(f"there is no stage {name!r}; there are {', '.join(PLANS)}")
    plan = PLANS[name]
    if plan.sort is None:
        if oversampling is not None:
            raise QueryError(f"stage {name!r} sorts nothing, and has no oversampling factor")
        return plan
    factor = plan.sort.oversampling if oversampling is None else oversampling
    return replace(plan, sort=replace(plan.sort, oversampling=factor, seed=seed))
