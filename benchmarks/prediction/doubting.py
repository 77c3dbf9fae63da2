"""Whether wrong formulas, boundaries and right formulas are told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.prediction.settings import HELD_OUT
from bsplib.experiments.formula import read_formula
from bsplib.profiler.predict.fit import Fit, fit_formula

SETTINGS: dict[str, Any] = HELD_OUT["doubts"]


def experiments(seed: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """Make all experiments; return their outcomes by kind."""
    first = SETTINGS["seed"] if seed is None else seed
    boundaries = SETTINGS["boundaries"]
    return {
        "wrong": list(_wrong(first)),
        **{
            f"boundaries at {noise:.0%} noise": list(_boundaries(first, noise))
            for noise in boundaries["noises"]
        },
        "right": list(_right(first)),
    }


def _wrong(seed: int) -> Iterator[dict[str, Any]]:
    settings = SETTINGS["wrong"]
    for number, pair in enumerate(settings["pairs"]):
        for turn in range(settings["seeds"]):
            fitted, _ = _fitted(pair, SETTINGS["noise"], [seed, 0, number, turn])
            yield {**pair, **_outcome(fitted), "as_it_should": bool(fitted.doubt)}


def _boundaries(seed: int, noise: float) -> Iterator[dict[str, Any]]:
    settings = SETTINGS["boundaries"]
    for number, case in enumerate(settings["cases"]):
        for turn in range(settings["seeds"]):
            fitted, quantity = _fitted(case, noise, [seed, 1, number, turn])
            distinct = np.unique(quantity)
            at = int(np.searchsorted(distinct, case["at"]))
            allowed = distinct[max(at - 1, 0) : at + 2]
            found = any(f"{case['of']} > {at:g}" in fitted.breaks for at in allowed)
            yield {**case, **_outcome(fitted), "as_it_should": found and not fitted.doubt}


def _right(seed: int) -> Iterator[dict[str, Any]]:
    settings = SETTINGS["right"]
    for number, case in enumerate(settings["cases"]):
        for turn in range(settings["seeds"]):
            fitted, _ = _fitted(case, SETTINGS["noise"], [seed, 2, number, turn])
            held = not fitted.doubt and not fitted.breaks
            yield {**case, **_outcome(fitted), "as_it_should": held}


def _fitted(case: Mapping[str, Any], noise: float, seed: list[int]) -> tuple[Fit, np.ndarray]:
    """Fit the given formula to times of the law; return the fit and the dividing quantity."""
    names = ["N", "P"] if "P" in case["law"] else ["N"]
    grids = np.meshgrid(*(np.array(SETTINGS[name], float) for name in names))
    values = {name: grid.ravel() for name, grid in zip(names, grids, strict=True)}
    times = _value(case["law"], values)
    quantity = _value(case["of"], values) if "of" in case else times
    if "at" in case:
        leading = _value(case["law"].rpartition(" + ")[2], values)
        times = times + np.where(quantity > case["at"], case["times"] - 1, 0) * leading
    random = np.random.default_rng(seed)
    noisy = times * np.maximum(1 + noise * random.standard_normal(len(times)), 0.1)
    processes = "P" if "P" in names else None
    return fit_formula(case["given"], values, noisy, processes=processes), quantity


def _value(text: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
    return read_formula(f"({text})*law[0]").columns(values)[0][:, 0]


def _outcome(fitted: Fit) -> dict[str, Any]:
    return {"doubt": fitted.doubt, "breaks": list(fitted.breaks)}
