"""The page of a node model: the predicted call graph, at the sizes and processes of sliders.

The page gets the laws themselves, their terms in postfix order, and predicts in the browser: so
it answers at once, and a saved page can do the same. Nothing here uses a web framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import TYPE_CHECKING, Any

from bsplib.errors import UsageError
from bsplib.experiments.formula import postfix
from bsplib.profiler import format as fmt
from bsplib.profiler.drawing.graphviz import LayoutError
from bsplib.profiler.models.nodes.laws import EXACT, Law, Where
from bsplib.profiler.models.nodes.memory import (
    HUGE,
    LARGER_ARRAYS,
    exchanged_in_runs,
    memory_in_runs,
    points_of_runs,
)
from bsplib.profiler.models.nodes.predicted import MOST_PROCESSES, recorded_run
from bsplib.profiler.models.nodes.settle import words
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.terms import in_stages
from bsplib.profiler.prices import recorded_machine, slowdowns_here
from bsplib.profiler.rates import NO_SOURCE, Rates, rates_on
from bsplib.webui.layout import DrawnLink, box_width, layouts
from bsplib.webui.machines import describe_machine, describe_machines
from bsplib.webui.services import describe_node, file_of, short_label

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.machine.measured import Curve
    from bsplib.profiler.models.nodes.forms import Form
    from bsplib.profiler.models.nodes.model import NodeModel
    from bsplib.recording.records import Run

Json = dict[str, Any]

GIVEN = "given"
"""Name in the address of the Machine that the command line gave."""
_MOST_LAID_OUT = 300


@dataclass(frozen=True)
class ShownModel:
    """A node model, and with what its page opens."""

    model: NodeModel
    machine: Machine | None = None
    """The Machine that is chosen at first; default: the one of the runs."""
    nprocs: int | None = None
    values: Mapping[str, float] = field(default_factory=dict)


def describe_model(shown: ShownModel) -> Json:
    """Return the data of the page.

    Raises:
        UsageError: a value is given of a variable that does not exist.
    """
    model, run = shown.model, recorded_run(shown.model)
    machines = describe_machines(run)
    if shown.machine is not None:
        given = describe_machine(GIVEN, shown.machine, run)
        given |= {
            "measured": _curves(shown.machine),
            "slowdowns": slowdowns_here(run, shown.machine),
            "cores": shown.machine.cores,
            "is_host": _is_host(shown.machine, model),
        }
        machines = [given, *machines]
    number = {name: position for position, name in enumerate(model.nodes)}
    return {
        "program": fmt.visible(model.program),
        "runs": model.runs,
        "notes": [fmt.visible(note) for note in model.notes],
        "variables": _variables(model),
        "most_processes": MOST_PROCESSES,
        "at": _opened_at(shown),
        "machine": None if shown.machine is None else GIVEN,
        "rates": {
            **asdict(_rates(run)),
            "measured": _curves(recorded_machine(run)),
            "is_host": _is_host(recorded_machine(run), model),
        },
        "machines": machines,
        "root": number[model.root],
        "nodes": [describe_node(node) | {"under": file_of(node)} for node in model.nodes.values()],
        "edges": [{"from": number[one], "to": number[other]} for one, other in model.edges()],
        "chains": [
            {
                "nodes": [number[name] for name in each.chain],
                "pattern": each.pattern,
                "moves": each.moves.as_json(),
                "laws": {quantity: _law(law) for quantity, law in each.laws.items()},
                "texts": {
                    quantity: fmt.visible(each.law(quantity).text)
                    for quantity in ("supersteps", "h", "comp")
                },
                "exchanged": exchanged,
            }
            for each, exchanged in zip(model.chains, exchanged_in_runs(model), strict=True)
        ],
        "larger_arrays": {"bytes": HUGE, "text": LARGER_ARRAYS},
        "memory": None
        if model.memory is None
        else {"law": _law(model.memory), "in_runs": memory_in_runs(model)},
        "outside": None if model.outside is None else _law(model.outside),
        "points": points_of_runs(model),
        "layouts": _lay_out(model, number),
    }


def _variables(model: NodeModel) -> list[Json]:
    """Return the variables, the number of processes last."""
    return [
        {
            "name": name,
            "values": sorted(set(model.measured[name])),
            "origin": fmt.visible(model.origins.get(name, "")),
        }
        for name in (*model.variables, PROCESSES)
    ]


def _opened_at(shown: ShownModel) -> Json:
    """Return the values that are given, by variable.

    Raises:
        UsageError: there is no such variable.
    """
    for name in shown.values:
        if name not in shown.model.measured or name == PROCESSES:
            known = ", ".join(shown.model.variables) or "none"
            raise UsageError(f"view: there is no variable {name}; the variables are: {known}")
    given = {} if shown.nprocs is None else {PROCESSES: float(shown.nprocs)}
    return {**shown.values, **given}


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


def _is_host(machine: Machine | None, model: NodeModel) -> bool:
    """Tell whether a Machine is the computer of the runs, where that is known."""
    host = model.meta.get("host")
    return host is not None and machine is not None and machine.host == host


def _curves(machine: Machine | None) -> list[Json]:
    """Return what a probe measured of a Machine, by number of processes, as far as is needed."""
    return [
        {
            "p": entry.p,
            "empty": entry.empty,
            "patterns": {name: _curve(curve) for name, curve in entry.patterns.items()},
            **{name: getattr(entry, name) for name in _SECONDS},
            **{name: _curve_or_none(getattr(entry, name)) for name in _CURVES},
        }
        for entry in (() if machine is None else machine.measured)
    ]


_SECONDS = ("evicting", "call", "get", "message", "pickle", "unpickle", "pickle_byte")
"""Times that a probe measured, as far as a prediction needs them."""
_CURVES = (
    *("puts", "gets", "collectives", "evicted", "evicted_puts"),
    *("evicted_collectives", "apart", "passes"),
    *("placed", "fetched", "cold", "first", "first_messages"),
    "first_collectives",
)
"""What a probe measured that has no pattern, as far as a prediction needs it."""


def _curve_or_none(curve: Curve | None) -> list[list[float]] | None:
    return None if curve is None else _curve(curve)


def _curve(curve: Curve) -> list[list[float]]:
    return [list(curve.nbytes), list(curve.seconds)]


def _law(law: Law) -> Json:
    """Return a law: its pieces, and what is said where it has no value."""
    return {
        "kind": law.kind,
        "pieces": [
            {
                "forms": [_form(form) for form in piece.forms],
                "shared": [form.shared if law.kind == EXACT else "" for form in piece.forms],
                "where": [_where(where) for where in piece.where],
            }
            for piece in law.pieces
        ],
        "reach": list(astuple(law.reach)),
        "why": fmt.visible(law.why),
        "settle": fmt.visible(words(law.settle)),
        "inside": fmt.visible(law.inside),
        "zero": law.is_zero,
    }


def _where(where: Where) -> Json:
    quantity = postfix(where.quantity)
    return {"quantity": quantity, "low": where.low, "high": where.high, "above": where.above}


def _form(form: Form) -> list[tuple[float, list[float | str]]]:
    """Return the terms of a form: coefficient and postfix."""
    return [
        (float(factor), postfix(in_stages(term, rounded=form.rounded)))
        for factor, term in zip(form.coefficients, form.terms, strict=True)
    ]


def _lay_out(model: NodeModel, number: Mapping[str, int]) -> Json:
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
