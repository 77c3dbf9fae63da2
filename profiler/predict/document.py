"""A learnt program as a file: JSON with what its runs had, from which it is learnt anew.

::

    {"format": "bsplib program model", "version": 1, "program": "psrs.py", "runs": 12,
     "meta": {"machine": {...}, ...},
     "nodes": [[id, kind, name, file, line, sync], ...],
     "chains": [{"nodes": [position, ...], "told": false, "inside": false,
                 "laws": {"h": "for readers", ...}}, ...],
     "observations": [{"values": {"n": 4096, "p": 2}, "elapsed_s": 0.12,
                       "chains": {"position": [supersteps, h, ...], ...}}]}

The numbers of a chain are the fields of :class:`bsplib.profiler.predict.observed.Quantities`.

A file may be damaged or hostile: whatever is no number, or not finite, is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bsplib.errors import UsageError
from bsplib.output_file import write_text
from bsplib.profiler.callgraph import Node
from bsplib.profiler.predict.observed import Observation, ObservedProgram, Quantities
from bsplib.profiler.predict.program import ProgramModel, learn_observed
from bsplib.profiler.predict.values import PROCESSES
from bsplib.visible import as_command

FORMAT = "bsplib program model"
VERSION = 1


class ModelError(UsageError):
    """A file is no model of a program; the text is one sentence."""


def document(model: ProgramModel) -> dict[str, Any]:
    """Return a model in values of JSON."""
    program = model.observed
    place = {name: number for number, name in enumerate(program.nodes)}
    position = {chain: str(number) for number, chain in enumerate(program.chains)}
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": model.program,
        "runs": model.runs,
        "meta": dict(model.meta),
        "nodes": [list(vars(node).values()) for node in program.nodes.values()],
        "chains": [
            {
                "nodes": [place[name] for name in each.chain],
                "told": each.chain in program.told,
                "inside": each.chain in program.inside,
                "laws": {name: learned.text for name, learned in each.learned.items()},
            }
            for each in model.chains
        ],
        "observations": [
            {
                "values": each.values,
                "elapsed_s": each.elapsed_s,
                "chains": {position[chain]: list(row) for chain, row in each.chains.items()},
            }
            for each in program.observations
        ],
    }


def write_model(model: ProgramModel, path: str | Path, *, force: bool = False) -> None:
    """Write a model into a file.

    Args:
        model: the model.
        path: the file.
        force: replace a file that exists.

    Raises:
        OSError: the file cannot be written, or it exists and ``force`` is not given.
    """
    write_text(path, json.dumps(document(model), indent=1) + "\n", force=force)


def is_model(path: str | Path) -> bool:
    """Whether a file seems to be a model of a program, by its beginning."""
    try:
        with Path(path).open("rb") as file:
            return FORMAT.encode() in file.read(200)
    except OSError:
        return False


def read_model(path: str | Path) -> ProgramModel:
    """Read a model from a file that :func:`write_model` wrote.

    Raises:
        ModelError: the file cannot be read, or is no model.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    if content.startswith(b"PK\x03\x04"):
        command = as_command("bsp", "predict", "--model-out", "model.json", path)
        raise ModelError(
            f"{path} is no model: it is a trace; make a model of traces first, as in {command}"
        )
    try:
        return model_of(json.loads(content, parse_constant=_no_constant))
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as no:
        why = f"{no} is missing" if isinstance(no, KeyError) else no
        raise ModelError(f"{path} is no model that can be read: {why}") from None


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no finite number")


def model_of(found: Any) -> ProgramModel:
    """Return the model of a document.

    Raises:
        ValueError: it is not well formed; so do other errors of a look-up.
    """
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    if found.get("version") != VERSION:
        raise ValueError(f"it has version {found.get('version')!r:.20}, and {VERSION} is read")
    nodes = {place: Node(*map(_typed, entry, _NODE)) for place, entry in enumerate(found["nodes"])}
    chains = {
        place: tuple(nodes[node].id for node in each["nodes"])
        for place, each in enumerate(found["chains"])
    }
    observations = [_observation(each, chains) for each in found["observations"]]
    names = {tuple(each.values) for each in observations}
    if len({chain[0] for chain in chains.values()}) != 1:
        raise ValueError("its chains do not begin at one function")
    if len(names) != 1 or PROCESSES not in next(iter(names)):
        raise ValueError("its observations do not have the same variables, with p")
    if any(node.kind not in ("function", "cost_centre") for node in nodes.values()):
        raise ValueError("a node is of no known kind")
    told, inside = (
        frozenset(chains[place] for place, each in enumerate(found["chains"]) if each.get(name))
        for name in ("told", "inside")
    )
    by_id = {node.id: node for node in nodes.values()}
    order = dict.fromkeys(name for chain in chains.values() for name in chain)
    ordered = {name: by_id[name] for name in order}
    program = ObservedProgram(ordered, tuple(chains.values()), told, inside, observations)
    return learn_observed(program, _typed(found["runs"], int), dict(found["meta"]))


_NODE = (str, str, str, str, int, str)
"""Types of the fields of a node."""


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r:.40} is no {kind.__name__}")
    return value


def _observation(each: Any, chains: Mapping[int, tuple[str, ...]]) -> Observation:
    values = {str(name): _number(value) for name, value in each["values"].items()}
    if any(not name.isidentifier() for name in values) or values.get(PROCESSES, 0) < 1:
        raise ValueError("a variable is no name, or p is less than 1")
    rows = {
        chains[int(place)]: Quantities(*map(_number, row)) for place, row in each["chains"].items()
    }
    return Observation(values, rows, _number(each["elapsed_s"]))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r:.40} is no finite number")
    return float(value)
