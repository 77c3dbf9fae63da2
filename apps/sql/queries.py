"""The six queries of Jarvis et al. 2002, section 4, in SQL and in primitives.

The paper says what the queries do, and not over which columns; the columns are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import bsplib
from bsplib.apps.sql.equi_join import equi_join, sorted_join
from bsplib.apps.sql.group_by import group_by
from bsplib.apps.sql.less_than_join import less_than_join
from bsplib.apps.sql.lowest import lowest
from bsplib.apps.sql.plan import Plan
from bsplib.apps.sql.relation import Column, Relation
from bsplib.apps.sql.sorting import SampleSort
from bsplib.apps.work import charge_values

INPUTS = {
    "ITEM": ("item", "class", "price"),
    "QNT": ("class", "stock", "floor"),
    "TRAN": ("item", "units"),
}
"""The relations, and the columns of theirs that the queries read."""

SQL = {
    "TEMP1": "SELECT item, SUM(units) AS units FROM TRAN GROUP BY item",
    "TEMP2": "SELECT item, class, units, units * price AS value FROM TEMP1 JOIN ITEM USING (item)",
    "TEMP3": "SELECT class, SUM(units) AS units, SUM(value) AS value FROM TEMP2 GROUP BY class",
    "TEMP4": "SELECT class, units, value, stock, floor FROM TEMP3 JOIN QNT USING (class)",
    "TEMP5": "SELECT TEMP4.class, TEMP4.units, ITEM.item, price, price - floor AS gap "
    "FROM TEMP4 JOIN ITEM ON floor < price",
    "TEMP6": "SELECT * FROM TEMP5 "
    "QUALIFY rank() OVER (ORDER BY gap) <= ceil(count(gap) OVER () / 100)",
}
"""Each query makes the relation of its name."""


def sql_process(
    bsp: bsplib.Group,
    inputs: Mapping[str, Relation],
    plan: Plan,
    begin: Callable[[str], object] = lambda _: None,
) -> dict[str, Relation]:
    """Evaluate the six queries.

    Args:
        bsp: the group.
        inputs: ITEM, QNT and TRAN, with the columns of :data:`INPUTS` at least.
        plan: how.
        begin: is called with the name of each query as it begins.

    Returns:
        TEMP1 to TEMP6.

    Supersteps: about 20 by owner; about 60 by sort, and those of the bitonic networks.
    Cost: TEMP1 reads the rows of TRAN and dominates; the others are linear in ITEM, as
        long as few items are dearer than a floor.
    """
    item, qnt, tran = (
        inputs[name] if plan.sort else inputs[name].only(columns)
        for name, columns in INPUTS.items()
    )
    begin("TEMP1")
    made1 = temp1(bsp, tran, plan)
    begin("TEMP2")
    made2 = temp2(bsp, made1, item, plan)
    begin("TEMP3")
    made3 = temp3(bsp, made2, plan)
    begin("TEMP4")
    made4 = temp4(bsp, made3, qnt, plan)
    begin("TEMP5")
    made5 = temp5(bsp, made4, item)
    begin("TEMP6")
    made6 = temp6(bsp, made5)
    return dict(zip(SQL, (made1, made2, made3, made4, made5, made6), strict=True))


def temp1(bsp: bsplib.Group, tran: Relation, plan: Plan) -> Relation:
    """Add up the units of each item: an aggregate sum and a group-by of TRAN."""
    return group_by(bsp, tran, "item", ["units"], sort=plan.sort_of(1))


def temp2(bsp: bsplib.Group, temp1: Relation, item: Relation, plan: Plan) -> Relation:
    """Find class and price of each: an equality-join of TEMP1 and ITEM."""
    joined = _join(bsp, temp1, item, "item", plan.sort_of(2))
    value = _calculated(bsp, np.multiply, joined, "units", "price")
    return joined.only(["item", "class", "units"]).plus(value=value)


def temp3(bsp: bsplib.Group, temp2: Relation, plan: Plan) -> Relation:
    """Add up the units and values of each class: an aggregate sum and a group-by of TEMP2."""
    return group_by(bsp, temp2, "class", ["units", "value"], sort=plan.sort_of(3))


def temp4(bsp: bsplib.Group, temp3: Relation, qnt: Relation, plan: Plan) -> Relation:
    """Find stock and floor of each class: an equality-join of TEMP3 and QNT."""
    joined = _join(bsp, temp3, qnt, "class", plan.sort_of(4))
    return joined.only(["class", "units", "value", "stock", "floor"])


def temp5(bsp: bsplib.Group, temp4: Relation, item: Relation) -> Relation:
    """Find the items dearer than the floor of each class: a less-than-join of TEMP4 and ITEM."""
    floors = temp4.only(["class", "units", "floor"])
    pairs = less_than_join(bsp, floors, item.only(["item", "price"]), "floor", "price")
    gap = _calculated(bsp, np.subtract, pairs, "price", "floor")
    return pairs.only(["class", "units", "item", "price"]).plus(gap=gap)


def temp6(bsp: bsplib.Group, temp5: Relation) -> Relation:
    """Keep those with the least gap: a filter (IN 'low 1%') of TEMP5."""
    return lowest(bsp, temp5, "gap")


def _calculated(
    bsp: bsplib.Group, op: np.ufunc, relation: Relation, one: str, other: str
) -> Column:
    """Calculate with two columns of each row, as floats; NULL where one of them is."""
    charge_values(bsp, relation.rows)
    first, second = relation.numbers(one), relation.numbers(other)
    made = Column(op(first.values, second.values, dtype=np.float64), first.valid)
    return made if second.valid is None else made.where(second.valid)


def _join(
    bsp: bsplib.Group, left: Relation, right: Relation, name: str, sort: SampleSort | None
) -> Relation:
    if sort is None:
        return equi_join(bsp, left, right, name)
    # Whole rows of a user's file may have other columns, of names that are taken.
    right = right.only(
        [other for other in right.columns if other == name or other not in left.columns]
    )
    return sorted_join(bsp, left, right, name, sort)
