"""A learnt program as a file: JSON with what its runs had, from which it is learnt anew.

::

    {"format": "bsplib program model", "version": 1, "program": "psrs.py", "runs": 12,
     "origins": {"n": "size of the program"}, "meta": {"machine": {...}, ...},
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
_MOST_BYTES = 64 * 2**20
_MOST_TEXT = 4096


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
        "origins": dict(model.origins),
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
        UsageError: the file cannot be written, or it exists and ``force`` is not given.
    """
    text = json.dumps(document(model), indent=1)
    try:
        write_text(path, text + "\n", force=force)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


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
        if Path(path).stat().st_size > _MOST_BYTES:
            raise ModelError(f"{path} is no model: it is longer than {_MOST_BYTES} bytes")
        found = json.loads(Path(path).read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise ModelError(f"{path} is no model: {_instead(Path(path))}") from None
    try:
        return model_of(found)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as wrong:
        raise ModelError(f"{path} is no model that can be read: {_cause(wrong)}") from None


def _cause(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no finite number")


def _instead(path: Path) -> str:
    """Say what a file is that is no JSON."""
    with path.open("rb") as file:
        is_archive = file.read(4) == b"PK\x03\x04"
    if not is_archive:
        return "it is no JSON"
    command = as_command("bsp", "predict", "--model-out", "model.json", path)
    return f"it is a trace; make a model of traces first, as in {command}"


def model_of(found: Any) -> ProgramModel:
    """Return the model of a document.

    Raises:
        ValueError: it is not well formed; so do other errors of a look-up.
    """
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    if found.get("version") != VERSION:
        raise ValueError(f"it has version {found.get('version')!r:.20}, and {VERSION} is read")
    nodes = [_node(entry) for entry in found["nodes"]]
    chains = [
        tuple(nodes[_count(place, len(nodes))].id for place in each["nodes"])
        for each in found["chains"]
    ]
    observations = [_observation(each, chains) for each in found["observations"]]
    names = {tuple(each.values) for each in observations}
    if not chains or len({chain[0] for chain in chains}) != 1:
        raise ValueError("its chains do not begin at one function")
    if len(names) != 1 or PROCESSES not in next(iter(names)):
        raise ValueError("its observations do not have the same variables, with p")
    marked = {
        name: frozenset(
            chain for chain, each in zip(chains, found["chains"], strict=True) if each.get(name)
        )
        for name in ("told", "inside")
    }
    order = dict.fromkeys(name for chain in chains for name in chain)
    by_id = {node.id: node for node in nodes}
    program = ObservedProgram(
        {name: by_id[name] for name in order},
        tuple(chains),
        marked["told"],
        marked["inside"],
        observations,
    )
    meta, origins = (
        dict(found["meta"]),
        {_text(name): _text(origin) for name, origin in found["origins"].items()},
    )
    return learn_observed(program, _count(found["runs"], 10**9), meta, origins)


def _node(entry: Any) -> Node:
    identity, kind, name, file, line, sync = entry
    if kind not in ("function", "cost_centre"):
        raise ValueError(f"{kind!r:.40} is no kind of node")
    return Node(_text(identity), kind, _text(name), _text(file), _count(line, 2**31), _text(sync))


def _observation(each: Any, chains: list[tuple[str, ...]]) -> Observation:
    values = {_text(name): _number(value) for name, value in each["values"].items()}
    if any(not name.isidentifier() for name in values) or values.get(PROCESSES, 0) < 1:
        raise ValueError("a variable is no name, or p is less than 1")
    rows = {
        chains[_count(int(place), len(chains))]: Quantities(*(_number(number) for number in row))
        for place, row in each["chains"].items()
    }
    return Observation(values, rows, _number(each["elapsed_s"]))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r:.40} is no finite number")
    return float(value)


def _count(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value < most:
        raise ValueError(f"{value!r:.40} is no whole number from 0 to {most - 1}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise ValueError(f"{value!r:.40} is no text")
    return value
