"""What is compared of a node: time, loss, h, supersteps, balance and their kin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from bsplib.profiler.book import Time
    from bsplib.profiler.summary import Cost


@dataclass(frozen=True)
class NodeCosts:
    """What a node cost in one run."""

    time_s: float
    """What is booked at it, on average over the processes. These add up."""
    loss_s: float
    """The part of the time that a balanced run would not have."""
    elapsed_s: float
    """Measured time in which at least one process was in it."""
    h: float
    """Bytes: the sum over supersteps of the greatest h of a process."""
    h_mean: float
    """Bytes: the sum over supersteps of the mean h of the processes."""
    supersteps: int
    comp_s: float
    """Computation: the sum over supersteps of the greatest of a process."""
    comp_mean_s: float
    """Computation: the sum over supersteps of the mean of the processes."""
    comm_s: float
    """Measured communication, as for ``comp_s``."""
    idle_s: float
    """Idle time, as for ``comp_s``."""

    @property
    def balance(self) -> float:
        """Mean computation divided by the greatest; 1 where nothing is computed."""
        return self.comp_mean_s / self.comp_s if self.comp_s else 1.0

    def __getitem__(self, quantity: str) -> float:
        """Return the value of a quantity, one of ``QUANTITIES``."""
        return float(getattr(self, QUANTITIES[quantity].field))


@dataclass(frozen=True)
class Quantity:
    """A figure by which nodes are compared."""

    field: str
    """Its name in Figures."""
    unit: str
    """``s``, ``B``, ``%`` (a fraction) or empty (a number)."""
    title: str
    more_is_better: bool = False

    def text(self, value: float) -> str:
        """Return a value with its unit, such as ``1.35 ms``, ``54%`` or ``120``."""
        if self.unit == "s":
            return fmt.seconds(value)
        if self.unit == "B":
            return fmt.size(value)
        return f"{100 * value:.0f}%" if self.unit == "%" else f"{value:.0f}"


QUANTITIES = {
    "time": Quantity("time_s", "s", "time"),
    "loss": Quantity("loss_s", "s", "loss"),
    "h": Quantity("h", "B", "h-relation"),
    "supersteps": Quantity("supersteps", "", "supersteps"),
    "balance": Quantity("balance", "%", "balance", more_is_better=True),
    "elapsed": Quantity("elapsed_s", "s", "elapsed time"),
    "comp": Quantity("comp_s", "s", "computation"),
    "comm": Quantity("comm_s", "s", "communication"),
    "idle": Quantity("idle_s", "s", "idle time"),
}
"""By the name that a user writes."""

SHOWN = ("time", "loss", "h", "supersteps", "balance")
"""The quantities of tables, in their order."""

EXACT = frozenset({"h", "supersteps"})
"""The quantities that repeat exactly where the input, its seed and p are equal."""


def figures(cost: Cost, time: Time) -> NodeCosts:
    """Return what is compared of a node.

    Args:
        cost: what was measured of it.
        time: what is booked at it.
    """
    return NodeCosts(
        time_s=time.time_s,
        loss_s=time.loss_s,
        elapsed_s=cost.elapsed_s,
        h=cost.h.maximum,
        h_mean=cost.h.average,
        supersteps=cost.count,
        comp_s=cost.comp.maximum,
        comp_mean_s=cost.comp.average,
        comm_s=cost.comm.maximum,
        idle_s=cost.idle.maximum,
    )
