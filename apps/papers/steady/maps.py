"""What-if maps: speedup or efficiency over any two parameters, as numbers and as a picture."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.papers.steady.model import Algorithm, SteadySetting, numbers
from bsplib.profiler import plotting

METRICS = ("speedup", "efficiency")
_STEPS = 33
_RANGE = re.compile(r"(\w+)=([^:]+):([^:]+)")


@dataclass(frozen=True)
class Axis:
    """A parameter and its values, in a geometric series."""

    name: str
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Map:
    """A metric over two parameters."""

    x: Axis
    y: Axis
    metric: str
    values: NDArray[np.float64]
    """Rows by y, columns by x."""


def parse_axis(text: str, steps: int = _STEPS) -> Axis:
    """Read ``W=1e6:1e9``: a parameter with its least and its greatest value.

    Raises:
        ValueError: the text has another form, or there is no such parameter.
    """
    found = _RANGE.fullmatch(text.strip())
    low, high = (_number(found[2]), _number(found[3])) if found else (None, None)
    if found is None or low is None or high is None:
        raise ValueError(f"{text!r} is no range; write it as W=1e6:1e9")
    known = numbers(SteadySetting())
    if found[1] not in known:
        raise ValueError(f"there is no parameter {found[1]!r}; there are {', '.join(known)}")
    if not 0 < low < high < math.inf:
        raise ValueError(f"{text!r}: the first value is above 0 and less than the second")
    values = np.geomspace(low, high, steps)
    return Axis(found[1], np.unique(values.round()) if found[1] == "P" else values)


def parse_point(texts: Iterable[str]) -> dict[str, float]:
    """Read ``n=1e6,P=2^4``: values of parameters.

    Raises:
        ValueError: the text has another form, or there is no such parameter.
    """
    point: dict[str, float] = {}
    known = numbers(SteadySetting())
    for part in ",".join(texts).split(",") if texts else ():
        name, _, text = (each.strip() for each in part.partition("="))
        base, power, exponent = text.partition("^")
        value, times = _number(base), _number(exponent) if power else 1.0
        if value is None or times is None:
            raise ValueError(f"{part!r} is no value; write it as n=1e6 or n=2^20")
        if name not in known:
            raise ValueError(f"there is no parameter {name!r}; there are {', '.join(known)}")
        point[name] = value**times
    return point


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def draw_map(algorithm: Algorithm, setting: SteadySetting, x: Axis, y: Axis, metric: str) -> Map:
    """Compute a map.

    Raises:
        ValueError: both axes have one parameter, or a value is not valid.
    """
    if x.name == y.name:
        raise ValueError(f"both axes have the parameter {x.name}; name two")
    of = algorithm.speedup if metric == "speedup" else algorithm.efficiency
    values = [[of(setting.with_(**{x.name: a, y.name: b})) for a in x.values] for b in y.values]
    return Map(x, y, metric, np.array(values))


def save_map(path: Path, title: str, drawn: Map, *, force: bool = False) -> None:
    """Draw a map with its contours into a file.

    Raises:
        ValueError: the file cannot be written.
    """
    figure = plotting.new_figure(7.5, 5.2)
    axes = figure.subplots()
    mesh = axes.pcolormesh(
        drawn.x.values, drawn.y.values, drawn.values, cmap="viridis", shading="nearest"
    )
    lines = axes.contour(
        drawn.x.values, drawn.y.values, drawn.values, colors="white", linewidths=0.8
    )
    axes.clabel(lines, fontsize=8, fmt="%g")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(_LABELS[drawn.x.name])
    axes.set_ylabel(_LABELS[drawn.y.name])
    axes.set_title(plotting.plain(title))
    figure.colorbar(mesh, label=drawn.metric)
    plotting.save(figure, path, force=force)


_LABELS = {
    "n": "n, size of the problem",
    "P": "P, processors",
    "W": "W, steps a second of each processor",
    "u": "u, bytes a second of the network",
    "B": "B, bytes a second of the disk",
    "c": "c, steps for each input",
    "d": "d, bytes for each input",
}
