"""Reads a node model from a file, which may be damaged or hostile.

:mod:`bsplib.profiler.models.nodes.document` describes the file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bsplib.errors import UsageError
from bsplib.experiments.formula import FormulaError
from bsplib.machine import PATTERNS
from bsplib.machine.measured import FRESH, PARTS
from bsplib.profiler.callgraph import Node
from bsplib.profiler.models.band import Reach
from bsplib.profiler.models.nodes.document import FORMAT, MAX_BYTES, VERSION
from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.nodes.laws import EXACT, FITTED, REFUSED, Law, Piece, Where
from bsplib.profiler.models.nodes.model import CALLS, PRICED, ChainModel, NodeModel
from bsplib.profiler.models.nodes.moves import MOST_NEW, PLAIN, Moves, NewStep
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.terms import column
from bsplib.visible import as_command

_MOST_TEXT = 4096
_FRACTION = re.compile(r"-?\d{1,30}(/[1-9]\d{0,29})?")


class ModelError(UsageError):
    """A file is no node model; the text is one sentence."""


# -- writing ------------------------------------------------------------------------------------


def is_model(path: str | Path) -> bool:
    """Whether a file seems to be a node model, by its beginning."""
    try:
        with Path(path).open("rb") as file:
            return FORMAT.encode() in file.read(200)
    except OSError:
        return False


def read_model(path: str | Path) -> NodeModel:
    """Read a model from a file that :func:`write_model` wrote.

    Raises:
        ModelError: the file cannot be read, or is no node model.
    """
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise ModelError(f"{path}: is no node model: it is longer than {MAX_BYTES} bytes")
        found = json.loads(Path(path).read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise ModelError(f"{path}: is no node model: {_instead(Path(path))}") from None
    try:
        return model_of(found)
    except _WrongError as wrong:
        raise ModelError(f"{path}: is no node model that can be read: {wrong}") from None


def _instead(path: Path) -> str:
    """Say what a file is that is no JSON."""
    with path.open("rb") as file:
        is_archive = file.read(4) == b"PK\x03\x04"
    if not is_archive:
        return "it is no JSON"
    command = as_command("bsp", "fit", "--out", "model.json", path)
    return f"it is a trace; make a model of traces first, as in {command}"


def model_of(found: Any) -> NodeModel:
    """Return the model of a document.

    Raises:
        ValueError: it is not well formed.
    """
    whole = _object(found, "the file")
    _check(whole.get("format") == FORMAT, f"its format is not {FORMAT!r}")
    _check(
        whole.get("version") == VERSION,
        f"it has version {whole.get('version')!r:.20}, and this program reads version {VERSION}",
    )
    measured, origins = _variables(_object(whole.get("variables"), "variables"))
    nodes = [_node(entry) for entry in _list(whole.get("nodes"), "nodes")]
    chains = tuple(
        _chain(_object(entry, "a chain"), nodes, measured)
        for entry in _list(whole.get("chains"), "chains")
    )
    _check(bool(chains), "it has no chains")
    roots = {each.chain[0] for each in chains}
    _check(len(roots) == 1, "its chains begin at different functions")
    notes = tuple(_text(note, "a note") for note in _list(whole.get("notes"), "notes"))
    memory, outside = (
        None if whole.get(name) is None else _read_law(_object(whole[name], name), measured)
        for name in ("memory", "outside")
    )
    runs: Any = whole.get("runs")
    _check(type(runs) is int and 0 < runs < 10**9, "runs is no number of runs")
    return NodeModel(
        _text(whole.get("program"), "program"),
        {node.id: node for node in nodes},
        chains,
        measured,
        origins,
        runs,
        _object(whole.get("meta"), "meta"),
        notes,
        memory,
        outside,
    )


class _WrongError(ValueError):
    """Something in a document is not as it should be."""


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _check(is_right: bool, otherwise: str) -> None:
    if not is_right:
        raise _WrongError(otherwise)


def _object(value: Any, what: str) -> dict[str, Any]:
    _check(isinstance(value, dict), f"{what} is no object")
    result: dict[str, Any] = value
    return result


def _list(value: Any, what: str) -> list[Any]:
    _check(isinstance(value, list), f"{what} is no list")
    result: list[Any] = value
    return result


def _text(value: Any, what: str) -> str:
    _check(isinstance(value, str) and len(value) <= _MOST_TEXT, f"{what} is no text, or too long")
    return str(value)


def _number(value: Any, what: str) -> float:
    _check(type(value) in (int, float), f"{what} is no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    _check(math.isfinite(number), f"{what} is no finite number")
    return number


def _variables(
    found: Mapping[str, Any],
) -> tuple[dict[str, tuple[float, ...]], dict[str, str]]:
    measured, origins = {}, {}
    for name, entry in found.items():
        _check(name.isidentifier() and len(name) < 100, f"{name!r:.50} is no name of a variable")
        values = _list(_object(entry, name).get("values"), f"the values of {name}")
        measured[name] = tuple(_number(value, f"a value of {name}") for value in values)
        origins[name] = _text(entry.get("from", ""), f"the origin of {name}")
    _check(PROCESSES in measured, "it has no variable p")
    lengths = {len(values) for values in measured.values()}
    _check(len(lengths) == 1 and 0 not in lengths, "the variables have not as many values each")
    _check(min(measured[PROCESSES]) >= 1, "p is less than 1")
    return measured, {name: origin for name, origin in origins.items() if origin}


def _node(entry: Any) -> Node:
    row = _list(entry, "a node")
    _check(len(row) == 6, "a node has not six fields")
    name, kind, *_ = row
    _check(kind in ("function", "cost_centre"), "a node is neither a function nor a cost centre")
    _check(type(row[4]) is int, "the line of a node is no number")
    _check(isinstance(name, str) and bool(re.fullmatch(r"n[0-9a-f]{16}", name)), "an id is wrong")
    title, file, sync = (_text(row[field], "a node") for field in (2, 3, 5))
    return Node(name, kind, title, file, row[4], sync)


def _chain(
    entry: Mapping[str, Any], nodes: Sequence[Node], measured: Mapping[str, Any]
) -> ChainModel:
    places = _list(entry.get("nodes"), "the nodes of a chain")
    sound = all(type(place) is int and 0 <= place < len(nodes) for place in places)
    _check(sound and 0 < len(places) <= len(nodes), "a chain has nodes that do not exist")
    chain = tuple(nodes[place].id for place in places)
    _check(len(set(chain)) == len(chain), "a chain has a node twice")
    laws = _laws(entry.get("laws"), measured)
    _check(set(laws) - {CALLS} == set(PRICED), f"a chain has not the laws {', '.join(PRICED)}")
    shown = _laws(entry.get("shown", {}), measured)
    _check(set(shown) <= {"supersteps", "h"}, "a chain shows laws that do not exist")
    pattern = entry.get("pattern")
    _check(pattern in (None, *PATTERNS), "a chain has a pattern that does not exist")
    moves = PLAIN if "moves" not in entry else _moves(_object(entry["moves"], "moves"))
    return ChainModel(chain, laws, shown, pattern, moves)


def _moves(entry: Mapping[str, Any]) -> Moves:
    # Models of earlier versions have the two parts by index, and no others.
    found = _object(entry.get("parts", {name: entry.get(name) for name in PARTS[:2]}), "parts")
    _check(set(found) <= set(PARTS), "a chain moves parts that do not exist")
    parts = {name: _number(part, name) for name, part in found.items() if part}
    rows = [_list(row, "a new superstep") for row in _list(entry.get("new"), "new supersteps")]
    sound = len(rows) <= MOST_NEW and all(len(row) == 2 for row in rows)
    _check(sound, "a chain has new supersteps that are not sound")
    new = [(_number(left, "a superstep"), _number(cold, "a superstep")) for left, cold in rows]
    whole = all(left in range(FRESH + 1) for left, _ in new)
    least = min([0.0, *parts.values(), *(cold for _, cold in new)])
    _check(whole and least >= 0, "a chain moves what it cannot")
    return Moves(parts, tuple(NewStep(int(left), cold) for left, cold in new))


def _laws(found: Any, measured: Mapping[str, Any]) -> dict[str, Law]:
    return {
        name: _read_law(_object(entry, "a law"), measured)
        for name, entry in _object(found, "laws").items()
    }


def _read_law(entry: Mapping[str, Any], measured: Mapping[str, Any]) -> Law:
    kind = entry.get("kind")
    _check(kind in (EXACT, FITTED, REFUSED), "a law has no such kind")
    pieces = tuple(
        _piece(_object(piece, "a piece"), measured)
        for piece in _list(entry.get("pieces"), "pieces")
    )
    _check(bool(pieces) == (kind != REFUSED), "a law has no pieces, or is refused and has some")
    bounded = len(pieces) == 1 or all(piece.where for piece in pieces)
    _check(bounded, "a law has several pieces, and one does not say where it holds")
    *numbers, calibrated = [*_list(entry.get("reach"), "reach"), None][:5]
    _check(len(numbers) == 4 and isinstance(calibrated, bool), "a reach is not complete")
    least, noise, growth, factor = (_number(value, "a reach") for value in numbers)
    reach = Reach(least, noise, growth, factor, bool(calibrated))
    settle = tuple(_point(point) for point in _list(entry.get("settle"), "settle"))
    inside = _text(entry.get("inside", ""), "inside")
    runs = [_list(run, "a run") for run in _list(entry.get("largest", []), "largest")]
    _check(all(len(run) == 2 for run in runs), "a run has not two parts")
    largest = tuple((_point(point), _number(value, "a run")) for point, value in runs)
    _check(all(point.keys() == measured.keys() for point, _ in largest), "a run lacks a variable")
    return Law(str(kind), pieces, reach, _text(entry.get("why"), "why"), settle, inside, largest)


def _point(found: Any) -> dict[str, float]:
    return {
        _text(name, "a name"): _number(value, "a value")
        for name, value in _object(found, "a run").items()
    }


def _piece(entry: Mapping[str, Any], measured: Mapping[str, Any]) -> Piece:
    forms = tuple(
        _read_form(_object(form, "a form"), measured) for form in _list(entry.get("forms"), "forms")
    )
    _check(0 < len(forms) <= 10, "a piece has no form")
    where = tuple(
        _where(_object(w, "a bound"), measured) for w in _list(entry.get("where"), "where")
    )
    return Piece(forms, where)


def _where(entry: Mapping[str, Any], measured: Mapping[str, Any]) -> Where:
    above = entry.get("above")
    _check(isinstance(above, bool), "a bound has no side")
    low, high = (_number(entry.get(name), "a bound") for name in ("low", "high"))
    return Where(_term(entry.get("quantity"), measured), low, high, bool(above))


def _read_form(entry: Mapping[str, Any], measured: Mapping[str, Any]) -> Form:
    rows = [_list(row, "a term") for row in _list(entry.get("terms"), "terms")]
    _check(all(len(row) == 2 for row in rows) and len(rows) <= 20, "a term has not two parts")
    rounded, weight = entry.get("rounded"), entry.get("weight", 0)
    _check(isinstance(rounded, bool) and type(weight) in (int, float), "a form is not complete")
    return Form(
        tuple(_coefficient(row[0]) for row in rows),
        tuple(_term(row[1], measured) for row in rows),
        rounded=bool(rounded),
        weight=weight,
    )


def _coefficient(value: Any) -> Fraction | float:
    if isinstance(value, str):
        _check(bool(_FRACTION.fullmatch(value)), "a coefficient is no fraction")
        return Fraction(value)
    return _number(value, "a coefficient")


def _term(value: Any, measured: Mapping[str, Any]) -> str:
    """Return a term; it has to have a value where the runs were."""
    text = _text(value, "a term")
    try:
        arrays = {name: np.array(values, float) for name, values in measured.items()}
        column(text, arrays, rounded=False)
    except FormulaError as error:
        raise _WrongError(str(error).replace("*term[0]", "")) from None
    return text
