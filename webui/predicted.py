"""The page of a learnt program: the predicted call graph, at the sizes and processes of sliders.

The page asks for the prediction at each point and on each Machine that its reader chooses: no
formula is in the page. A saved page has the point at which it opens. Nothing here uses a web
framework.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bsplib.errors import UsageError
from bsplib.machine import known_machines, load_machine
from bsplib.profiler import format as fmt
from bsplib.profiler.drawing.graphviz import LayoutError
from bsplib.profiler.predict.planning import run_to_make, words
from bsplib.profiler.predict.prediction import (
    MOST_PROCESSES,
    RunPrediction,
    point_of,
    predict_at,
    scaling,
)
from bsplib.profiler.predict.program import empty_run
from bsplib.profiler.predict.values import PROCESSES
from bsplib.profiler.prices import (
    ReplayPrices,
    choose_prices,
    recorded_machine,
    slowdowns_here,
)
from bsplib.profiler.rates import NO_SOURCE, Rates, rates_on
from bsplib.webui.layout import DrawnLink, box_width, layouts
from bsplib.webui.machines import describe_machine, describe_machines
from bsplib.webui.opened_runs import AddressError
from bsplib.webui.services import describe_node, file_of, short_label

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.predict.program import Learned, Point, ProgramModel
    from bsplib.recording.records import Run

Json = dict[str, Any]

GIVEN = "given"
"""Name in the address of the Machine that the command line gave."""
USUAL_PROCESSES = 1024
"""Number of processes with which the page opens, unless the runs had more."""
_MOST_LAID_OUT = 300
_FIGURES = ("g", "l", "speed")


@dataclass(frozen=True)
class ShownModel:
    """A learnt program, and with what its page opens."""

    model: ProgramModel
    machine: Machine | None = None
    """The Machine that is chosen at first; default: the one of the runs."""
    nprocs: int | None = None
    values: Mapping[str, float] = field(default_factory=dict)


def describe_model(shown: ShownModel) -> Json:
    """Return the data of the page.

    Raises:
        UsageError: a value is given of a variable that does not exist.
    """
    model, run = shown.model, empty_run(shown.model.meta)
    machines = describe_machines(run)
    if shown.machine is not None:
        machines = [describe_machine(GIVEN, shown.machine, run), *machines]
    number = {name: position for position, name in enumerate(model.nodes)}
    opened = opening_point(shown)
    machine = None if shown.machine is None else GIVEN
    return {
        "program": fmt.visible(model.program),
        "runs": model.runs,
        "variables": _variables(model),
        "most_processes": MOST_PROCESSES,
        "at": opened,
        "machine": machine,
        "rates": asdict(_rates(run)),
        "machines": machines,
        "root": number[model.root],
        "nodes": [describe_node(node) | {"under": file_of(node)} for node in model.nodes.values()],
        "edges": [{"from": number[one], "to": number[other]} for one, other in model.edges()],
        "chains": [
            {
                "nodes": [number[name] for name in each.chain],
                "laws": {name: _law(each.learned[name]) for name in ("supersteps", "h", "comp")},
            }
            for each in model.chains
        ],
        "layouts": _lay_out(model, number),
        "opened": describe_predictions(shown, {} if machine is None else {"machine": machine}),
    }


def opening_point(shown: ShownModel) -> Point:
    """Return the point at which the page opens.

    Raises:
        UsageError: a value is given of a variable that does not exist.
    """
    largest = shown.model.largest
    nprocs = shown.nprocs or min(max(USUAL_PROCESSES, int(largest[PROCESSES])), MOST_PROCESSES)
    sizes = {name: largest[name] for name in shown.model.variables}
    return point_of(shown.model, nprocs, {**sizes, **shown.values})


def _variables(model: ProgramModel) -> list[Json]:
    """Return the variables, the number of processes last."""
    return [
        {
            "name": name,
            "values": sorted(set(model.measured[name])),
            "origin": fmt.visible(model.origins.get(name, "")),
        }
        for name in (*model.variables, PROCESSES)
    ]


def _rates(run: Run) -> Rates:
    """Return the rates of the Machine of the runs; 0 where it is not known, or lacks a figure."""
    machine = recorded_machine(run)
    why = "The runs do not name their Machine: set g and l here, or choose one."
    if machine is not None:
        try:
            return rates_on(machine, run)
        except UsageError as error:
            why = f"{error}."
    return Rates(0.0, 0.0, source=NO_SOURCE, note=fmt.visible(why))


def _law(learned: Learned) -> Json:
    noise = learned.fit.noise if learned.fit is not None and not learned.laws else None
    return {"text": fmt.visible(learned.text), "why": fmt.visible(learned.why), "noise": noise}


def _lay_out(model: ProgramModel, number: Mapping[str, int]) -> Json:
    """Return the layouts of the graph by dot; empty where the page has to find one itself."""
    if len(number) > _MOST_LAID_OUT:
        return {}
    widths = {
        number[name]: box_width(short_label(node), file_of(node))
        for name, node in model.nodes.items()
    }
    links = [
        DrawnLink(number[one], number[other], position)
        for position, (one, other) in enumerate(model.edges())
    ]
    try:
        return layouts(widths, links)
    except LayoutError:
        return {}


# -- predictions at the points that the page asks for ---------------------------------------------


def describe_predictions(shown: ShownModel, asked: Mapping[str, str]) -> Json:
    """Return the predictions that the page shows.

    Args:
        shown: the model.
        asked: ``point`` and ``reference`` as in ``n:1024,p:8``, ``machine`` by its name, and
            ``g``, ``l`` and ``speed`` in place of those of the Machine. What is left out is as the
            page opens.

    Raises:
        AddressError: a value is no number, or there is no such variable or Machine.
    """
    model = shown.model
    point = {**opening_point(shown), **_point(model, asked.get("point", ""))}
    reference = {**model.largest, **_point(model, asked.get("reference", ""))}
    prices = _prices(shown, asked)
    prediction = predict_at(model, point, prices)
    found = scaling(prediction)
    number = {name: position for position, name in enumerate(model.nodes)}
    run = run_to_make(prediction)
    return {
        "prediction": _prediction(prediction, number),
        "reference": _prediction(predict_at(model, reference, prices), number),
        "start": _prediction(
            predict_at(model, {**point, PROCESSES: reference[PROCESSES]}, prices), number
        ),
        "scaling": {
            "predictions": [_prediction(each, number) for each in found.predictions],
            "rollOff": found.roll_off,
            "cause": None if found.cause is None else number[found.cause],
        },
        "next_run": None if run is None else words([run]),
        "too_short_s": prediction.too_short_s,
        "slowed": prices.ratio_at(int(point[PROCESSES])) / prices.ratio,
        "cores": prices.machine.cores if prices.slowdowns else None,
    }


def _point(model: ProgramModel, text: str) -> Point:
    found = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition(":")
        base, _, power = value.partition("^")
        try:
            found[name] = float(base) ** float(power or 1)
        except (ValueError, OverflowError, ZeroDivisionError):
            raise AddressError(f"{part[:40]!r} is no value of a variable.") from None
        if name not in model.measured or not math.isfinite(found[name]):
            raise AddressError(f"There is no variable {name[:40]!r} with such a value.")
    if not 1 <= found.get(PROCESSES, 1.0) <= MOST_PROCESSES:
        raise AddressError(f"p has to be from 1 to {MOST_PROCESSES}.")
    return found


def _prices(shown: ShownModel, asked: Mapping[str, str]) -> ReplayPrices:
    """Return the prices of the chosen Machine; an l that it lacks counts as 0."""
    run = empty_run(shown.model.meta)
    machine = _machine(shown, asked.get("machine", ""))
    figures: dict[str, float] = {}
    for name in _FIGURES:
        if name in asked:
            try:
                figures[name] = float(asked[name])
            except ValueError:
                raise AddressError("Give g, l and speed, each a number.") from None
            if not (math.isfinite(figures[name]) and figures[name] >= 0):
                raise AddressError("Give g, l and speed, each a number that is not negative.")
    try:
        prices = choose_prices(run, machine, speed="1x" if "speed" in figures else None)
    except UsageError:
        chosen = machine or recorded_machine(run)
        if chosen is None:
            return ReplayPrices(load_machine("ideal"))
        prices = choose_prices(run, replace(chosen, l=chosen.l or 0.0), speed="1x")
    own = prices.machine
    if own.l is None or own.l < 0:
        own = replace(own, l=0.0)
    if "g" in figures or "l" in figures:
        own = replace(own, g=figures.get("g", own.g), l=figures.get("l", own.l), measured=())
    ratio = prices.ratio
    slowdowns = slowdowns_here(run, machine)
    if figures.get("speed"):
        ratio, slowdowns = 1 / figures["speed"], ()
    return replace(prices, machine=own, ratio=ratio, slowdowns=slowdowns)


def _machine(shown: ShownModel, name: str) -> Machine | None:
    if not name:
        return None
    if name == GIVEN and shown.machine is not None:
        return shown.machine
    if name not in known_machines():
        raise AddressError(f"There is no Machine {name[:40]!r}.")
    return load_machine(name)


def _prediction(found: RunPrediction, number: Mapping[str, int]) -> Json:
    return {
        "point": found.point,
        "total": found.total.total_s,
        "low": found.low_s,
        "high": found.high_s if math.isfinite(found.high_s) else None,
        "refused": [[number[leaf], fmt.visible(why)] for leaf, why in found.refused.items()],
        "chains": [
            {
                "comp": each.seconds.comp_s,
                "comm": each.seconds.comm_s,
                "sync": each.seconds.sync_s,
                "total": each.seconds.total_s,
            }
            for each in found.chains
        ],
    }
