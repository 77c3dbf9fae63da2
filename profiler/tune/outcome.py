"""Everything that a tuning found, for its table and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bsplib.profiler.tune.balance import Balance
    from bsplib.profiler.tune.best import Advice, TuneVerdict
    from bsplib.profiler.tune.parameter import Parameter
    from bsplib.profiler.tune.seeds import SeedSpread
    from bsplib.profiler.tune.sweep import Point
    from bsplib.profiler.tune.trade_off import Trade


@dataclass(frozen=True)
class Tuning:
    """The result of a tuning."""

    parameter: Parameter
    points: Sequence[Point]
    """The runs with the first seed."""
    trade: Trade
    """The trade-off that was found in them."""
    spread: SeedSpread
    """What differs over the seeds."""
    verdicts: Sequence[TuneVerdict]
    """Mean costs on all Machines; first that of the runs."""
    measured: TuneVerdict
    """Mean measured times."""
    theory: int | None = None
    """The value that theory demands, if there is a theory."""
    means: str = ""
    """What theory demands it for, as the module of the application says."""
    advice: Advice | None = None
    """Which value costs least on the Machine of the runs, and how sure that is."""
    took: Advice | None = None
    """The same of the measured times."""
    balance: Balance | None = None
    """The exchange of a program that divides keys at splitters."""

    @property
    def name(self) -> str:
        """Name of the parameter."""
        return self.parameter.name

    @property
    def disagrees(self) -> bool:
        """Whether measurement and model choose values that neither finds equally good."""
        model = self.verdicts[0]
        if not model.totals_s:
            return False
        alike = {self.measured.best, *self.measured.near}
        if self.took is not None:
            alike |= {*self.took.alike}
        return not {model.best, *model.near} & alike
