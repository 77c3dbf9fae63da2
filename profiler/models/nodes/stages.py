"""The stages that a collective has on another Machine than that of the runs.

A broadcast has one stage or two, as the Machine's g and l say: two pay where
``bytes * (p - 2) > l / g`` (Jarvis et al. 2002, equation 8). So a bound between two forms of its
cost centre, found in runs on one Machine, lies elsewhere on another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bsplib.profiler.models.nodes.laws import Law, Where

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.callgraph import Node
    from bsplib.profiler.models.nodes.model import ChainModel, NodeModel

_CHOOSES = "· broadcast"
"""How the name of a cost centre ends that chooses its stages by the Machine."""
_BOUND = "*(p - 2)"
"""How a quantity ends that is proportional to the bytes times p - 2."""


def shift_of(recorded: Machine | None, machine: Machine) -> float:
    """Return l / g of a Machine divided by that of the recorded one; 1 where it is not known."""
    if recorded is None:
        return 1.0
    figures = recorded.l, recorded.g, machine.l, machine.g
    if any(figure is None or figure <= 0 for figure in figures):
        return 1.0
    return float((machine.l or 0) / machine.g / ((recorded.l or 0) / recorded.g))


def on_machine(model: NodeModel, shift: float) -> NodeModel:
    """Return a model with the bounds of its broadcasts where another Machine has them.

    Args:
        model: the laws of a program.
        shift: of :func:`shift_of`.
    """
    if shift == 1:
        return model
    return replace(model, chains=tuple(_moved(each, model.nodes, shift) for each in model.chains))


def _moved(each: ChainModel, nodes: Mapping[str, Node], shift: float) -> ChainModel:
    if not chooses(nodes[each.chain[-1]]):
        return each
    laws, shown = (
        {name: _shifted(law, shift) for name, law in some.items()}
        for some in (each.laws, each.shown)
    )
    return replace(each, laws=laws, shown=shown)


def chooses(node: Node) -> bool:
    """Whether a cost centre is a collective that chooses its stages by the Machine."""
    return node.name.endswith(_CHOOSES)


def of_stages(law: Law) -> list[tuple[Where, ...]]:
    """Return for each piece its bounds that may be those of equation 8; nothing if one has none."""
    found = [
        tuple(where for where in piece.where if where.quantity.endswith(_BOUND))
        for piece in law.pieces
    ]
    return found if all(found) else []


def _shifted(law: Law, shift: float) -> Law:
    """Return a law with its bounds on the bytes times p - 2 alone, moved."""
    bounds = of_stages(law)
    if not bounds:
        return law
    pieces = [
        replace(
            piece,
            where=tuple(replace(w, low=w.low * shift, high=w.high * shift) for w in where),
        )
        for piece, where in zip(law.pieces, bounds, strict=True)
    ]
    return replace(law, pieces=tuple(pieces))
