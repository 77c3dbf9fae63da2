"""A fitted formula as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bsplib.profiler.models.fit import Interval, Segment
    from bsplib.profiler.timings.model import Predicted, TimingModel

VERSION = 1


def document(model: TimingModel, points: Mapping[str, Predicted]) -> dict[str, Any]:
    """Return a fitted formula and predictions as numbers and text that JSON holds."""
    fitted, timings, band = model.fit, model.timings, model.band
    predicted = fitted.predict(timings.values)
    rivals = model.choice.rivals if model.choice else ()
    return {
        "format": "bsp fit",
        "version": VERSION,
        "source": timings.source,
        "time": timings.time,
        "formula": fitted.formula.text,
        "chosen_by": "the user" if model.choice is None else "the program",
        "divided_by": _quantity(model),
        "coefficients": {
            name: [_interval(each) for each in own] for name, own in fitted.intervals.items()
        },
        "segments": [_segment(segment) for segment in fitted.segments],
        "misfit": {"root_mean_square": band.noise, "greatest": _worst(model)},
        "trials": {
            "regions": band.regions,
            "predictions": len(band.errors),
            "errors": [float(error) for error in band.errors],
        },
        "band_is_calibrated": band.is_calibrated,
        "doubt": fitted.doubt,
        "missing": None if model.missing is None else asdict(model.missing),
        "not_tried": model.untried,
        "as_good": [{"formula": each.formula, "score": each.score} for each in rivals],
        "measured": [
            {
                **{name: float(column[row]) for name, column in timings.values.items()},
                "time": float(timings.times[row]),
                "fitted": float(np.broadcast_to(predicted, timings.times.shape)[row]),
            }
            for row in range(len(timings))
        ],
        "predicted": [_predicted(name, each) for name, each in points.items()],
    }


def _quantity(model: TimingModel) -> str | None:
    """Return what separates the segments."""
    divided = model.fit.divided_by
    return None if divided is None else divided.text.rpartition("*")[0][1:-1]


def _worst(model: TimingModel) -> float:
    return max(segment.worst for segment in model.fit.segments)


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        "above": interval.low if math.isfinite(interval.low) else None,
        "up_to": interval.high if math.isfinite(interval.high) else None,
        "value": interval.value,
        "standard_deviation": interval.error,
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "above": segment.low if math.isfinite(segment.low) else None,
        "up_to": segment.high if math.isfinite(segment.high) else None,
        "coefficients": segment.coefficients,
        "measurements": segment.measurements,
        "spread": segment.spread,
        "greatest_error": segment.worst,
    }


def _predicted(name: str, predicted: Predicted) -> dict[str, Any]:
    return {
        "name": name,
        "values": {each: column.tolist() for each, column in predicted.values.items()},
        "times": predicted.times.tolist(),
        "low": predicted.low.tolist(),
        "high": predicted.high.tolist(),
        "confidence": predicted.confidence,
        "is_calibrated": predicted.is_calibrated,
    }
