"""The page of a learnt program: the predicted call graph, at the sizes and processes of sliders.

The page asks for the prediction at each point and on each Machine that its reader chooses: no
formula is in the page. A saved page has the points that were named when it was saved. Nothing here
uses a web framework.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bsplib.errors import UsageError
from bsplib.machine import known_machines, load_machine
from bsplib.profiler import format as fmt
from bsplib.profiler.graph_book import MOST_OF_FUNCTIONS
from bsplib.profiler.predict.planning import number as value_text
from bsplib.profiler.predict.planning import words
from bsplib.profiler.predict.prediction import (
    MOST_PROCESSES,
    RunPrediction,
    Scaling,
    Seconds,
    point_of,
    predict_at,
    scaling,
)
from bsplib.profiler.predict.program import empty_run
from bsplib.profiler.predict.show import band, remarks, sentence_of
from bsplib.profiler.predict.values import PROCESSES
from bsplib.profiler.prices import (
    ReplayPrices,
    choose_prices,
    recorded_machine,
    slowdowns_here,
)
from bsplib.profiler.rates import NO_SOURCE, Rates, rates_on
from bsplib.webui.layout import DrawnLink, box_width
from bsplib.webui.machines import describe_machine, describe_machines, figure_in
from bsplib.webui.opened_runs import AddressError
from bsplib.webui.services import describe_node, file_of, layouts_in_time, short_label

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.callgraph import Node
    from bsplib.profiler.predict.program import Learned, Point, ProgramModel
    from bsplib.recording.records import Run

Json = dict[str, Any]

GIVEN, OWN = "given", "own"
"""Names in the address of the Machine that the command line gave, and of that of the runs."""
USUAL_PROCESSES = 1024
"""Number of processes with which the page opens, unless the runs had more."""
MEASURES = {
    "scaling": (
        "beyond a perfect speedup",
        "Time beyond a perfect speedup from the processes of the largest run, at the same sizes.",
    ),
    "time": ("time", "All time of the run."),
    "computation": ("computation", "w: computation."),
    "transfers": ("transfers", "g h: bytes of the h-relations."),
    "supersteps": ("supersteps", "l for each superstep."),
}
"""What the shades can show: its title, and what it is."""
_LAWS = {"supersteps": "supersteps", "h": "h in bytes", "comp": "computation in s"}
_PARTS = (
    ("comp_s", "w: computation"),
    ("comm_s", "g h: transfers"),
    ("sync_s", "l: supersteps"),
    ("total_s", "in all"),
)
_DOUBLINGS_BEYOND, _DOUBLINGS_BELOW = 20, 3
"""How far the slider of a size goes beyond the runs."""
_STEPS_OF_DOUBLING = 4
"""Steps of a slider, where the runs have other values than powers of two."""
_STEPS_FROM_ZERO = 100
"""Steps of the slider of a variable that may be 0, up to eight times the largest run."""
_MOST_CURVES, _LEAST_CURVE = 4, 0.01
"""How many cost centres have a curve at most, and which part of a run they take at least."""


@dataclass(frozen=True)
class ShownModel:
    """A learnt program, and with what its page opens."""

    model: ProgramModel
    machine: Machine | None = None
    """The Machine that is chosen at first; default: the one of the runs."""
    points: Sequence[Mapping[str, float]] = ()
    """Values of variables, the number of processes among them as ``p``. The page opens with the
    first, and offers them all; a saved page has no others."""


def describe_model(shown: ShownModel) -> Json:
    """Return what the page shows at every point; see also :func:`describe_predictions`.

    Raises:
        UsageError: a value is given of a variable that does not exist.
    """
    model, run = shown.model, empty_run(shown.model.meta)
    machines = describe_machines(run)
    if shown.machine is not None:
        machines = [describe_machine(GIVEN, shown.machine, run), *machines]
    number = {name: position for position, name in enumerate(model.nodes)}
    return {
        "program": fmt.visible(model.program),
        "facts": [f"predicted from {model.runs} runs", *_facts(model)],
        "variables": [_variable(model, name) for name in _variables(model)],
        "points": [
            {"title": words([point]), "point": _texts(point)} for point in named_points(shown)
        ],
        "measures": MEASURES,
        "machine": None if shown.machine is None else GIVEN,
        "rates": asdict(_rates(run)),
        "machines": machines,
        "root": number[model.root],
        "nodes": [describe_node(node) | {"under": file_of(node)} for node in model.nodes.values()],
        "edges": [{"from": number[one], "to": number[other]} for one, other in model.edges()],
        "laws": _laws(model, number),
        "layouts": _lay_out(model, number),
        "shown": list(number.values()),
        "costs": {},
    }


def named_points(shown: ShownModel) -> list[Point]:
    """Return the points that were named, else one; with the first of them the page opens.

    Raises:
        UsageError: a value is given of a variable that does not exist.
    """
    largest = shown.model.largest
    usual = min(max(USUAL_PROCESSES, int(largest[PROCESSES])), MOST_PROCESSES)
    sizes = {name: largest[name] for name in shown.model.variables}
    points = []
    for named in shown.points or [{}]:
        values = {**sizes, **named}
        points.append(point_of(shown.model, {PROCESSES: usual, **values}))
    return points


def saved_predictions(shown: ShownModel) -> dict[str, Json]:
    """Return the predictions at the points that were named, by what the page asks: see there."""
    texts = [",".join(map(":".join, _texts(point).items())) for point in named_points(shown)]
    found = {text: describe_predictions(shown, {"point": text}) for text in texts}
    return {"": found[texts[0]], **found}


def _texts(point: Point) -> dict[str, str]:
    return {name: value_text(value) for name, value in point.items()}


def _variables(model: ProgramModel) -> list[str]:
    """Return the variables, the number of processes last."""
    return [*model.variables, PROCESSES]


def _facts(model: ProgramModel) -> Iterator[str]:
    for name in _variables(model):
        yield fmt.visible(f"{name} = {_range(model, name)}")


def _range(model: ProgramModel, name: str) -> str:
    low, high = min(model.measured[name]), max(model.measured[name])
    return value_text(low) if low == high else f"{value_text(low)} to {value_text(high)}"


def _variable(model: ProgramModel, name: str) -> Json:
    """Return a variable: the steps of its slider, as texts, and which of them the runs have."""
    measured, steps = model.measured[name], _steps(model, name)
    ends = [_nearest(steps, value) for value in (min(measured), max(measured))]
    return {
        "name": name,
        "label": "p, processes" if name == PROCESSES else name,
        "fixed": len(set(measured)) == 1 and name != PROCESSES,
        "steps": [value_text(value) for value in steps],
        "measured": ends,
    }


def _steps(model: ProgramModel, name: str) -> list[float]:
    """Return the values that the slider of a variable offers."""
    measured = model.measured[name]
    low, high = min(measured), max(measured)
    if name == PROCESSES:
        return [float(2**power) for power in range(MOST_PROCESSES.bit_length())]
    if low <= 0:
        width = 8 * max(high - low, 1)
        found = [low + width * step / _STEPS_FROM_ZERO for step in range(_STEPS_FROM_ZERO + 1)]
    else:
        least, most = low / 2**_DOUBLINGS_BELOW, high * 2.0**_DOUBLINGS_BEYOND
        if _is_whole(model, name):
            least = max(least, 1.0)
        each = 1 if all(math.log2(value).is_integer() for value in measured) else _STEPS_OF_DOUBLING
        count = round(each * math.log2(most / least))
        found = [least * 2 ** (step / each) for step in range(count + 1)]
    return sorted({_allowed(model, name, value) for value in found})


def _is_whole(model: ProgramModel, name: str) -> bool:
    return all(float(value).is_integer() for value in model.measured[name])


def _allowed(model: ProgramModel, name: str, value: float) -> float:
    """Return the value that a variable may have, nearest to another."""
    return float(round(value)) if _is_whole(model, name) else value


def _nearest(steps: Sequence[float], value: float) -> int:
    return min(range(len(steps)), key=lambda at: abs(steps[at] - value))


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


def _laws(model: ProgramModel, number: Mapping[str, int]) -> dict[int, list[Json]]:
    """Return the laws of the chains that end at each cost centre, with what tells these apart."""
    found: dict[int, list[Json]] = {}
    for leaf, chains in model.leaves().items():
        found[number[leaf]] = [
            {
                "callers": ""
                if len(chains) == 1
                else " > ".join(fmt.label(model.nodes[each]) for each in chain.chain[1:-1]),
                "rows": [[title, *_law(chain.learned[name])] for name, title in _LAWS.items()],
            }
            for chain in chains
        ]
    return found


def _law(learned: Learned) -> tuple[str, str]:
    """Return a law in words, and whether it is exact or fitted."""
    if learned.fit is None or learned.laws:
        return fmt.visible(learned.text), "exact"
    return f"{fmt.visible(learned.text)} (± {learned.fit.noise:.2g})", "fitted"


def _lay_out(model: ProgramModel, number: Mapping[str, int]) -> Json:
    """Return the layouts of the graph by dot; empty where the page has to find one itself."""
    widths = {
        number[name]: box_width(short_label(node), file_of(node))
        for name, node in model.nodes.items()
    }
    links = [
        DrawnLink(number[one], number[other], position)
        for position, (one, other) in enumerate(model.edges())
    ]
    return layouts_in_time(widths, links)


# -- predictions at the points that the page asks for ---------------------------------------------


@dataclass(frozen=True)
class _AskedPage:
    """The predictions for what the page asks."""

    here: RunPrediction
    largest: RunPrediction
    """At the sizes and processes of the largest run."""
    start: RunPrediction
    """At the same sizes, with the processes of the largest run."""
    found: Scaling

    @property
    def perfect(self) -> float:
        """The part of the time at the start that a perfect speedup would leave."""
        return self.start.point[PROCESSES] / self.here.point[PROCESSES]


def describe_predictions(shown: ShownModel, asked: Mapping[str, str]) -> Json:
    """Return the predictions that the page shows.

    Args:
        shown: the model.
        asked: ``point`` as in ``n:1024,p:8``, ``machine`` by its name, and ``g``, ``l`` and
            ``speed`` in place of those of the Machine. What is left out is as the page opens.

    Returns:
        ``point`` (texts by variable), ``sliders`` (of each variable the step, its text, how far it
        is beyond the runs in words, and whether it is), ``times`` (by the names in ``MEASURES``, as
        those of a run), ``tables`` (of nodes and edges: rows with the seconds of each part here and
        in the largest run), ``verdict``, and ``curves`` over the number of processes.

    Raises:
        AddressError: a value is no number, or there is no such variable or Machine.
    """
    model = shown.model
    point = {**named_points(shown)[0], **_point(model, asked.get("point", ""))}
    prices = _prices(shown, asked)
    try:
        here, largest, start = (
            predict_at(model, {**point, **other}, prices)
            for other in ({}, model.largest, {PROCESSES: model.largest[PROCESSES]})
        )
    except UsageError as error:  # a formula has no value there
        raise AddressError(str(error)) from None
    every = _AskedPage(here, largest, start, scaling(here))
    return {
        "point": _texts(point),
        "sliders": {name: _slider(model, name, point[name]) for name in _variables(model)},
        "total": here.total.total_s,
        "band": band(here),
        "times": _times(every),
        "tables": _tables(every),
        "verdict": {"balanced": False, "sentences": _sentences(every)},
        "curves": _curves(every),
    }


def _point(model: ProgramModel, text: str) -> Point:
    found = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition(":")
        base, _, power = value.replace("**", "^").partition("^")
        try:
            found[name] = float(base) ** float(power or 1)
        except (ValueError, OverflowError, ZeroDivisionError):
            raise AddressError(
                f"{value[:40]!r} is no value of {name[:40]}: give one as in 1000, 1e6 or 2^30."
            ) from None
        if name not in model.measured or not math.isfinite(found[name]):
            raise AddressError(f"There is no variable {name[:40]!r} with such a value.")
        found[name] = _allowed(model, name, found[name])
    if not 1 <= found.get(PROCESSES, 1.0) <= MOST_PROCESSES:
        raise AddressError(f"p has to be from 1 to {MOST_PROCESSES}.")
    return found


def _slider(model: ProgramModel, name: str, value: float) -> Json:
    low, high = min(model.measured[name]), max(model.measured[name])
    note = f"in the range of the runs, {_range(model, name)}"
    if value > high:
        far = f"{_rough(value / high)} times the largest run" if high > 0 else "beyond the runs"
        note = f"extrapolated: {far}"
    elif value < low:
        far = f"the smallest run is {_rough(low / value)} times as large" if value > 0 else ""
        note = f"extrapolated: {far or 'below the runs'}"
    step = _nearest(_steps(model, name), value)
    beyond = not low <= value <= high
    return {"step": step, "text": value_text(value), "note": note, "beyond": beyond}


def _rough(value: float) -> str:
    """Return a number with three digits."""
    return f"{float(f'{value:.3g}'):.12g}"


def _times(every: _AskedPage) -> Json:
    """Return the seconds of nodes, edges and paths by measure, and their shades."""
    model, total = every.here.model, every.here.total.total_s
    found: Json = {name: {} for name in ("nodes", "edges", "paths", "shades", "scales")}
    for measure in MEASURES:
        scores = [_score(every, measure, position) for position in range(len(model.chains))]
        nodes, edges, paths = (defaultdict(float) for _ in range(3))  # type: ignore[var-annotated]
        for chain, score in zip((each.chain for each in model.chains), scores, strict=True):
            for depth, node in enumerate(chain, 1):
                nodes[node] += score
                edges[chain[depth - 2 : depth]] += score
                paths[chain[:depth]] += score
        found["nodes"][measure] = [nodes[node] for node in model.nodes]
        found["edges"][measure] = [edges[edge] for edge in model.edges()]
        found["paths"][measure] = _path(model, paths)
        found["shades"][measure] = [
            _shade(node, max(0.0, nodes[name]) / (total or 1)) for name, node in model.nodes.items()
        ]
        found["scales"][measure] = total
    return {**found, "pies": {}, "before": None}


def _shade(node: Node, part: float) -> float:
    """Return the shade of a part of the run: that of a function as in the graph of a run."""
    most = MOST_OF_FUNCTIONS if node.kind == "function" else 1.0
    return min(math.sqrt(part), most)


def _score(every: _AskedPage, measure: str, chain: int) -> float:
    """Return the seconds of a chain that a measure counts."""
    seconds = every.here.chains[chain].seconds
    if measure == "scaling":
        return seconds.total_s - every.perfect * every.start.chains[chain].seconds.total_s
    parts = {
        "computation": seconds.comp_s,
        "transfers": seconds.comm_s,
        "supersteps": seconds.sync_s,
    }
    return parts.get(measure, seconds.total_s)


def _path(model: ProgramModel, paths: Mapping[tuple[str, ...], float]) -> list[list[float]]:
    """Follow the greatest score from ``main`` to a cost centre."""
    number = {name: position for position, name in enumerate(model.nodes)}
    chain: tuple[str, ...] = (model.root,)
    found: list[list[float]] = []
    while True:
        found.append([number[chain[-1]], paths[chain]])
        onward = [each for each in paths if len(each) == len(chain) + 1 and each[:-1] == chain]
        following = max(onward, key=lambda each: paths[each], default=chain)
        if following is chain or paths[following] <= 0:
            return found if found[0][1] > 0 or len(found) > 1 else []
        chain = following


def _tables(every: _AskedPage) -> Json:
    """Return of each node and edge what it takes here and in the largest run, by part."""
    model, both = every.here.model, (every.here, every.largest)

    def rows(*seconds: Seconds) -> list[list[Any]]:
        parts = [[title, *(getattr(each, name) for each in seconds)] for name, title in _PARTS]
        wholes = [each.total.total_s for each in both]
        shares = [
            f"{each.total_s / whole if whole else 0:.0%}"
            for each, whole in zip(seconds, wholes, strict=True)
        ]
        return [*parts, ["of the run", *shares]]

    def through(prediction: RunPrediction, edge: tuple[str, str]) -> Seconds:
        found = [seconds for path, seconds in prediction.paths.items() if path[-2:] == edge]
        return Seconds(*map(sum, zip(*found, strict=True)))

    return {
        "nodes": [rows(*(each.nodes[name] for each in both)) for name in model.nodes],
        "edges": [rows(*(through(each, edge) for each in both)) for edge in model.edges()],
    }


def _sentences(every: _AskedPage) -> list[Json]:
    """Return what bsp predict prints, and what hurts first, with the positions of nodes."""
    here, model = every.here, every.here.model
    number = {name: position for position, name in enumerate(model.nodes)}

    def sentence(text: str, node: str | None = None, seconds: float = 0.0) -> Json:
        at = None if node is None else number[node]
        return {"text": fmt.visible(text), "node": at, "superstep": None, "seconds": seconds}

    return [
        sentence(sentence_of(here), here.worst, here.total.total_s),
        *(sentence(*each) for each in _hurts(every)),
        *(sentence(*each) for each in remarks(here, every.found)),
    ]


def _hurts(every: _AskedPage) -> Iterator[tuple[str, str, float]]:
    """Yield what loses most against a perfect speedup from the processes of the largest run."""
    here, start, model = every.here, every.start, every.here.model
    lost = {
        leaf: here.nodes[leaf].total_s - every.perfect * start.nodes[leaf].total_s
        for leaf in model.leaves()
    }
    leaf = max(lost, key=lambda each: lost[each])
    if every.perfect >= 1 or lost[leaf] <= 0:
        return
    least, most = (each.point[PROCESSES] for each in (start, here))
    faster = start.total.total_s / here.total.total_s if here.total.total_s else 0.0
    yield (
        f"{fmt.label(model.nodes[leaf])} hurts first: it takes {fmt.seconds(lost[leaf])} more than "
        f"a perfect speedup from {value_text(least)} to {value_text(most)} processes allows; the "
        f"run is {_rough(faster)} times as fast, and not {_rough(most / least)} times.",
        leaf,
        lost[leaf],
    )


def _curves(every: _AskedPage) -> Json:
    """Return what the page draws over the number of processes, past the roll-off and the point."""
    found, model, here = every.found, every.here.model, every.here.point[PROCESSES]
    measured = model.measured[PROCESSES]
    most = 4 * max(here, found.roll_off or 1, *measured)
    shown = [each for each in found.predictions if each.point[PROCESSES] <= most]
    shown = shown if len(shown) > 1 else list(found.predictions)
    first = found.predictions[0]
    times = {leaf: [each.nodes[leaf].total_s for each in shown] for leaf in model.leaves()}
    totals = [each.total.total_s for each in shown]
    part = {
        leaf: max(time / (total or 1) for time, total in zip(of_leaf, totals, strict=True))
        for leaf, of_leaf in times.items()
    }
    greatest = sorted(part, key=lambda leaf: -part[leaf])[:_MOST_CURVES]

    def faster_than(time_s: float, nprocs: float) -> float | None:
        if nprocs == 1:
            return 1.0
        return first.total.total_s / time_s if 0 < time_s < math.inf else None

    known = [each for each in shown if found.speedup(each) is not None]
    return {
        "p": [each.point[PROCESSES] for each in shown],
        "runs": [min(measured), max(measured)],
        "here": here,
        "roll_off": found.roll_off,
        "total": totals,
        "leaves": [
            {"name": fmt.label(model.nodes[leaf]), "seconds": times[leaf]}
            for leaf in greatest
            if part[leaf] > _LEAST_CURVE
        ],
        "speedup": [found.speedup(each) for each in shown] if len(known) == len(shown) else None,
        "fastest": [faster_than(each.low_s, each.point[PROCESSES]) for each in shown],
        "slowest": [faster_than(each.high_s, each.point[PROCESSES]) for each in shown],
        "unknown": "The runs have one number of processes: of others nothing is known.",
    }


def _prices(shown: ShownModel, asked: Mapping[str, str]) -> ReplayPrices:
    """Return the prices of the chosen Machine; an l that it lacks counts as 0."""
    run = empty_run(shown.model.meta)
    machine = _machine(shown, asked.get("machine", ""))
    given = {name: figure_in(asked, name) for name in ("g", "l", "speed")}
    figures = {name: value for name, value in given.items() if value is not None}
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
    if not name or name == GIVEN:
        return shown.machine
    if name == OWN:
        return None
    if name not in known_machines():
        raise AddressError(f"There is no Machine {name[:40]!r}.")
    return load_machine(name)
