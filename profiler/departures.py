"""Where the measured communication of supersteps departs from ``g h + l``.

One point for each superstep: its h-relation, the time its communication took, and the time
that ``g h + l`` gives for it. A point far above the line is a superstep that the model does
not describe: a fan-in whose receiver is slow, a cold cache, a process without a core.

Source: the G graph of bspprof; Jarvis et al. 2002, section 2.1, for the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.profiler._numbering import blocks
from bsplib.profiler.costs import communication_ns, h_relation, superstep_numbers
from bsplib.profiler.window import hand_out
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class ExchangeSide(IntEnum):
    """Which side of the greatest exchange of a superstep carries more bytes."""

    EVEN = 0
    """The greatest h_in and the greatest h_out are equal."""
    FAN_IN = 1
    """Some process receives more than any process sends."""
    FAN_OUT = 2
    """Some process sends more than any process receives."""


@dataclass(frozen=True)
class Departures:
    """The supersteps of all groups that ended with a sync. All arrays have equal lengths."""

    group: Ints
    """Position in ``run.groups``."""
    superstep: Ints
    """Number in its group."""
    root: Ints
    """Number of the superstep of the root group in which it took place."""
    record: Ints
    """Position of the record with the greatest h, of equals the first."""
    h: Floats
    """Greatest h of a process, in bytes."""
    pattern: Ints
    """A :class:`ExchangeSide`."""
    comm_s: Floats
    """Greatest communication time of a process."""
    predicted_s: Floats
    """``g h + l``."""

    @property
    def over_s(self) -> Floats:
        """Measured time above the prediction; negative where it was faster."""
        return self.comm_s - self.predicted_s

    def of(self, rows: NDArray[np.intp] | slice) -> Departures:
        """Return some of the supersteps."""
        return Departures(**{name: values[rows] for name, values in vars(self).items()})

    def farthest(self, most: int) -> Departures:
        """Return the supersteps that depart most, in seconds, in either direction."""
        return self.of(np.argsort(-np.abs(self.over_s), kind="stable")[:most])

    def thinned(self, most: int) -> tuple[Departures, Ints]:
        """Return about ``most`` supersteps, at most, that look like all of them in a plot.

        Of supersteps with nearly the same h, time and pattern, the one that departs most
        stands for all. Nearly the same means the same cell of a logarithmic grid.

        Returns:
            The supersteps, and for how many each of them stands.
        """
        if len(self.h) <= most:
            return self, np.ones(len(self.h), np.int64)
        side = max(int((most / len(ExchangeSide)) ** 0.5), 1)
        cells = _logarithmic(self.h, side) * side + _logarithmic(self.comm_s, side)
        order = np.argsort(-np.abs(self.over_s), kind="stable")
        cells = cells * len(ExchangeSide) + self.pattern
        first = np.full(int(cells.max()) + 1, -1, np.int64)
        first[cells[order[::-1]]] = order[::-1]  # of several the last one stays
        count = np.bincount(cells)
        return self.of(first[first >= 0]), count[count > 0]


def departures(run: Run, g: float, l: float, rule: str = "max") -> Departures:  # noqa: E741  # the name in the field
    """Return how far each superstep departs from ``g h + l``.

    Args:
        run: the run.
        g: seconds for each byte.
        l: seconds for each superstep.
        rule: h of a process: ``max`` or ``sum`` of the bytes in and the bytes out.
    """
    taker = DepartureRows(run, g, l, rule)
    hand_out(run, [taker])
    return taker.close()


class DepartureRows:
    """Takes in the windows of a run for :func:`departures`, which describes the arguments."""

    def __init__(self, run: Run, g: float, l: float, rule: str = "max") -> None:  # noqa: E741  # the name in the field
        self._run, self._prices = run, (g, l, rule)
        self._names = [field.name for field in fields(Departures)]
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in self._names}

    def add(self, window: RunWindow) -> None:
        """Take in the supersteps of a window."""
        found = _of_window(window, *self._prices)
        for name in self._names:
            self._parts[name].append(getattr(found, name))

    def close(self) -> Departures:
        """Return the departures, when all windows have been taken in."""
        run, names, parts = self._run, self._names, self._parts
        if not parts["h"]:
            whole, some = np.zeros(0, np.int64), np.zeros(0)
            return Departures(whole, whole, whole, whole, some, whole, some, some)
        if len(run.groups) == 1:
            del parts["root"]  # it is the superstep itself
        # One column after the other, since a long run has many supersteps.
        every = {name: np.concatenate(parts.pop(name)) for name in names if name in parts}
        if len(run.groups) == 1:
            return Departures(root=every["superstep"], **every)
        order = np.argsort(every["group"], kind="stable")  # by group and number
        return Departures(**{name: values[order] for name, values in every.items()})


def _of_window(window: RunWindow, g: float, l: float, rule: str) -> Departures:  # noqa: E741
    """Return the departures of the supersteps in a window."""
    run, fresh = window.run, window.fresh
    records = run.records[fresh]
    numbers = superstep_numbers(run)[fresh] - window.halo_steps
    h_out, h_in = (values[fresh] for values in h_relation(run))
    h = h_out + h_in if rule == "sum" else np.maximum(h_out, h_in)
    count = int(numbers.max(initial=-1)) + 1

    def greatest(values: Floats) -> Floats:
        most = np.zeros(count)
        np.maximum.at(most, numbers, values)
        return most

    most_h, most_in, most_out = greatest(h), greatest(h_in), greatest(h_out)
    row = np.zeros(count, np.int64)
    leading = np.flatnonzero(h == most_h[numbers])[::-1]
    row[numbers[leading]] = leading
    pattern = np.where(most_in > most_out, ExchangeSide.FAN_IN, ExchangeSide.EVEN)
    pattern[most_out > most_in] = ExchangeSide.FAN_OUT
    every = Departures(
        group=records["group"][row],
        superstep=_short(records["superstep"][row]),
        root=window.root_supersteps()[row],
        record=_short(window.position[row]),
        h=most_h,
        pattern=pattern.astype(np.int8),
        comm_s=greatest(communication_ns(records).astype(np.float64)) / 1e9,
        predicted_s=g * most_h + l,
    )
    synced = np.zeros(count, bool)
    synced[numbers[records["kind"] != Kind.END]] = True
    return every.of(np.flatnonzero(synced))


def _short(numbers: Ints) -> Ints:
    """Return numbers that are not negative, in half the memory where all of them are small."""
    if numbers.max(initial=0) > np.iinfo(np.int32).max:
        return numbers
    return numbers.astype(np.int32)


def by_place(
    found: Departures, place_of: Callable[[Departures], Ints], count: int
) -> tuple[Floats, Ints]:
    """Sum up departures by cost centre.

    Args:
        found: the supersteps.
        place_of: returns the number of the cost centre of each of some supersteps.
        count: number of cost centres.

    Returns:
        For each cost centre the sum of departures in seconds, and its number of supersteps.
    """
    over_s, supersteps = np.zeros(count), np.zeros(count, np.int64)
    for rows in blocks(len(found.h)):
        part = found.of(rows)
        place = place_of(part)
        over_s += np.bincount(place, part.over_s, count)
        supersteps += np.bincount(place, minlength=count)
    return over_s, supersteps


def _logarithmic(values: Floats, steps: int) -> NDArray[np.int32]:
    """Return on which of ``steps`` steps of a logarithmic scale each value lies, from 0."""
    positive = values[values > 0]
    if len(positive) == 0:
        return np.zeros(len(values), np.int32)
    low, high = np.log(positive.min()), np.log(positive.max())
    logs = np.log(np.maximum(values, positive.min()))
    scaled: NDArray[np.int32] = ((logs - low) / max(high - low, 1e-9) * (steps - 1)).astype(
        np.int32
    )
    return scaled
