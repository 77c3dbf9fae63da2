"""The accuracy with which OBSP* predicts large runs of the applications from small ones.

The figure is the mean relative error of the totals. To fit into the form of a comparison,
the case "missed by" is the mean of |measured - predicted| / measured, times the mean of the
measured times: so the ratio of the two cases is the mean error. Computation and
communication are further cases, each compared with its own measured time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from bsplib.apps.prediction.experiments import EXPERIMENTS, RunSetup, Shape, Taken
from bsplib.apps.prediction.prediction import LargeRun, ProgramPrediction, predict

SMALL = 2**17
VIRTUAL = (Shape(2**21, 16),)
"""N and P of Table 3 of Gonzalez et al., from P <= 4."""
REAL = tuple(Shape(2**power, 2) for power in (18, 19, 20, 21))
_REPEATS = 9
_MOST = 0.05

Part = Callable[[Taken], float]
_PARTS: dict[str, Part] = {
    "": lambda taken: taken.total_s,
    ", computation": lambda taken: taken.comp_s,
    ", communication": lambda taken: taken.comm_s,
}


class _Turn:
    """The prediction of a turn: the first case computes it, the others read it."""

    def __init__(self, name: str, backend: str) -> None:
        self._experiment = EXPERIMENTS[name]
        self._place = RunSetup(backend, "shared-memory", _REPEATS)
        self._rows: Sequence[LargeRun] = ()

    def measured(self) -> float:
        """Predict and measure again; return the mean of the measured times."""
        self._rows = self._predict().rows
        return self._mean(_PARTS[""])

    def part(self, part: Part) -> float:
        """Return the mean of the measured times of a part."""
        return self._mean(part)

    def missed(self, part: Part) -> float:
        """Return the mean relative error of a part, times the mean of its measured times."""
        errors = [
            abs(part(row.measured) - part(row.predicted)) / part(row.measured) for row in self._rows
        ]
        return float(np.mean(errors)) * self._mean(part)

    def _mean(self, part: Part) -> float:
        return float(np.mean([part(row.measured) for row in self._rows]))

    def _predict(self) -> ProgramPrediction:
        virtual = self._place.backend == "sim"
        small = self._experiment.small(SMALL, None if virtual else 2, fine=not virtual)
        return predict(self._experiment, self._place, small, VIRTUAL if virtual else REAL)


def _cases(name: str, backend: str, _: ExitStack) -> Sequence[Case]:
    turn = _Turn(name, backend)
    cases = []
    for title, part in _PARTS.items():
        took, missed = f"measured{title}", f"missed by{title}"
        sample = partial(turn.part, part) if title else turn.measured
        goals = () if title else (Goal.times(_MOST, took),)
        cases.append(Case(took, sample))
        cases.append(Case(missed, partial(turn.missed, part), (took,), goals))
    return cases


def sections() -> list[Section]:
    """Return what is to be measured."""
    names = {"fft": "recursive FFT", "sort": "sample sort"}
    wheres = {
        "sim": "N <= 2^17, P <= 4 to N = 2^21, P = 16 (virtual processors)",
        "shm": "N <= 2^17 to N = 2^18 .. 2^21, P = 2 (real processes)",
    }
    return [
        Section(
            f"OBSP* predicts the {title} from {where}",
            "run",
            partial(_cases, name, backend),
            repeats=3,
            warm_up=0,  # a turn takes a minute and begins with a warm-up of its own
        )
        for backend, where in wheres.items()
        for name, title in names.items()
    ]
