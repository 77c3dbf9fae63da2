"""The data of the view of the source: highlighted lines, and which nodes belong to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from bsplib.profiler.format import visible
from bsplib.profiler.lines import PARTS, lines_of
from bsplib.profiler.sources import read_sources

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.sources import Excerpt
    from bsplib.recording.records import Run


Calls = dict[str, dict[int, list[int]]]
Seconds = Mapping[str, dict[int, dict[str, float]]]


def describe_sources(callgraph: CallGraph, folder: Path | None = None) -> dict[str, Any]:
    """Return the excerpts of a call graph, and the position of that of each node.

    Args:
        callgraph: of a run.
        folder: where source files are looked for, too.

    Returns:
        ``excerpts``: a list of ``file``, ``first`` (number of the first line), ``lines``
        (a list of pieces each, see :func:`bsplib.webui.source.highlight`), ``note``, and
        ``calls``: pairs of a line and the positions of the functions that it calls;
        ``of``: for each node, in the order of the graph, the position of its excerpt.
        Of a run that was sampled an excerpt has ``seconds``: pairs of a line and its seconds by
        part, with all that it calls, as average of the processes.
    """
    excerpts, of = read_sources(callgraph, folder)
    calls, seconds = _calls(callgraph), _seconds(callgraph.run)
    return {
        "excerpts": [_describe(excerpt, calls, seconds) for excerpt in excerpts],
        "of": [of[name] for name in callgraph.graph],
    }


def _describe(excerpt: Excerpt, calls: Calls, seconds: Seconds) -> dict[str, Any]:
    shown = range(excerpt.first, excerpt.first + len(excerpt.lines))
    called, taken = calls.get(excerpt.file, {}), seconds.get(excerpt.file, {})
    return {
        **excerpt._asdict(),
        "lines": highlight(excerpt.lines),
        "calls": [[line, called[line]] for line in shown if line in called],
        "seconds": [[line, taken[line]] for line in shown if line in taken],
    }


def _seconds(run: Run) -> Seconds:
    """Return by file and line what it took with all that it calls, average of the processes."""
    found: defaultdict[str, dict[int, dict[str, float]]] = defaultdict(dict)
    for line in lines_of(run):
        here = found[visible(line.file)].setdefault(line.line, dict.fromkeys(PARTS, 0.0))
        for part, value in line.whole._asdict().items():
            here[part] += value / run.nprocs
    return found


def _calls(callgraph: CallGraph) -> Calls:
    """Return by file and line the positions of the functions that are called there."""
    functions = {
        (node.file, node.name, node.line): position
        for position, (_, node) in enumerate(callgraph.graph.nodes(data="node"))
        if node.kind == "function"
    }
    calls: defaultdict[str, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for stack in callgraph.run.stacks:
        for caller, callee in pairwise(stack):
            position = functions.get((callee.file, callee.function, callee.first_line))
            if position is not None:
                calls[visible(caller.file)][caller.line].add(position)
    return {
        file: {line: sorted(positions) for line, positions in lines.items()}
        for file, lines in calls.items()
    }


# -- source lines cut into pieces by what they are to Python, for the page to colour --------------


Piece = str | tuple[str, str]
"""Plain text, or a role and its text."""

_ROLES = (
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Name.Decorator, "decorator"),
    (Name.Function, "function"),
    (Name.Class, "function"),
    (Name.Builtin, "builtin"),
    (String, "string"),
    (Number, "number"),
    (Comment, "comment"),
)


def highlight(lines: Sequence[str]) -> list[list[Piece]]:
    """Return the pieces of each line; joined, their texts are the lines."""
    lexer = PythonLexer(stripnl=False)
    pieces: list[list[Piece]] = [[]]
    for token, text in lexer.get_tokens("\n".join(lines)):
        role = next((role for kind, role in _ROLES if token in kind), "")
        first, *others = text.split("\n")
        _append(pieces[-1], role, first)
        for part in others:
            pieces.append([])
            _append(pieces[-1], role, part)
    return pieces[: len(lines)]


def _append(line: list[Piece], role: str, text: str) -> None:
    """Add a text to a line: to its last piece, if that has the same role."""
    before = line.pop() if line else ""
    old_role, old_text = ("", before) if isinstance(before, str) else before
    if old_role != role and old_text:
        line.append(before)
        old_text = ""
    if old_text or text:
        line.append((role, old_text + text) if role else old_text + text)
