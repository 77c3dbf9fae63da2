"""The content of the JSON files as texts and rows, for the README and the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.document import Document, read
from benchmarks.goals import DIFFERENCE, DIFFERENT, LINES, PEAK, RATIO, SPREAD, WITHIN

_ORDER = ("primitives", "recording", "start", "programs", "virtual", "faults", "mpi")
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def documents(folder: Path) -> list[Document]:
    """Return the contents of the JSON files of a folder: primitives first, applications last."""
    found = [read(path) for path in folder.glob("*.json")]
    measured = [document for document in found if "sections" in document]  # not predictions
    return sorted(measured, key=_place)


def _place(document: Document) -> tuple[int, str]:
    name = document["benchmark"]
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


# -- goals ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class GoalFigures:
    """A goal, and how far it is met."""

    section: str
    case: str
    took: str
    goal: str
    median: str
    quartiles: str
    of_least: str
    """The same figure, computed from the least sample of each case."""
    met: bool | None
    """None if the other case was not measured."""

    @property
    def verdict(self) -> str:
        """Say whether the goal is met."""
        return {True: "yes", False: "no", None: "not measured"}[self.met]


def goals(found: Sequence[Document]) -> list[GoalFigures]:
    """Return a row for each goal of the documents."""
    return [
        _row(section["title"], case, goal)
        for document in found
        for section in document["sections"]
        for case in section["cases"]
        for goal in case.get("goals", ())
    ]


def _row(section: str, case: dict[str, Any], goal: dict[str, Any]) -> GoalFigures:
    known = (section, case["name"], duration(case["seconds"]["median"]), _goal(goal))
    if goal["measured"] is None:
        return GoalFigures(*known, "", "", "", None)
    if goal["kind"] == SPREAD:
        spread = quartiles(case["seconds"])
        return GoalFigures(*known, percent(goal["measured"]), spread, "", goal["met"])
    if goal["kind"] in _COUNTED:
        counted = _COUNTED[goal["kind"]](goal["measured"])
        return GoalFigures(*known, counted, "", "", goal["met"])
    values, of_least = _figures(case, goal)
    if goal["kind"] not in (RATIO, WITHIN):
        measured, spread = duration(values["median"]), quartiles(values)
        return GoalFigures(*known, measured, spread, duration(of_least), goal["met"])
    spread = f"{number(values['lower_quartile'])} to {number(values['upper_quartile'])}"
    return GoalFigures(*known, times(values["median"]), spread, times(of_least), goal["met"])


def _goal(goal: dict[str, Any]) -> str:
    limit, other = goal["at_most"], goal["of"]
    if goal["kind"] == SPREAD:
        return f"quartiles within {percent(limit)} of the median"
    if goal["kind"] == PEAK:
        return f"at most {memory(limit)} of memory"
    if goal["kind"] == LINES:
        return f"fewer lines than {other}: at most {limit}"
    if goal["kind"] == DIFFERENT:
        return f"at most {limit} results other than {other}"
    return f"at most {duration(limit)}" if other is None else _compared(goal["kind"], limit, other)


def _compared(kind: str, limit: float, other: str) -> str:
    if kind == DIFFERENCE:
        return f"at most {duration(limit)} over {other}"
    if kind == WITHIN:
        return f"within {percent(limit)} of {other}"
    return f"at most {other}" if limit == 1 else f"at most {times(limit)} {other}"


def _figures(case: dict[str, Any], goal: dict[str, Any]) -> tuple[dict[str, float], float]:
    """Return the summary of a goal's figure, and the same figure from the least samples."""
    if goal["of"] is None:
        return case["seconds"], case["seconds"]["least"]
    found = case["against"][goal["of"]]
    if goal["kind"] == DIFFERENCE:
        return found[DIFFERENCE], found["difference_of_least_s"]
    return found[RATIO], found["ratio_of_least"]


def tally(rows: Sequence[GoalFigures]) -> str:
    """Say how many of the goals are met."""
    met = sum(row.met is True for row in rows)
    unknown = sum(row.met is None for row in rows)
    return f"{met} of {len(rows)} goals are met" + (f", {unknown} not measured" if unknown else "")


# -- comparisons ----------------------------------------------------------------------------


def quartiles(took: dict[str, float]) -> str:
    """Return the quartiles of seconds."""
    return f"{duration(took['lower_quartile'])} to {duration(took['upper_quartile'])}"


def ratios(against: dict[str, Any]) -> Iterator[str]:
    """Say how many times as long as others a case took."""
    for other, found in against.items():
        ratio = found["ratio"]
        yield (
            f"{number(ratio['median'])} ({number(ratio['lower_quartile'])} to "
            f"{number(ratio['upper_quartile'])}) times {other}"
        )


def comparisons(against: dict[str, Any]) -> Iterator[str]:
    """Say how many times as long as others a case took, and how much longer."""
    for ratio, found in zip(ratios(against), against.values(), strict=True):
        more = found["difference_s"]["median"]
        yield f"{ratio}, {'+' if more >= 0 else ''}{duration(more)}"


# -- numbers --------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """Return seconds with three digits and a suitable unit."""
    size, name = next((unit for unit in _UNITS if abs(seconds) >= unit[0]), _UNITS[-1])
    return f"{number(seconds / size)} {name}"


def memory(size_bytes: float) -> str:
    """Return bytes in GiB with three digits."""
    return f"{number(size_bytes / 2**30)} GiB"


def times(ratio: float) -> str:
    """Return a ratio in words."""
    return f"{number(ratio)} times"


def percent(part: float) -> str:
    """Return a fraction in percent."""
    return f"{number(100 * part)}%"


def number(value: float) -> str:
    """Return a number with three digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(2 - math.floor(math.log10(abs(value))), 0)
    sign = "−" if value < 0 else ""  # noqa: RUF001  # a minus sign
    return f"{sign}{abs(value):.{digits}f}"


_COUNTED: dict[str, Callable[[float], str]] = {
    PEAK: memory,
    LINES: "{:.0f} lines".format,
    DIFFERENT: "{:.0f} results".format,
}
"""How a figure is written that is a number of its own, by the kind of its goal."""
