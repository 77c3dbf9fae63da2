"""The stages that a collective has on another Machine than that of the runs.

A broadcast has one stage or two, as the Machine's g and l say, and so do reductions and scans. The
functions of :mod:`bsplib.experiments.collective_costs` have l / g as their last argument: on
another Machine it is another number.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from bsplib.experiments.collective_costs import COST_FUNCTIONS
from bsplib.profiler.models.nodes.values import PROCESSES

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.models.nodes.laws import Law
    from bsplib.profiler.models.nodes.model import NodeModel

_FUNCTION = re.compile("|".join(COST_FUNCTIONS))
_RATIO = re.compile(rf"(?<=, {PROCESSES}, )[0-9.e+-]+(?=\))")


def shift_of(recorded: Machine | None, machine: Machine) -> float:
    """Return l / g of a Machine divided by that of the recorded one; 1 where it is not known."""
    if recorded is None:
        return 1.0
    figures = recorded.l, recorded.g, machine.l, machine.g
    if any(figure is None or figure <= 0 for figure in figures):
        return 1.0
    return float((machine.l or 0) / machine.g / ((recorded.l or 0) / recorded.g))


def on_machine(model: NodeModel, shift: float) -> NodeModel:
    """Return a model with the stages of its collectives as another Machine has them.

    Args:
        model: the laws of a program.
        shift: of :func:`shift_of`.
    """
    if shift == 1:
        return model
    chains = [
        replace(
            each,
            laws={name: _shifted(law, shift) for name, law in each.laws.items()},
            shown={name: _shifted(law, shift) for name, law in each.shown.items()},
        )
        for each in model.chains
    ]
    return replace(model, chains=tuple(chains))


def _shifted(law: Law, shift: float) -> Law:
    """Return a law with the last argument of its cost functions times a number."""
    pieces = [
        replace(
            piece,
            forms=tuple(
                replace(form, terms=tuple(_moved(term, shift) for term in form.terms))
                for form in piece.forms
            ),
        )
        for piece in law.pieces
    ]
    return replace(law, pieces=tuple(pieces))


def _moved(term: str, shift: float) -> str:
    if not _FUNCTION.search(term):
        return term
    return _RATIO.sub(lambda found: f"{float(found[0]) * shift:.12g}", term)
