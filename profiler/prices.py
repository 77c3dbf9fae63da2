"""The prices of a Machine for the computation and communication of a recorded run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.errors import UsageError
from bsplib.machine import PATTERNS, Machine
from bsplib.machine.measured import HRelation
from bsplib.machine.pattern import pattern_of
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Floats, Ints
    from bsplib.profiler.timeline import Step, Timeline
    from bsplib.recording.records import Run


RECOGNISE = "auto"
"""Given instead of a pattern: recognise the pattern of each superstep; if the Machine does not
know it, its own g and l are used."""
OWN = "none"
"""Given instead of a pattern: use the Machine's own g and l, and nothing else of it."""
VIRTUAL = "as in virtual time"
"""Given instead of a pattern: use the prices of virtual processors. Under every model, a
superstep that ends with a sync has the price of its pattern if the Machine has one."""


@dataclass(frozen=True)
class ReplayPrices:
    """The figures of a Machine that a replay uses."""

    machine: Machine
    ratio: float = 1.0
    """Time of a computation on the Machine, divided by the recorded time."""
    pattern: str | None = None
    """The pattern whose g and L are used for BSPWB, MPM and OBSP* (one of ``PATTERNS``, or
    ``RECOGNISE``); or ``VIRTUAL``; if None, the Machine's own g and l are used. BSP has one g
    and l, except with ``VIRTUAL``, and on a Machine that a probe has measured."""
    slowdowns: tuple[tuple[int, float], ...] = ()
    """Numbers of processes, ascending, and how much longer computation takes with each of them than
    ``ratio`` says. Only for predictions with another number of processes than ran."""
    as_recorded: bool = False
    """Whether ``ratio`` is an assumption, since the Machine has no speed of its own: processes
    compute as fast as on the computer that recorded the run, or in a given ratio to it."""

    @property
    def assumption(self) -> str:
        """What is assumed of the speed; empty where it is known."""
        if not self.as_recorded:
            return ""
        relative = self.machine.relative_speed or 1.0
        fast = "as fast as" if relative == 1 else f"{relative:.3g} times as fast as"
        return f"a process computes {fast} on the computer that recorded it"

    def ratio_at(self, nprocs: int) -> float:
        """Return the ratio of a computation that ``nprocs`` processes do.

        Between two numbers of ``slowdowns`` it is interpolated. More processes than the last
        number share the cores, so that it grows in proportion to them.
        """
        if not self.slowdowns:
            return self.ratio
        counts, factors = zip(*self.slowdowns, strict=True)
        slower = float(np.interp(nprocs, counts, factors))
        return self.ratio * slower * max(nprocs / int(counts[-1]), 1.0)

    def relation(self, timeline: Timeline) -> Floats:
        """Return the h of each record by the Machine's rule: in @ out in Roda et al. 1999, eq. 6.

        On a Machine of two levels it is one of bytes between hosts: those inside a host
        count as less, so that g h is a_i g_inside + b_i g of :class:`bsplib.machine.Machine`.
        """
        machine, hosts = self.machine, self._hosts_of(timeline)
        h_out, h_in = timeline.h_out_and_in
        if hosts is None:
            return machine.relation(h_in, h_out)  # type: ignore[no-any-return]
        near_out, near_in = timeline.inside_hosts(hosts)
        near = machine.relation(near_in, near_out)
        apart = machine.relation(h_in - near_in, h_out - near_out)
        return apart + machine.share_inside() * near  # type: ignore[no-any-return]

    def _hosts_of(self, timeline: Timeline) -> Ints | None:
        """Return the hosts of processes by which prices differ; None where they do not.

        A cluster has hosts of its own.
        """
        differ = self.machine.inside is not None and self.machine.nodes is None
        return timeline.hosts if differ else None

    def moved(self, timeline: Timeline) -> HRelation:
        """Return what each record moves, as the Machine prices it."""
        return HRelation(self.relation(timeline), timeline.calls)

    def machines(self, timeline: Timeline) -> list[Machine]:
        """Return the Machine whose g and l hold for each group of a run."""
        machine, hosts = self.machine, self._hosts_of(timeline)
        if hosts is None:
            return [machine] * len(timeline.run.groups)
        near, groups = machine.of_one_host(), timeline.run.groups
        return [near if not np.ptp(hosts[list(each.members)]) else machine for each in groups]

    def patterns_of(self, timeline: Timeline) -> list[str | None]:
        """Return for each step the pattern whose g and L are used; None for the Machine's own.

        Raises:
            UsageError: the Machine lacks a figure that is needed.
        """
        steps = timeline.steps
        if self.pattern == RECOGNISE:
            found = [self.machine.pattern_priced(recognise(timeline, step)) for step in steps]
        elif self.pattern == VIRTUAL:
            found = [self._virtual(timeline, step) for step in steps]
        else:
            found = [self.pattern] * len(steps)
        machines = self.machines(timeline)
        found = [
            pattern if machines[step.group] is self.machine else None  # inside a host: own l
            for step, pattern in zip(steps, found, strict=True)
        ]
        for pattern in set(found):
            self._check(pattern)
        return found

    def _check(self, pattern: str | None) -> None:
        """Raise UsageError if g or L of a pattern, or of the Machine, is not known."""
        if self.machine.measured:
            return
        if pattern is None:
            self.machine.need("l")
        else:
            self.machine.costs(pattern)

    def _virtual(self, timeline: Timeline, step: Step) -> str | None:
        if step.kind != Kind.SYNC:
            return None
        return self.machine.pattern_priced(recognise(timeline, step))


def recognise(timeline: Timeline, step: Step) -> str | None:
    """Return the pattern of a superstep, by :func:`bsplib.machine.pattern.pattern_of`."""
    links = slice(step.link_start, step.link_stop)
    ends = (timeline.link_from[links].tolist(), timeline.link_to[links].tolist())
    return pattern_of(zip(*ends, strict=True))


def recorded_machine(run: Run) -> Machine | None:
    """Return the Machine on which a run was recorded; None if its trace does not name one."""
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
    pattern: str | None = None,
) -> ReplayPrices:
    """Choose the prices for a run on a Machine.

    Args:
        run: the run to replay.
        machine: the Machine; default: the one on which the run was recorded.
        speed: speed of a process of the Machine: in flop/s, as ``3e8``, or as a multiple
            of the speed of the computer that recorded the run, as ``0.5x``.
        pattern: see :class:`ReplayPrices`. If None, a run in virtual time on its own Machine has
            the same prices as when it was recorded.

    Raises:
        UsageError: the trace names no Machine, the speed or the pattern is not valid, or
            a figure of the Machine is missing.

    By default the pattern of each superstep is recognised, if the Machine knows any.
    """
    recorded = recorded_machine(run)
    chosen = machine or recorded
    ratio = None if speed is not None else _ratio_here(run, recorded, machine)
    if chosen is None:
        raise UsageError("predict: the trace does not name the Machine of the run; give one")
    if pattern is not None and pattern not in (*PATTERNS, RECOGNISE, OWN):
        known = ", ".join((RECOGNISE, OWN, *PATTERNS))
        raise UsageError(f"predict: there is no pattern {pattern!r}; choose one of {known}")
    if pattern is None and (chosen.patterns or chosen.measured):
        pattern = VIRTUAL if chosen == recorded and is_virtual(run) else RECOGNISE
    elif pattern == OWN:
        chosen, pattern = replace(chosen, measured=()), None
    as_recorded = False
    if ratio is None:
        before = recorded if is_virtual(run) else None
        assumed = speed is None and chosen.relative_speed is not None
        as_recorded = assumed and (before is None or before.relative_speed is None)
        ratio = _ratio(recorded, chosen, speed, before) * _shared(run.nprocs, chosen, before)
    return ReplayPrices(chosen, ratio, pattern, _of_cluster(chosen), as_recorded)


def is_of(machine: Machine, run: Run) -> bool:
    """Tell whether a Machine is that of the host on which a run was recorded, in real time."""
    return bool(machine.host) and machine.host == run.meta.get("host") and not is_virtual(run)


def ratio_of_host(machine: Machine, run: Run) -> float:
    """Return the time of a computation on the host of a run, divided by the recorded time.

    Where processes share cores, the CPU time of a computation is recorded, and not how long it
    waits for a core: then it takes as many times as long as there are processes for each core.
    """
    if machine.cores is None or run.meta.get("cpu_measured") is not True:
        return 1.0
    return max(run.nprocs / machine.cores, 1.0)


def _ratio_here(run: Run, recorded: Machine | None, machine: Machine | None) -> float | None:
    """Return the ratio of times if the Machine is that of the host that recorded the run.

    Returns:
        That of :func:`ratio_of_host` where the run took real time. In virtual time that was not
        scaled to another Machine, one process computed at a time: then the factor by which
        several slow each other down.
        None in all other cases.
    """
    if machine is None or machine == recorded or machine.host != run.meta.get("host"):
        return None
    if is_of(machine, run):
        return ratio_of_host(machine, run)
    scaled = recorded is None or recorded.speed is not None or recorded.measured
    return None if scaled or not machine.host else machine.slowdown(run.nprocs)


def slowdowns_here(run: Run, machine: Machine | None) -> tuple[tuple[int, float], ...]:
    """Return the ``slowdowns`` of :class:`ReplayPrices`, on the host on which a run was recorded.

    In real time, computation takes longer there only where processes share cores. In virtual time
    processes slow each other down, too, as a probe has measured it.

    Args:
        run: the run; the factors are relative to that of its own number of processes.
        machine: the Machine. If it is not that of the host, nothing is returned.
    """
    if machine is None or machine.cores is None:
        return ()
    if machine.nodes is not None:
        return _of_cluster(machine)
    if _ratio_here(run, recorded_machine(run), machine) is None:
        return ()
    if is_of(machine, run):
        return ((machine.cores, 1.0),)
    counts = {entry.p for entry in machine.measured}
    if counts:
        counts.add(max(*counts, machine.cores))
    own = machine.slowdown(run.nprocs)
    return tuple((count, machine.slowdown(count) / own) for count in sorted(counts))


def _of_cluster(machine: Machine) -> tuple[tuple[int, float], ...]:
    """Return the ``slowdowns`` of a cluster: more processes than all its cores share them."""
    return () if machine.all_cores is None else ((machine.all_cores, 1.0),)


def is_virtual(run: Run) -> bool:
    """Tell whether a run took virtual time."""
    return run.meta.get("backend") == "sim"


def _shared(nprocs: int, machine: Machine, before: Machine | None) -> float:
    """Return how much longer computation takes where processes share the cores of a cluster.

    Args:
        nprocs: number of processes of the run.
        machine: the Machine.
        before: the Machine by which the times of a run on virtual processors were scaled already.
    """
    one, two = (
        1.0 if each is None or each.nodes is None else each.slowdown(nprocs)
        for each in (before, machine)
    )
    return two / one


def _ratio(
    recorded: Machine | None, machine: Machine, speed: str | None, before: Machine | None
) -> float:
    """Return the time of a computation on the Machine, divided by the recorded time.

    ``before`` is the Machine by which the recorded times were scaled, of a virtual run.
    """
    if speed is not None and speed.endswith("x"):
        return 1 / _positive(speed, speed[:-1])
    if speed is None and machine.relative_speed is not None:
        scaled = None if before is None else before.relative_speed
        return (scaled or 1.0) / machine.relative_speed
    if speed is None and recorded is not None and _as_fast(recorded, machine):
        return 1.0
    if recorded is None or recorded.speed is None:
        name = "the trace" if recorded is None else recorded.label
        raise UsageError(
            f"machine: {name} does not have the speed of the computer that recorded the run; give "
            f"the relative speed of {machine.label}, as in --speed 0.5x"
        )
    if speed is not None:
        return recorded.speed / _positive(speed, speed)
    return recorded.speed / machine.need("speed", "as in --{figure} {example} or --{figure} 0.5x")


def _as_fast(recorded: Machine, machine: Machine) -> bool:
    """Tell whether a Machine has the name and the speed of the recorded one.

    The computation of a run on virtual processors was scaled to the speed of its Machine
    when it was recorded. It must not be scaled again.
    """
    speeds = {recorded.speed, machine.speed} - {None}
    return machine.name == recorded.name and len(speeds) < 2


def _positive(speed: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(
            f"speed: {speed!r} is no speed; give flop/s, as in 3e8, or a multiple, as in 0.5x"
        )
    return value
