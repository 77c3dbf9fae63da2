"""Eliminating duplicates."""

from __future__ import annotations

import bsplib
from bsplib.apps.sql.group_by import group_by
from bsplib.apps.sql.relation import Relation
from bsplib.apps.sql.sorting import SampleSort


def distinct(bsp: bsplib.Group, relation: Relation, *, sort: SampleSort | None = None) -> Relation:
    """Keep one of all rows that are equal in every column (``SELECT DISTINCT``).

    Args:
        bsp: the group.
        relation: the rows of this process; NULLs are equal to each other.
        sort: sort the rows to find equal ones; send them to their owners if None.

    Raises:
        QueryError: a float is NaN.

    Supersteps: 2 by owner; by sort 5, and those of the sample sort.
    Cost: that of :func:`bsplib.apps.sql.group_by.group_by` without aggregates.
    Source: ``elim_dup`` in Jarvis et al. 2002, section 4.2.
    """
    return group_by(bsp, relation, list(relation.columns), sort=sort)
