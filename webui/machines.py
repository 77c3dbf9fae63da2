"""The Machines by whose rates the reader of a page can price a run."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from bsplib.errors import UsageError
from bsplib.machine import Machine, known_machines, load_machine
from bsplib.profiler.prices import choose_prices
from bsplib.visible import visible

if TYPE_CHECKING:
    from bsplib.recording.records import Run

Json = dict[str, Any]


def describe_machines(run: Run) -> list[Json]:
    """Return the Machines that come with bsplib, as far as they can price a run.

    Returns:
        For each Machine ``name`` (by which the address knows it), ``title``, ``source``,
        ``g`` in seconds per byte, ``l`` in seconds or null if it has none, ``rule`` for h,
        ``ratio`` (time of a computation there divided by the recorded time; null if one of
        the speeds is not known), and ``note``: sentences about what is missing.
    """
    return [describe_machine(name, machine, run) for name, machine in _known()]


@cache
def _known() -> tuple[tuple[str, Machine], ...]:
    return tuple((name, load_machine(name)) for name in known_machines())


def describe_machine(name: str, machine: Machine, run: Run) -> Json:
    """Return what :func:`describe_machines` says of one Machine."""
    ratio = _ratio(machine, run)
    has_l = machine.l is not None and machine.l >= 0
    return {
        "name": name,
        "title": machine.label,
        "source": visible(machine.source),
        "g": machine.g,
        "l": machine.l if has_l else None,
        "rule": machine.h,
        "ratio": ratio,
        "note": " ".join(_gaps(machine, has_l=has_l, has_speed=ratio is not None)),
    }


def _ratio(machine: Machine, run: Run) -> float | None:
    """Return the time of a computation on a Machine divided by the recorded time."""
    try:
        return choose_prices(run, machine).ratio
    except UsageError:  # one of the speeds is not known
        return None


def _gaps(machine: Machine, *, has_l: bool, has_speed: bool) -> list[str]:
    """Return a sentence for each figure that is missing, and what is taken instead."""
    gaps = []
    if not has_l:
        fitted = "" if machine.l is None else f" (a fit gave {machine.l:g} s)"
        gaps.append(f"Its l is not known{fitted}: set it here, or it counts as 0.")
    if not has_speed:
        gaps.append("Its speed is not known: set it here, or it counts as that of the run.")
    return gaps
