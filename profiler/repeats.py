"""What several runs of one program say together: intervals, and what holds in most runs.

``bsp run --repeat N`` records N repeats of a script into one trace. Of them the run of median
time is shown; each of its sentences is looked for in the others.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.profiler.profile import RunProfile
    from bsplib.profiler.verdict import Sentence


class RepeatInterval(NamedTuple):
    """A sentence of the run of median time, in all repeats."""

    sentence: Sentence
    least_s: float
    greatest_s: float
    """Of the seconds in those repeats that have a sentence of this kind about this place."""
    found: int
    """In how many repeats there is one."""
    repeats: int

    @property
    def is_sure(self) -> bool:
        """Whether it holds in most repeats: what happened once is not the program's."""
        return 2 * self.found > self.repeats

    def __str__(self) -> str:
        among = f"in {self.found} of {self.repeats} runs"
        if not self.is_sure:
            return f"only {among}, so that it is probably not the program's"
        return f"{fmt.seconds(self.least_s)} to {fmt.seconds(self.greatest_s)}, {among}"


class Repeats(NamedTuple):
    """The repeats of one run of a program."""

    median: RunProfile
    """The one of median time."""
    runs: tuple[RunProfile, ...]

    def intervals(self) -> list[RepeatInterval]:
        """Return the sentences of the run of median time, those that hold in most runs first."""
        told = [
            RepeatInterval(each, *self._among(each)) for each in self.median.verdict().sentences
        ]
        return sorted(told, key=lambda each: not each.is_sure)

    def elapsed(self) -> str:
        """Return how long the runs took."""
        times = sorted(run.elapsed_s for run in self.runs)
        return f"{fmt.seconds(times[0])} to {fmt.seconds(times[-1])} in {len(times)} runs"

    def _among(self, sentence: Sentence) -> tuple[float, float, int, int]:
        """Return the least and greatest seconds of a sentence, and in how many runs it is."""
        alike = [
            each.seconds
            for run in self.runs
            for each in run.verdict().sentences
            if (each.kind, each.node) == (sentence.kind, sentence.node)
            and (each.who == sentence.who)
        ]
        return min(alike), max(alike), len(alike), len(self.runs)


def gathered(runs: Iterable[RunProfile]) -> list[Repeats]:
    """Gather the repeats of each run of a program; a run that was not repeated is alone.

    A script that calls ``bsplib.run`` several times has as many in each repeat: the first of
    one belongs to the first of the others.
    """
    groups: defaultdict[tuple[object, ...], list[RunProfile]] = defaultdict(list)
    passed: defaultdict[tuple[int, int], int] = defaultdict(int)
    for run in runs:
        repeat = run.run.repeat
        if repeat is None:
            groups["alone", run.number].append(run)
            continue
        groups["repeated", repeat[1], passed[repeat]].append(run)
        passed[repeat] += 1
    return [Repeats(_median(group), tuple(group)) for group in groups.values()]


def _median(runs: Sequence[RunProfile]) -> RunProfile:
    ordered = sorted(runs, key=lambda run: run.elapsed_s)
    return ordered[(len(ordered) - 1) // 2]
