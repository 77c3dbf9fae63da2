"""What several runs of one program say together: intervals, and what holds in most runs.

``bsp run --repeat N`` records N repeats of a script into one trace. Of them the run of median
time is shown; each of its sentences is looked for in the others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler import format as fmt
from bsplib.profiler.account import PARTS
from bsplib.profiler.survey import elapsed_s
from bsplib.profiler.verdict import tells_remedy
from bsplib.recording.records import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.profiler.loss import Loss
    from bsplib.profiler.profile import RunProfile


CONFIDENCE = 0.9
"""The part of all further runs that lie in their interval."""
_STUDENT = (6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331)
"""Student's t with 0.05 above it, by degrees of freedom from 1 on."""
_PART = f"{round(10 * CONFIDENCE)} of 10"


class RepeatInterval(NamedTuple):
    """A sentence of the run of median time, in all repeats."""

    sentence: Loss
    least_s: float
    greatest_s: float
    """The greatest seconds of all repeats that have a sentence of this kind about this place."""
    found: int
    """Number of repeats with such a sentence."""
    repeats: int
    without_s: tuple[float, float] | None = None
    """Between which times a further run would lie in which this alone is mended, in nine of ten
    cases (:mod:`bsplib.profiler.repeats`); None where the sentence does not say what a run would
    take, or in fewer than two repeats."""

    @property
    def is_sure(self) -> bool:
        """Whether it holds in most repeats: what happened once is not the program's."""
        return 2 * self.found > self.repeats

    def __str__(self) -> str:
        among = f"in {self.found} of {self.repeats} runs"
        if not self.is_sure:
            return f"only {among}, so that it is probably not the program's"
        told = f"{fmt.seconds(self.least_s)} to {fmt.seconds(self.greatest_s)}, {among}"
        if self.without_s is None:
            return told
        least, greatest = map(fmt.seconds, self.without_s)
        return f"{told}; {_PART} mended runs would take {least} to {greatest}"


class Repeats(NamedTuple):
    """The repeats of one run of a program."""

    median: RunProfile
    """The one of median time."""
    runs: tuple[RunProfile, ...]

    def intervals(self, run: RunProfile | None = None) -> list[RepeatInterval]:
        """Return the sentences of a run, those that hold in most runs first.

        Args:
            run: one of the runs; default: that of median time.
        """
        shown = self.median if run is None else run
        told = []
        for sentence in shown.verdict().sentences:
            alike = [
                [other for other in each.verdict().sentences if _is_about_it(sentence, other)]
                for each in self.runs
            ]
            found = [each[0] for each in alike if each]
            seconds = [each.seconds for each in found]
            without = [each.without_s for each in found if each.without_s is not None]
            is_told = len(without) == len(found) and tells_remedy(sentence)
            next_s = next_run_s(without) if is_told else None
            counts = len(found), len(self.runs)
            told.append(RepeatInterval(sentence, min(seconds), max(seconds), *counts, next_s))
        return sorted(told, key=lambda each: not each.is_sure)

    def account_s(self) -> dict[str, tuple[float, float]]:
        """Return the least and the greatest seconds of each part of the account.

        They are averages over the processes, as in a sentence.
        """
        wholes = [run.book().book.whole() for run in self.runs]
        scale = 1e9 * self.median.nprocs
        return {
            part: (min(each[part] for each in wholes) / scale, max(e[part] for e in wholes) / scale)
            for part in PARTS
        }

    def elapsed(self) -> str:
        """Return how long the runs took."""
        times = sorted(run.elapsed_s for run in self.runs)
        return f"{fmt.seconds(times[0])} to {fmt.seconds(times[-1])} in {len(times)} runs"


def _is_about_it(sentence: Loss, other: Loss) -> bool:
    """Tell whether two sentences are about the same kind of loss, process and cost centre.

    Of several cost centres each may lose most in another run.
    """
    if (sentence.kind, sentence.pids) != (other.kind, other.pids):
        return False
    return sentence.node == other.node or not {*sentence.nodes}.isdisjoint(other.nodes)


def gathered(runs: Iterable[RunProfile]) -> list[Repeats]:
    """Gather the repeats of each run of a program; a run that was not repeated is alone.

    A script that calls ``bsplib.run`` several times has as many in each repeat: the first of
    one belongs to the first of the others.
    """
    listed = list(runs)
    found = []
    for positions in same_runs([run.run.repeat for run in listed]):
        group = [listed[position] for position in positions]
        found.append(Repeats(group[median([run.elapsed_s for run in group])], tuple(group)))
    return found


def same_runs(repeats: Sequence[tuple[int, int] | None]) -> list[list[int]]:
    """Return the positions of runs that repeat each other, by which repeat each of them is."""
    groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    passed: defaultdict[tuple[int, int], int] = defaultdict(int)
    for position, repeat in enumerate(repeats):
        if repeat is None:
            groups["alone", position].append(position)
            continue
        groups["repeated", repeat[1], passed[repeat]].append(position)
        passed[repeat] += 1
    return list(groups.values())


def shown_run(runs: Sequence[Run]) -> int:
    """Return the position of the run that is shown where one is: the last, or of its repeats one.

    That is the one of median time; of runs whose records are not read, as their callers saw it.
    """
    groups = same_runs([run.repeat for run in runs])
    group = next((each for each in groups if len(runs) - 1 in each), [0])
    return group[0] if len(group) == 1 else group[median([_time_s(runs[at]) for at in group])]


def _time_s(run: Run) -> float:
    if len(run.table("records")):
        return elapsed_s(run)
    life = run.lifetime
    return 0.0 if life is None or life.returned is None else (life.returned - life.called) / 1e9


def median(times: Sequence[float]) -> int:
    """Return the position of the median of some times; of an even number the lower one."""
    ordered = sorted(range(len(times)), key=lambda position: times[position])
    return ordered[(len(ordered) - 1) // 2]


# -- between which times a further run would lie ---------------------------------------------------


def next_run_s(times: Sequence[float]) -> tuple[float, float] | None:
    """Return between which times a further run would lie, in ``CONFIDENCE`` of all cases.

    The least and the greatest of n times are no such interval: of n + 1 runs in random order, the
    last one is beyond the n others in 2 of n + 1 cases. A further run scatters as much as those
    that are known, and their mean is uncertain, too. With mean m and standard deviation s of n
    values from one normal distribution, a further value lies in

        m - t s sqrt(1 + 1/n)   to   m + t s sqrt(1 + 1/n)

    with the probability to which t, the quantile of Student's distribution for n - 1 degrees of
    freedom, belongs. Here the values are the logarithms of times: disturbances lengthen a run by a
    part of it, and no time is negative.

    Source: the prediction interval of a normal distribution whose mean and variance are not known
    (Hahn and Meeker, Statistical Intervals, 1991, chapter 4).

    Args:
        times: of the runs that are known, in seconds, under the same conditions.

    Returns:
        Least and greatest seconds; None of fewer than two times, or where one is not positive.
    """
    if len(times) < 2 or min(times) <= 0:
        return None
    logs = [math.log(time) for time in times]
    middle = fmean(logs)
    reach = _student(len(logs) - 1) * stdev(logs, middle) * math.sqrt(1 + 1 / len(logs))
    return math.exp(middle - reach), math.exp(middle + reach)


def _student(freedom: int) -> float:
    """Return Student's t for ``CONFIDENCE``; for many degrees of freedom by an expansion.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5, of which two terms
    are off by less than 0.1% from 10 degrees of freedom on.
    """
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
