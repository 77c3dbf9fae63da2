"""A table of measured times: variables, and a time for each point."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bsplib.errors import UsageError
from bsplib.experiments.formula import FUNCTIONS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Vector = NDArray[np.float64]

OF_REPEATS: dict[str, Callable[[NDArray[np.float64]], np.floating[Any]]] = {
    "least": np.min,
    "median": np.median,
    "mean": np.mean,
}
"""What counts of several measurements at one point."""


class TimingsError(UsageError):
    """A table of times cannot be read or used; the text is one sentence."""


@dataclass(frozen=True)
class Timings:
    """Measured times at points, each of which occurs once."""

    values: dict[str, Vector] = field(repr=False)
    """Values of the variables by name, one element for each point."""
    times: Vector = field(repr=False)
    """The times, greater than 0, in any unit."""
    time: str = "time"
    """Name of the time."""
    source: str = ""
    """Where the table comes from."""
    repeats: int = 1
    """Greatest number of measurements at one point."""
    renamed: dict[str, str] = field(default_factory=dict)
    """New names of variables by the names in the source that cannot stand in a formula."""
    formula: str | None = None
    """What the program says of its time, or a user said before."""
    signed: bool = False
    """Whether coefficients of this formula may be negative."""

    @classmethod
    def of(
        cls,
        values: Mapping[str, ArrayLike],
        times: ArrayLike,
        *,
        time: str = "time",
        source: str = "",
        of_repeats: str = "least",
    ) -> Timings:
        """Make a table of measurements.

        Args:
            values: values of the variables by name, one element for each measurement.
            times: the measured times, greater than 0, in any unit.
            time: name of the time.
            source: where the measurements come from, for errors.
            of_repeats: what counts of several times at one point: ``"least"``, ``"median"``
                or ``"mean"``. Disturbances only make a program slower: hence the least.

        Raises:
            TimingsError: there are no times, a time is not greater than 0, or a value is
                not a finite number.
        """
        place = f"{source}: " if source else ""
        measured = np.atleast_1d(np.asarray(times, np.float64))
        names = _names(list(values))
        columns = {
            names[name]: np.broadcast_to(np.asarray(column, np.float64), measured.shape)
            for name, column in values.items()
        }
        _check(place, time, columns, measured)
        if of_repeats not in OF_REPEATS:
            raise TimingsError(f"{of_repeats!r} is none of {', '.join(OF_REPEATS)}")
        stacked = np.stack([*columns.values(), np.zeros(len(measured))])
        points, which, counts = np.unique(stacked, axis=1, return_inverse=True, return_counts=True)
        which = which.ravel()
        reduced = np.array(
            [OF_REPEATS[of_repeats](measured[which == number]) for number in range(len(counts))]
        )
        return cls(
            dict(zip(columns, points, strict=False)),
            reduced,
            time,
            source,
            int(counts.max()),
            {old: new for old, new in names.items() if old != new},
        )

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.times)

    @property
    def varied(self) -> list[str]:
        """The variables that have more than one value."""
        return [name for name, column in self.values.items() if np.ptp(column) > 0]

    @property
    def constant(self) -> dict[str, float]:
        """The variables that have one value, with it."""
        return {
            name: float(column[0]) for name, column in self.values.items() if np.ptp(column) == 0
        }


def _check(place: str, time: str, columns: Mapping[str, Vector], measured: Vector) -> None:
    if not len(measured):
        raise TimingsError(f"{place}there are no measurements")
    for name, column in columns.items():
        if not np.isfinite(column).all():
            raise TimingsError(f"{place}a value of {name} is {column[~np.isfinite(column)][0]}")
    right = np.isfinite(measured) & (measured > 0)
    if not right.any():
        raise TimingsError(f"{place}no time {time} is greater than 0, so there is nothing to fit")
    if not right.all():
        row = int(np.flatnonzero(~right)[0])
        at = ", ".join(f"{name} = {column[row]:g}" for name, column in columns.items())
        raise TimingsError(
            f"{place}{time} is {measured[row]:g} at {at or 'the only point'}, and errors count in "
            f"proportion to the time; leave such rows out, or measure many repeats at once"
        )


def _names(names: Sequence[str]) -> dict[str, str]:
    """Return for each name one that can stand in a formula."""
    found: dict[str, str] = {}
    for name in names:
        new = re.sub(r"\W+", "_", name.strip()).strip("_") or "x"
        if new[0].isdecimal():
            new = f"x{new}"
        while new in FUNCTIONS or keyword.iskeyword(new) or new in found.values():
            new += "_"
        found[name] = new
    return found
