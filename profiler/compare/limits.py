"""Limits that a comparison must keep, as a build server states them: ``h>+1%,supersteps>+0``.

A list of limits has commas between them, and a limit has these parts, with spaces anywhere::

    QUANTITY  >|<  [+|-] NUMBER [UNIT]  [@ NODE]

``time>+5%``         fails where the time is more than 5% above that before
``loss>+2ms``        fails where the loss is more than 2 ms above that before
``balance<90%``      fails where the balance after is below 90%, whatever it was before
``h>+0 @ solve``     fails where the h of the function ``solve`` grew at all
``h>+0 @ cg.py:12``  the same for the cost centre in line 12 of ``cg.py``, after
``h>+0 @ *``         fails where the h of any node grew

With a sign the limit is a change, without one a value. A time has the unit ``s``, ``ms``,
``us`` or ``ns``; a size ``B``, ``kB``, ``MB``, ``GB`` or ``TB``. A change in ``%`` is relative
to the value before. A balance is a fraction, or in ``%`` without sign; 0 needs no unit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.profiler.compare.comparison import label
from bsplib.profiler.named import named
from bsplib.profiler.rows import QUANTITIES, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.profiler.compare.comparison import Compared, Comparison

EVERYWHERE = "*"
"""The name that stands for every node."""

_UNITS = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
    "B": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
    "%": {"": 1.0},
    "": {"": 1.0},
}
_LIMIT = re.compile(
    r"(?P<quantity>[\w-]+)\s*(?P<side>[<>])\s*(?P<sign>[+-]?)\s*"
    r"(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*(?P<unit>[A-Za-zµ%]*)\s*"
    r"(?:@\s*(?P<node>\S.*))?"
)
_EXAMPLE = "write it as in h>+1%, loss>+2ms, balance<90% or supersteps>+0@solve"


class LimitError(UsageError):
    """A limit cannot be understood, or is about a node that is in neither run."""


@dataclass(frozen=True)
class CostLimit:
    """A bound on a quantity of the whole run, or of some nodes."""

    text: str
    """As the user wrote it."""
    quantity: str
    above: bool
    """Whether what is greater than the limit violates it, or what is less."""
    of_before: float
    """What the value before is multiplied by; 0: only what is added counts."""
    added: float
    """Seconds, bytes, a number or, of a balance, a fraction."""
    node: str | None
    """A function, ``file:line`` or ``*``; None for the whole run."""

    def bound(self, before: float) -> float:
        """Return the greatest, or the least, value that the second run may have.

        Args:
            before: the value of the first run.
        """
        return self.of_before * before + self.added

    def violated(self, before: float, after: float) -> bool:
        """Tell whether a value is beyond the limit, apart from rounding.

        Args:
            before: the value before.
            after: the value after.
        """
        bound = self.bound(before)
        if math.isclose(after, bound, rel_tol=1e-12):
            return False
        return after > bound if self.above else after < bound


def parse(text: str) -> list[CostLimit]:
    """Return the limits of a list such as ``h>+1%,supersteps>+0``.

    Args:
        text: limits with commas between them.

    Raises:
        LimitError: the text is no such list.
    """
    return [_limit(part.strip()) for part in text.split(",")]


def violations(comparison: Comparison, limits: Iterable[CostLimit]) -> list[str]:
    """Return a sentence about every node that violates a limit, in the order of the limits.

    A node that vanished violates none. For one that is new, the value before counts as 0;
    a balance, which it did not have, is then only held against a limit without sign.

    Args:
        comparison: two runs.
        limits: as :func:`parse` returns them.

    Raises:
        LimitError: there is no node that a limit names.
    """
    found = []
    for limit in limits:
        for node in _chosen(comparison, limit):
            before, after = node.values(limit.quantity)
            compared = before is not None or not limit.of_before or limit.quantity != "balance"
            if after is not None and compared and limit.violated(before or 0.0, after):
                found.append(_sentence(limit, node, before, after))
    return found


def _sentence(limit: CostLimit, node: Compared, before: float | None, after: float) -> str:
    """Return one sentence that names the node, before, after and the limit."""
    quantity, known = QUANTITIES[limit.quantity], before or 0.0
    now, then, most_allowed = _distinct(quantity, after, known, limit.bound(known))
    was = "new" if before is None else f"{then} before"
    most = "at most" if limit.above else "at least"
    return (
        f"{label(node)}: {quantity.title} {now} ({was}), and {limit.text} allows {most} "
        f"{most_allowed}"
    )


def _limit(text: str) -> CostLimit:
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise LimitError(f"{text!r} is no limit; {_EXAMPLE}")
    quantity = QUANTITIES.get(found["quantity"])
    if found["quantity"] == "cost":
        raise LimitError(f"cost in {text!r} is called time now: what is booked at a node")
    if quantity is None:
        names = ", ".join(QUANTITIES)
        raise LimitError(f"{found['quantity']!r} in {text!r} is no quantity; they are {names}")
    amount, unit = float(found["sign"] + found["number"]), found["unit"]
    is_change = bool(found["sign"])
    amount *= _scale(text, quantity, unit, is_change=is_change, is_zero=not amount)
    bound = (1 + amount, 0.0) if is_change and unit == "%" else (float(is_change), amount)
    return CostLimit(text, found["quantity"], found["side"] == ">", *bound, found["node"])


def _scale(text: str, quantity: Quantity, unit: str, *, is_change: bool, is_zero: bool) -> float:
    """Return the value of a unit; a percentage is a change, or the value of a balance."""
    units = _UNITS[quantity.unit] | ({"%": 0.01} if is_change or quantity.unit == "%" else {})
    if unit in units:
        return units[unit]
    if is_zero and not unit:
        return 1.0
    known = ", ".join(name for name in units if name) or "none, since it is a number"
    what = f"a change of {quantity.title}" if is_change else f"a value of {quantity.title}"
    given = f"{unit!r} is no unit" if unit else "there is no unit"
    raise LimitError(f"{given} in {text!r}: the units of {what} are {known}")


def _chosen(comparison: Comparison, limit: CostLimit) -> Sequence[Compared]:
    """Return the nodes that a limit is about."""
    if limit.node is None:
        return [comparison.whole]
    if limit.node == EVERYWHERE:
        return comparison.nodes
    known = {node.known.node: node for node in comparison.nodes}
    chosen = [known[node] for node in named(known, limit.node)]
    if not chosen:
        raise LimitError(
            f"no node is called {limit.node!r}, as {limit.text!r} says: name a function, a cost "
            "centre as in cg.py:12, or * for all"
        )
    return chosen


def _distinct(quantity: Quantity, *values: float) -> list[str]:
    """Return values with their unit, with more digits where different ones look equal."""
    texts = [quantity.text(value) for value in values]
    if len(set(texts)) == len(set(values)):
        return texts
    if quantity.unit == "%":
        return [f"{100 * value:.6g}%" for value in values]
    return [f"{value:.12g} {quantity.unit}".strip() for value in values]
