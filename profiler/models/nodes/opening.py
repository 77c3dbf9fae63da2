"""How a prediction opens: what is known, what is believed and what was never seen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.models.nodes.memory import (
    largest_sizes,
    memory_doubt,
    memory_use,
    run_with_memory,
)
from bsplib.profiler.models.nodes.settle import number, words

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.models.nodes.laws import Point
    from bsplib.profiler.models.nodes.predicted import NodePrediction

_PROCESSES = "p"
_WIDE = 1.25
"""A band that reaches further from the time than by this factor is one to be narrowed."""


def opening(prediction: NodePrediction) -> Iterator[str]:
    """Yield three sentences: what is known, what is believed, and what was never seen."""
    yield f"Known: {_known(prediction)}."
    yield f"Believed: {_believed(prediction)}."
    unseen = [*_beyond_runs(prediction), *_beyond_machine(prediction)]
    if doubt := memory_doubt(prediction.model, prediction.point, prediction.prices.machine):
        unseen.append(doubt)
    elif run := run_to_make(prediction):
        unseen.append(f"how computation grows there (a run that would tell: {words([run])})")
    yield f"Never seen: {'; '.join(unseen) or 'nothing, the runs reach as far'}."


def run_to_make(prediction: NodePrediction) -> Point | None:
    """Return the run that would narrow the band of the time; None where no run has to be made.

    That is the smallest one which shows what more memory does. Where memory makes no difference
    and the band is wide, it is one with as many processes and sizes half way, in doublings, from
    the largest runs to the point.
    """
    model, point = prediction.model, prediction.point
    machine = prediction.prices.machine
    if memory_use(model, point, machine).is_clear:
        return run_with_memory(model, point, machine)
    time_s = prediction.total.total_s
    is_wide = prediction.high_s > _WIDE * time_s or prediction.low_s * _WIDE < time_s
    half_way = {**point}
    for name, largest in largest_sizes(model).items():
        doublings = math.log2(max(point[name] / largest, 1.0))
        if doublings > 1:
            half_way[name] = largest * 2.0 ** math.ceil(doublings / 2)
    return half_way if is_wide and half_way != point else None


def _known(prediction: NodePrediction) -> str:
    priced = list(prediction.model.priced(prediction.point))
    derived = sum(
        all(values[name].is_known and values[name].low == values[name].high for name in _COUNTED)
        for _, values in priced
    )
    runs = fmt.counted(prediction.model.runs, "run")
    return f"the supersteps and h of {derived} of {len(priced)} places, in closed form from {runs}"


_COUNTED = ("supersteps", "h")


def _believed(prediction: NodePrediction) -> str:
    machine = prediction.prices.machine
    holds = "the times that a probe measured" if machine.measured else "g and l"
    return (
        f"computation goes on by the formulas that fit the runs, and {holds} of {machine.label} "
        f"hold ({fmt.visible(_source(machine))})"
    )


def _source(machine: Machine) -> str:
    """Return where the figures come from that price communication; g and l may differ in it."""
    if machine.measured:
        return machine.source
    of_g, of_l = (machine.sources.get(figure, machine.source) for figure in ("g", "l"))
    return of_g if of_g == of_l else f"g: {of_g}; l: {of_l}"


def _beyond_runs(prediction: NodePrediction) -> Iterator[str]:
    """Yield the variables that are outside of the runs, and what has no price."""
    for name, value in prediction.point.items():
        measured = prediction.model.measured[name]
        if value > max(measured):
            yield f"{name} = {number(value)}, where the runs had at most {number(max(measured))}"
        elif value < min(measured):
            yield f"{name} = {number(value)}, where the runs had at least {number(min(measured))}"
    if count := len(prediction.refused):
        yield f"what {fmt.counted(count, 'cost centre')} cost here, which the time leaves out"


def _beyond_machine(prediction: NodePrediction) -> Iterator[str]:
    machine, count = prediction.prices.machine, int(prediction.point[_PROCESSES])
    if machine.measured and count > machine.measured[-1].p:
        yield _unlike(machine, count)


def _unlike(machine: Machine, count: int) -> str:
    """Return that a computer was not measured with ``count`` processes, and the way out."""
    cores = "" if machine.cores is None else f" on {fmt.counted(machine.cores, 'core')}"
    return (
        f"{machine.label} with {count} processes, since it was probed with at most "
        f"{machine.measured[-1].p}{cores}, and bsp machine new FILE.toml describes another "
        "computer"
    )
