"""A node model as a file: JSON of a version, with laws that a person can read.

::

    {"format": "bsplib node model", "version": 1, "program": "psrs.py", "runs": 12,
     "variables": {"n": {"values": [4096, ...], "from": "--size"}, "p": {"values": [2, ...]}},
     "nodes": [[id, kind, name, file, line, sync], ...],
     "chains": [{"nodes": [position, ...], "pattern": "all-to-all" or null,
                 "moves": {"parts": {"placed": 0.5}, "new": [[left, cold], ...]} (optional),
                 "laws": {"h": LAW, ...}, "shown": {...}}, ...],
     "meta": {"machine": {...}, ...}, "notes": [...], "memory": LAW or null (optional),
     "outside": LAW or null (optional)}

    LAW = {"kind": "exact" | "fitted" | "refused", "text": for readers, "pieces": [PIECE, ...],
           "reach": [least, noise, growth, factor, calibrated], "why": "...",
           "settle": [{"n": 1024, "p": 8}, ...], "inside": "..." (optional),
           "largest": [[{"n": 16384, "p": 2}, value], ...] (optional)}
    PIECE = {"forms": [{"terms": [["16", "n*(p - 1)/p"], ...], "rounded": true, "weight": 3}, ...],
             "where": [{"quantity": "n/p", "low": 64, "high": 128, "above": true}, ...]}

A coefficient is a number, or a text with a fraction, which is exact. Terms have the syntax of
:mod:`bsplib.experiments.formula`; they are never executed as Python.
"""

from __future__ import annotations

import json
import re
from dataclasses import astuple
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bsplib.errors import UsageError
from bsplib.output_file import write_text
from bsplib.profiler.models.nodes.moves import PLAIN

if TYPE_CHECKING:
    from bsplib.profiler.models.nodes.forms import Form
    from bsplib.profiler.models.nodes.laws import Law
    from bsplib.profiler.models.nodes.model import NodeModel

FORMAT = "bsplib node model"
VERSION = 1
MAX_BYTES = 64 * 2**20


def document(model: NodeModel) -> dict[str, Any]:
    """Return a model in values of JSON."""
    place = {name: number for number, name in enumerate(model.nodes)}
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": model.program,
        "runs": model.runs,
        "variables": {
            name: {"values": list(values), "from": model.origins.get(name, "")}
            for name, values in model.measured.items()
        },
        "nodes": [
            [node.id, node.kind, node.name, node.file, node.line, node.sync]
            for node in model.nodes.values()
        ],
        "chains": [
            {
                "nodes": [place[name] for name in each.chain],
                "pattern": each.pattern,
                **({} if each.moves == PLAIN else {"moves": each.moves.as_json()}),
                "laws": {name: _law(law) for name, law in each.laws.items()},
                "shown": {name: _law(law) for name, law in each.shown.items()},
            }
            for each in model.chains
        ],
        "meta": dict(model.meta),
        "notes": list(model.notes),
        "memory": None if model.memory is None else _law(model.memory),
        "outside": None if model.outside is None else _law(model.outside),
    }


def _law(law: Law) -> dict[str, Any]:
    return {
        "kind": law.kind,
        "text": law.text,
        "pieces": [
            {
                "forms": [_form(form) for form in piece.forms],
                "where": [
                    {"quantity": w.quantity, "low": w.low, "high": w.high, "above": w.above}
                    for w in piece.where
                ],
            }
            for piece in law.pieces
        ],
        "reach": list(astuple(law.reach)),
        "why": law.why,
        "settle": list(law.settle),
        **({"inside": law.inside} if law.inside else {}),
        **({"largest": [list(run) for run in law.largest]} if law.largest else {}),
    }


def _form(form: Form) -> dict[str, Any]:
    terms = [
        [str(factor) if isinstance(factor, Fraction) else factor, term]
        for factor, term in zip(form.coefficients, form.terms, strict=True)
    ]
    return {"terms": terms, "rounded": form.rounded, "weight": form.weight}


def write_model(model: NodeModel, path: str | Path, *, force: bool = False) -> None:
    """Write a model into a file.

    Args:
        model: the model.
        path: the file.
        force: replace a file that exists.

    Raises:
        UsageError: the file cannot be written.
    """
    text = json.dumps(document(model), indent=1) + "\n"
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", _on_one_line, text)
    try:
        write_text(path, text, force=force)
    except (OSError, UnicodeEncodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be written: {reason}") from None


def _on_one_line(match: re.Match[str]) -> str:
    """Join a list of plain values; texts with line breaks do not exist in JSON."""
    return "[" + re.sub(r",\n\s+", ", ", match[1]) + "]"
