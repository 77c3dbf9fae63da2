"""What a Machine asks for the computation and communication of a recorded run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.errors import UsageError
from bsplib.machine import PATTERNS, Machine
from bsplib.machine.pattern import pattern_of
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run
    from profiler.models.timeline import Step, Timeline

    Bytes = NDArray[np.float64]

RECOGNISE = "auto"
"""Instead of the name of a pattern: the one that each superstep has."""
VIRTUAL = "as in virtual time"
"""Instead of the name of a pattern: as virtual processors price. A superstep that ends with
a sync has the price of its pattern where the Machine has one, under every model."""


@dataclass(frozen=True)
class Prices:
    """The figures of a Machine that a replay uses."""

    machine: Machine
    ratio: float = 1.0
    """Seconds that a computation takes there, for each second that was recorded."""
    pattern: str | None = None
    """``PATTERNS`` or ``RECOGNISE``: whose g and L hold for BSPWB, MPM and OBSP*;
    ``VIRTUAL``; the Machine's own g and l if None."""

    def relation(
        self, h_in: NDArray[np.float64], h_out: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return in @ out by the Machine's rule (Roda et al. 1999, equation 6)."""
        relation: NDArray[np.float64] = self.machine.relation(h_in, h_out)
        return relation

    def patterns_of(self, timeline: Timeline) -> list[str | None]:
        """Return for each step the pattern whose g and L hold; None: the Machine's g and l.

        Raises:
            UsageError: the Machine lacks one of them.
        """
        steps = timeline.steps
        if self.pattern == RECOGNISE:
            found = [self._known(recognise(timeline, step)) for step in steps]
        elif self.pattern == VIRTUAL:
            found = [self._virtual(timeline, step) for step in steps]
        else:
            found = [self.pattern] * len(steps)
        for pattern in set(found):
            self._check(pattern)
        return found

    def _check(self, pattern: str | None) -> None:
        """Raise where g or L of a pattern, or of the Machine, is not known."""
        if pattern is None:
            self.machine.need("l", "by --{figure} {example}")
        else:
            self.machine.costs(pattern)

    def _virtual(self, timeline: Timeline, step: Step) -> str | None:
        if step.kind != Kind.SYNC:
            return None
        return self.machine.pattern_priced(recognise(timeline, step))

    def _known(self, pattern: str | None) -> str | None:
        return pattern if pattern in self.machine.patterns else None


def recognise(timeline: Timeline, step: Step) -> str | None:
    """Return the pattern of a superstep, as :func:`bsplib.machine.pattern.pattern_of`."""
    links = slice(step.link_start, step.link_stop)
    ends = (timeline.link_from[links].tolist(), timeline.link_to[links].tolist())
    return pattern_of(zip(*ends, strict=True))


def recorded_machine(run: Run) -> Machine | None:
    """Return the Machine that a run was recorded on; None where its trace does not say."""
    values: Any = run.meta.get("machine")
    try:
        return Machine.of(values)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def choose_prices(
    run: Run,
    machine: Machine | None = None,
    *,
    speed: str | None = None,
    latency_s: float | None = None,
    pattern: str | None = None,
) -> Prices:
    """Settle the prices for a run on a Machine.

    Args:
        run: what is to be replayed.
        machine: where; the one that it was recorded on if None.
        speed: of a process there: flop/s, as ``3e8``, or ``0.5x``: times that of the
            computer that recorded.
        latency_s: takes the place of the Machine's l.
        pattern: as of :class:`Prices`; where it is None, a run in virtual time is priced
            on its own Machine as it was there.

    Raises:
        UsageError: the trace names no Machine, the speed is no speed, the pattern no
            pattern, or a figure is missing.
    """
    recorded = recorded_machine(run)
    chosen = machine or recorded
    if chosen is None:
        raise UsageError("predict: the trace does not say what Machine it ran on; name one")
    if pattern is not None and pattern not in (*PATTERNS, RECOGNISE):
        known = ", ".join((RECOGNISE, *PATTERNS))
        raise UsageError(f"predict: {pattern!r} is no pattern; there are {known}")
    if latency_s is not None:
        chosen = replace(chosen, l=latency_s)
    if pattern is None and chosen.patterns and chosen == recorded and _is_virtual(run):
        pattern = VIRTUAL
    return Prices(chosen, _ratio(recorded, chosen, speed), pattern)


def _is_virtual(run: Run) -> bool:
    return run.meta.get("backend") == "sim"


def _ratio(recorded: Machine | None, machine: Machine, speed: str | None) -> float:
    """Return the seconds there for each second that was recorded."""
    if speed is None and recorded is not None and _as_fast(recorded, machine):
        return 1.0
    if speed is not None and speed.endswith("x"):
        return 1 / _positive(speed, speed[:-1])
    if recorded is None or recorded.speed is None:
        name = "the trace" if recorded is None else recorded.label
        raise UsageError(
            f"predict: {name} does not say how fast the computer was that recorded; say how many "
            f"times as fast {machine.label} is, as in --speed 0.5x"
        )
    if speed is not None:
        return recorded.speed / _positive(speed, speed)
    return recorded.speed / machine.need("speed", "by --{figure} {example} or --{figure} 0.5x")


def _as_fast(recorded: Machine, machine: Machine) -> bool:
    """Tell whether a Machine is the recorded one, as far as its speed goes.

    A run on virtual processors was scaled to the speed of its Machine when it was
    recorded: it must not be scaled to that speed again.
    """
    speeds = {recorded.speed, machine.speed} - {None}
    return machine.name == recorded.name and len(speeds) < 2


def _positive(said: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"predict: {said!r} is no speed; say flop/s, as 3e8, or times, as 0.5x")
    return value
