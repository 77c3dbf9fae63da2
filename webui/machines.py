"""The Machines on which the reader of a page can see a run."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from bsplib.errors import UsageError
from bsplib.machine import Machine, known_machines, load_machine
from bsplib.profiler.prices import choose_prices
from bsplib.profiler.rates import Rates
from bsplib.visible import visible
from bsplib.webui.opened_runs import AddressError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsplib.recording.records import Run

Json = dict[str, Any]


def describe_machines(run: Run, names: Sequence[str] | None = None) -> list[Json]:
    """Return some Machines, with what they cost a run.

    Args:
        run: the run.
        names: names of the Machines, or their files; default: all that come with bsplib.

    Returns:
        For each Machine ``name`` (by which the address knows it), ``title``, ``source``,
        ``g`` in seconds per byte, ``l`` in seconds or null if it has none, ``rule`` for h,
        ``ratio`` (time of a computation there divided by the recorded time; null if one of
        the speeds is not known), and ``note``: sentences about what is missing.
    """
    names = known_machines() if names is None else names
    return [describe_machine(name, _loaded(name), run) for name in names]


_loaded = cache(load_machine)


def rates_in(query: Mapping[str, str], own: Rates, run: Run, names: Sequence[str]) -> Rates:
    """Return the rates of a query; what it leaves out is that of the run.

    Args:
        query: ``machine``, one of the names; and ``g``, ``l`` and ``speed`` (as a multiple of that
            of the run), where they replace what the Machine has. What it lacks counts as 0, and
            its speed as that of the run.
        own: the rates of the run.
        run: the run.
        names: names of the Machines that may be asked for.

    Raises:
        AddressError: a value of the query means nothing.
    """
    g, latency, speed = (figure_in(query, name) for name in ("g", "l", "speed"))
    chosen = own
    if (name := query.get("machine")) is not None:
        if name not in names:
            known = ", ".join(names) or "none"
            raise AddressError(f"machine is {name[:40]!r}: the page has {known}.")
        there = describe_machine(name, _loaded(name), run)
        figures = there["g"], there["l"] or 0.0, there["rule"], there["ratio"] or 1.0
        chosen = Rates(*figures, there["title"])
    if g is None and latency is None and speed is None:
        return chosen
    return Rates(
        chosen.g if g is None else g,
        chosen.l if latency is None else latency,
        chosen.rule,
        1 / speed if speed else chosen.ratio,
        "as chosen",
    )


def figure_in(
    query: Mapping[str, str], name: str, *, may_be_negative: bool = False
) -> float | None:
    """Return a figure of a query; None if it is not given.

    Raises:
        AddressError: it is no number, or a negative one that may be none.
    """
    if name not in query:
        return None
    try:
        value = float(query[name])
    except ValueError:
        value = math.nan
    if not abs(value) < math.inf or (value < 0 and not may_be_negative):
        wanted = "a number" if may_be_negative else "a number that is not negative"
        raise AddressError(f"{name} is {query[name][:40]!r}: give {wanted}.")
    return value


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
        gaps.append(f"Its l is not known{fitted}: it counts as 0 unless it is set.")
    if not has_speed:
        gaps.append("Its speed is not known: it counts as that of the run unless it is set.")
    return gaps
