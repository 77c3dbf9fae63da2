"""A formula fitted to a table of times, with a band around what it predicts."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.console import Console
from bsplib.experiments.formula import FormulaError
from bsplib.profiler.predict.fit import CONFIDENCE, Fit, choose, fit_formula
from bsplib.profiler.predict.table import Timings, TimingsError
from bsplib.profiler.predict.terms import processes_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Predicted:
    """Predicted times, with the limits between which the true times are expected."""

    values: dict[str, Vector]
    times: Vector
    low: Vector
    high: Vector
    confidence: float

    def __str__(self) -> str:
        rows = zip(self.times, self.low, self.high, strict=True)
        return ", ".join(f"{time:.4g} ({low:.4g} to {high:.4g})" for time, low, high in rows)


@dataclass(frozen=True)
class TimingModel:
    """A formula fitted to a table of times; ``print`` shows it."""

    timings: Timings = field(repr=False)
    fit: Fit
    is_chosen: bool
    """Whether the program chose the terms."""

    @property
    def variables(self) -> list[str]:
        """The variables that a prediction needs."""
        return [name for name in self.timings.values if name in self.fit.formula.variables]

    def predict(
        self,
        values: Mapping[str, ArrayLike] | None = None,
        /,
        *,
        confidence: float = CONFIDENCE,
        **more: ArrayLike,
    ) -> Predicted:
        """Predict times.

        Args:
            values: values of the variables; numbers, or arrays of equal length.
            confidence: the part of the true times that has to be inside the band.
            **more: further variables by name, as in ``predict(N=2**20, P=64)``.

        Raises:
            TimingsError: a variable has no value, or a value cannot stand in the formula.
            ValueError: the confidence is not between 0 and 1.
        """
        given = {**(values or {}), **more}
        if not 0 < confidence < 1:
            raise ValueError(f"confidence is {confidence}, and has to be between 0 and 1")
        for name in (*self.variables, *given):
            if name not in given:
                raise TimingsError(f"a prediction needs a value of {name}")
            if name not in self.timings.values:
                raise TimingsError(
                    f"there is no variable {name}; the variables are {', '.join(self.variables)}"
                )
        arrays = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(value, float)) for value in given.values())
        )
        asked = dict(zip(given, arrays, strict=True))
        try:
            times = self.fit.predict(asked)
            low, high = self.fit.band(asked, confidence)
        except FormulaError as error:
            raise TimingsError(str(error)) from None
        return Predicted(asked, times, low, high, confidence)

    @property
    def untried(self) -> list[str]:
        """What the measurements cannot tell, a sentence each."""
        used = self.fit.formula.variables
        found = [
            f"{name} is {value:g} in all measurements: how the time depends on it is not known"
            for name, value in self.timings.constant.items()
        ]
        return found + [
            f"{name} varies and is not in the formula"
            for name in self.timings.varied
            if name not in used
        ]

    def as_json(self, points: Sequence[Predicted] = ()) -> dict[str, Any]:
        """Return everything in values of JSON and arrays.

        Args:
            points: predictions to add.
        """
        fitted, timings = self.fit, self.timings
        deviations = np.sqrt(np.diag(fitted.covariance)).tolist()
        found = zip(fitted.coefficients.tolist(), deviations, strict=True)
        return {
            "format": "bsp predict",
            "version": 3,
            "source": timings.source,
            "time": timings.time,
            "formula": fitted.formula.text,
            "chosen_by": "the program" if self.is_chosen else "the user",
            "coefficients": {
                name: {"value": value, "standard_deviation": deviation}
                for name, (value, deviation) in zip(fitted.formula.parameters, found, strict=True)
            },
            "misfit": {"root_mean_square": fitted.misfit, "greatest": fitted.worst},
            "doubt": fitted.doubt,
            "not_tried": self.untried,
            "as_good": [
                {"formula": each.formula.text, "weight": each.weight} for each in fitted.rivals
            ],
            "measured": timings.values,
            "times": timings.times,
            "predicted": [vars(each) for each in points],
        }

    def plot(self, path: str | Path, *, force: bool = False) -> None:
        """Draw the measurements, the formula and its band into a file.

        Args:
            path: the file; its suffix names the format.
            force: replace a file that exists.

        Raises:
            ValueError: the file cannot be written, or its suffix names no format.
        """
        from bsplib.profiler.predict.plot import plot_model  # noqa: PLC0415  # matplotlib is an extra

        plot_model(self, path, force=force)

    def __str__(self) -> str:
        from bsplib.profiler.predict.show_times import show  # noqa: PLC0415  # it imports this module

        with io.StringIO() as text:
            show(self, Console(file=text, width=100, no_color=True))
            return text.getvalue().rstrip()


def fit_timings(
    timings: Timings,
    formula: str | None = None,
    *,
    processes: str | None = None,
    negative: bool = False,
    divide: str | None = None,
) -> TimingModel:
    """Fit a formula to a table of times.

    Args:
        timings: the table.
        formula: a formula, as :mod:`bsplib.experiments.formula` reads it; default: that of the
            table, or its terms are chosen by :mod:`bsplib.profiler.predict.fit`.
        processes: the variable that is the number of processes; default: by its name.
        negative: whether coefficients of ``formula`` may be negative.
        divide: a quantity, such as ``N/P``, at some value of which the coefficients of
            ``formula`` may change; default: where the errors show a break.

    Raises:
        TimingsError: the formula cannot be read or fitted, or there are too few points.
        MissingExtraError: scipy is not installed.
    """
    values, times = timings.values, timings.times
    formula, signed = formula or timings.formula, negative or timings.signed
    if processes is not None and processes not in values:
        raise TimingsError(
            f"there is no variable {processes}; the variables are {', '.join(values)}"
        )
    count = processes or processes_of(list(values))
    place = f"{timings.source}: " if timings.source else ""
    if formula is None and len(timings) < 2:
        raise TimingsError(f"{place}1 different point is too few to choose terms")
    try:
        if formula is None:
            fitted = choose(values, times, count)
        else:
            fitted = fit_formula(
                formula, values, times, negative=signed, divide=divide, processes=count
            )
    except FormulaError as error:
        raise TimingsError(place + str(error).removeprefix("formula: ")) from None
    return TimingModel(timings, fitted, formula is None)
