"""How even the parts of a sort get: predicted before the runs, by the splitters' order statistics.

A program that divides keys at splitters draws a sample, and takes every k-th of the sorted sample.
So between two splitters lie k samples, and the shares of the processes are those between order
statistics: gamma variates of shape k, divided by their sum (a Dirichlet distribution). max/avg of
what the processes receive follows, for every k and every number of processes. k comes from the
program, by ``SAMPLES`` of its module, or from the scatter of one run: the relative variance of
shares is (p - 1)/(p k + 1).

Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, section 2.5: spacings of
uniform order statistics are exponential variates divided by their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import h_relation
from bsplib.profiler.tune.seeds import SeedBand, Sweeps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run, Stack

    Values = NDArray[np.float64]

SHOWN = (4, 16, 64, 256)
"""Other numbers of processes for which max/avg is predicted."""
_DRAWS = 1000
_PART = 0.05
"""Part of the draws that lies below a predicted range, and above it."""
EXACT_TO = 0.01
"""What a prediction leaves out: how many keys are on the right process before the exchange."""
_LEAST_PROCESSES = 8
"""Number of processes from which on the scatter of one run tells something."""
_FALL = 0.01
"""Least fall of max/avg that counts: what a table of two decimals shows."""

Samples = Callable[[int, int], float]
"""The number of samples between two splitters, for a value and a number of processes."""


@dataclass(frozen=True)
class Balance:
    """max/avg of the bytes that processes receive in the exchange of a program."""

    where: str
    """The line that ends the exchange."""
    values: tuple[int, ...]
    nprocs: int
    predicted: tuple[SeedBand, ...]
    """For each value what 90% of the draws are between, and their median."""
    measured: tuple[SeedBand, ...]
    """For each value the least, the median and the greatest over the seeds."""
    elsewhere: tuple[tuple[int, tuple[float, ...]], ...]
    """Other numbers of processes, each with the predicted median for each value."""
    receivers: int
    """The greatest number of processes that received anything, over all runs."""
    fitted: bool
    """Whether the number of samples was found in the scatter of one run."""

    @property
    def inside(self) -> int:
        """For how many values the measured median is in the predicted range."""
        pairs = zip(self.predicted, self.measured, strict=True)
        return sum(
            range_.least - EXACT_TO <= found.median <= range_.greatest + EXACT_TO
            for range_, found in pairs
        )

    @property
    def is_credible(self) -> bool:
        """Whether the program divides keys at splitters, as far as is known."""
        return not self.fitted or bool(self.helpless) or 3 * self.inside >= 2 * len(self.values)

    @property
    def helpless(self) -> str:
        """A sentence where no value helps, since keys are too few to be divided; else empty."""
        third = -(-len(self.values) // 3)
        first, last = (
            median(band.median for band in part)
            for part in (self.measured[:third], self.measured[-third:])
        )
        if self.receivers >= self.nprocs or first - last >= _FALL:
            return ""
        return (
            f"the keys are not divided any further: at most {self.receivers} of {self.nprocs} "
            f"processes receive anything in {self.where}, as with {self.receivers} distinct keys"
        )


def find_balance(sweeps: Sweeps, samples: Samples | None) -> Balance | None:
    """Predict and measure how even the exchange of a program is.

    Args:
        sweeps: the points of each seed.
        samples: the samples between two splitters; None if only the first run tells.

    Returns:
        None where no superstep is an exchange of all with all, or where nothing is known of
        splitters: the parts of the first run are even, or the others scatter in another way.
    """
    pilot = sweeps[0][0].run
    key = exchange_of(pilot)
    if key is None:
        return None
    first, p = received(pilot, key), pilot.nprocs
    fitted = samples is None
    if samples is None:
        found = samples_of(first)
        if found is None or p < _LEAST_PROCESSES:
            return None
        start = sweeps[0][0].value
        samples = lambda value, _: found * value / start  # noqa: E731  # as the module would say
    values = tuple(point.value for point in sweeps[0])
    found_in = [[received(point.run, key) for point in points] for points in sweeps]
    ratios = [[_max_over_mean(part) for part in parts] for parts in found_in]
    freedom = p - 1 if fitted else 0
    others = [count for count in SHOWN if count != p]
    balance = Balance(
        _line_of(key),
        values,
        p,
        tuple(predict_balance(samples(value, p), p, freedom) for value in values),
        tuple(SeedBand(min(each), median(each), max(each)) for each in zip(*ratios, strict=True)),
        tuple(
            (count, tuple(predict_balance(samples(v, count), count, 0).median for v in values))
            for count in others
        ),
        max(int(np.count_nonzero(part)) for parts in found_in for part in parts),
        fitted,
    )
    return balance if balance.is_credible else None


def predict_balance(samples: float, nprocs: int, freedom: int) -> SeedBand:
    """Return max/avg of the shares between splitters: what 90% of draws are between.

    Args:
        samples: k, the samples between two splitters; infinite where all keys are samples.
        nprocs: number of shares.
        freedom: degrees of freedom with which k was estimated; 0 where it is known.
    """
    if nprocs < 2 or not np.isfinite(samples):
        return SeedBand(1.0, 1.0, 1.0)
    rng = np.random.default_rng(nprocs)
    shape = np.full((_DRAWS, 1), max(samples, 0.5))
    if freedom:
        shape *= rng.chisquare(freedom, (_DRAWS, 1)) / freedom
    shares = rng.gamma(shape, size=(_DRAWS, nprocs))
    ratios = shares.max(axis=1) / shares.mean(axis=1)
    least, middle, greatest = np.quantile(ratios, (_PART, 0.5, 1 - _PART)).tolist()
    return SeedBand(least, middle, greatest)


def samples_of(parts: Values) -> float | None:
    """Return k from the parts of one run; None if they are even."""
    p = len(parts)
    mean = parts.mean()
    square = float(((parts / mean - 1) ** 2).mean()) if mean else 0.0
    return None if square <= 0 else max(((p - 1) / square - 1) / p, 0.0)


# -- the exchange in a trace --------------------------------------------------------------------


def exchange_of(run: Run) -> Stack | None:
    """Return the stack of the superstep in which most bytes are exchanged, all with all.

    Returns:
        None where fewer than all processes but one send anything, or no two.
    """
    records = run.records
    h_out, h_in = h_relation(run)
    root = np.flatnonzero(records["group"] == 0)
    if not len(root):
        return None
    total = np.bincount(records["superstep"][root], h_in[root])
    chosen = root[records["superstep"][root] == int(np.argmax(total))]
    if np.count_nonzero(h_out[chosen]) < max(run.nprocs - 1, 2) or run.nprocs < 2:
        return None
    return run.stacks[int(records["stack"][chosen[0]])]


def received(run: Run, key: Stack) -> Values:
    """Return the bytes that each process received at a place, 0 where it was not passed."""
    stacks = [number for number, stack in enumerate(run.stacks) if stack == key]
    rows = np.isin(run.records["stack"], stacks)
    h_in = h_relation(run)[1][rows]
    parts: Values = np.zeros(run.nprocs)
    np.add.at(parts, run.records["pid"][rows], h_in)
    return parts


def _max_over_mean(parts: Values) -> float:
    mean = float(parts.mean())
    return float(parts.max()) / mean if mean else 1.0


def _line_of(key: Stack) -> str:
    """Return function and line of the innermost call of the program."""
    own = [frame for frame in key if not frame.library] or list(key)
    frame = own[-1]
    name = str(frame.file).rpartition("/")[2]
    return fmt.visible(f"{frame.function} ({name} line {frame.line})")
