"""A farm and a pipeline with real work: the Mandelbrot set by rows, and frames of a noisy film.

The rows of the Mandelbrot set are uneven tasks: those that cross the set take many times as long
as those beside it. The pipeline makes frames, smooths them, and finds the brightest place of each
and how far it is above the others.

Source: Shi, section 9, for the fractal as a bag of tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.paradigms.farm import farm, split
from bsplib.apps.paradigms.pipeline import pipeline

Numbers = NDArray[np.float64]

LIMIT = 400
"""Most iterations of a pixel."""
_EXPOSURES = 4
"""Noisy pictures that make a frame."""
SHARES: dict[str, Callable[..., Any]] = {
    "farm": farm,
    "blocks": split,
    "in turn": partial(split, in_turn=True),
}
"""Ways to share out tasks."""


@dataclass(frozen=True)
class TaskTimes:
    """What a process spent on its tasks, and how long it took part."""

    result: Any
    busy_s: float
    took_s: float


def row(n: int, number: int) -> NDArray[np.int32]:
    """Return the iterations of the pixels of one of n rows of the Mandelbrot set's upper half."""
    place = np.linspace(-2.0, 0.5, n) + 1j * 1.25 * (number + 0.5) / n
    value, counts = np.zeros(n, complex), np.zeros(n, np.int32)
    inside = np.arange(n)
    for _ in range(LIMIT):
        value[inside] = value[inside] ** 2 + place[inside]
        inside = inside[abs(value[inside]) < 2]
        if not len(inside):
            break
        counts[inside] += 1
    return counts


def fractal(bsp: bsplib.Group, n: int, how: str = "farm", costs: Sequence[float] = ()) -> TaskTimes:
    """Compute the Mandelbrot set, its rows shared out as ``how`` says.

    Args:
        bsp: the group.
        n: pixels on each side.
        how: one of ``SHARES``.
        costs: seconds of each row, to run on virtual processors without computing it.
    """
    spent = 0.0

    def work(number: int) -> Any:
        nonlocal spent
        began = bsp.time()
        if len(costs):
            bsp.charge(costs[number])
        found = None if len(costs) else row(n, number)
        spent += bsp.time() - began
        return found

    if len(costs):
        bsp.charge(0.0)
    bsp.sync()
    began = bsp.time()
    rows = SHARES[how](bsp, work, range(n))
    bsp.sync()
    return TaskTimes(rows, spent, bsp.time() - began)


def film(
    bsp: bsplib.Group,
    count: int,
    size: int = 256,
    capacity: int = 4,
    costs: Sequence[Sequence[float]] = (),
) -> TaskTimes:
    """Find the brightest place of each frame of a film; process 0 returns the places.

    Args:
        bsp: the group.
        count: number of frames.
        size: pixels on each side.
        capacity: how many frames may wait between two stages.
        costs: seconds of each stage and frame, to run on virtual processors without computing.
    """
    spent = 0.0

    def timed(stage: int, work: Callable[[Any], Any], group: bsplib.Group, item: Any) -> Any:
        nonlocal spent
        began = group.time()
        if len(costs):
            group.charge(costs[stage][item])
        found = item if len(costs) else work(item)
        spent += group.time() - began
        return found

    if len(costs):
        bsp.charge(0.0)
    stages = [partial(timed, number, work) for number, work in enumerate(film_stages(size))]
    bsp.sync()
    began = bsp.time()
    found = pipeline(bsp, stages, range(count), capacity=capacity)
    bsp.sync()
    return TaskTimes(found, spent, bsp.time() - began)


def film_stages(size: int) -> tuple[Callable[[Any], Any], ...]:
    """Return the functions of the stages: each takes what the one before returned."""
    return partial(_frame, size), _smooth, _brightest


def _frame(size: int, number: int) -> Numbers:
    random = np.random.default_rng(number)
    frame = random.standard_normal((_EXPOSURES, size, size)).mean(axis=0)
    frame[tuple(random.integers(size, size=2))] += 40.0
    return frame


def _smooth(frame: Numbers) -> Numbers:
    waves = np.fft.fft2(frame)
    far = np.hypot(*np.meshgrid(*(np.fft.fftfreq(len(frame)),) * 2))
    smooth: Numbers = np.fft.ifft2(waves * np.exp(-20.0 * far**2)).real
    return smooth


def _brightest(frame: Numbers) -> tuple[int, int]:
    above = frame - np.median(frame)
    spread = np.percentile(abs(above), 90)
    y, x = divmod(int((above / spread).argmax()), len(frame))
    return y, x
