"""The source code around the nodes of a call graph, read from the files that a trace names.

A trace holds the names of files, not their content. A file is read only if a frame of the
trace names it and it looks like a Python program, and what is read is never executed. The
file may have changed since the run, or belong to another computer: the excerpt says so.
"""

from __future__ import annotations

import ast
import math
import platform
import tokenize
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bsplib.output_file import special_kind
from bsplib.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.recording.records import Run
    from profiler.callgraph import CallGraph, Node

MAX_FILE_BYTES = 4 * 2**20
"""A longer file is not read."""
MAX_EXCERPT_LINES = 400
"""Of a longer function only the lines around the node are shown."""
MAX_LINES = 20_000
"""Lines of all excerpts of a run together."""
CONTEXT_LINES = 20
"""Lines shown before and after a line that is in no function."""

_SUFFIXES = (".py", ".pyw")
_CLOCK_S = 1.0
"""The start of a run is recorded in whole seconds."""


class Excerpt(NamedTuple):
    """Lines of a source file: a function, or the surroundings of a line."""

    file: str
    """Name of the file as in the trace, safe to print."""
    first: int
    """Number of the first line, from 1."""
    lines: tuple[str, ...]
    """Without line ends; empty if the source cannot be shown."""
    note: str
    """Sentences that say why nothing is shown, or what may be wrong; else empty."""


@dataclass(frozen=True)
class Sources:
    """The excerpts of the nodes of a call graph; nodes of one function share one."""

    excerpts: tuple[Excerpt, ...]
    of: dict[str, int]
    """For each node, by its id, the position of its excerpt."""


def read_sources(callgraph: CallGraph) -> Sources:
    """Read the source of every node of a call graph, as far as it is on this computer.

    The excerpt of a function is the function; that of a cost centre is the innermost
    function around its line.

    Returns:
        At most ``MAX_LINES`` lines; for the nodes that come after them, the note says so.
    """
    files: dict[str, _File] = {}
    positions: dict[Excerpt, int] = {}
    of: dict[str, int] = {}
    lines = 0
    for name, node in callgraph.graph.nodes(data="node"):
        if node.file not in files:
            files[node.file] = _read(callgraph.run, node.file)
        excerpt = files[node.file].around(node)
        if excerpt not in positions:
            lines += len(excerpt.lines)
            if lines > MAX_LINES:
                excerpt = _without_lines(excerpt)
        of[name] = positions.setdefault(excerpt, len(positions))
    return Sources(tuple(positions), of)


def parsed(run: Run, name: str) -> ast.Module | None:
    """Return the syntax tree of a file that a run came through; it is not executed.

    Args:
        run: a run; where it is one of several, the earliest.
        name: the file, as in the trace.

    Returns:
        None where the file cannot be read, or may not be the one that ran.
    """
    if math.isinf(_started_s(run)):
        return None
    file = _read(run, name)
    return None if file.note or not file.lines else _tree("\n".join(file.lines))


def _without_lines(excerpt: Excerpt) -> Excerpt:
    note = f"The source is left out: only {MAX_LINES} lines of a run are shown."
    return Excerpt(excerpt.file, excerpt.first, (), note)


@dataclass(frozen=True)
class _File:
    """A source file: its lines, and where its functions are."""

    name: str
    lines: tuple[str, ...]
    note: str
    spans: tuple[tuple[int, int], ...] = ()
    """First and last line of each function, sorted."""

    def around(self, node: Node) -> Excerpt:
        """Return the excerpt for a node of this file."""
        if not self.lines:
            return Excerpt(self.name, node.line, (), self.note)
        if node.line > len(self.lines):
            gone = f"Line {node.line} is missing: the file has {len(self.lines)} lines now."
            return Excerpt(self.name, node.line, (), gone)
        first, last = self._span(node.line)
        return Excerpt(self.name, first, self.lines[first - 1 : last], self.note)

    def _span(self, line: int) -> tuple[int, int]:
        """Return the first and last line to show for a line."""
        inner = self.spans[: bisect_right(self.spans, (line, len(self.lines)))]
        around = next((span for span in reversed(inner) if span[1] >= line), None)
        if around is not None and around[1] - around[0] < MAX_EXCERPT_LINES:
            return around
        reach = CONTEXT_LINES if around is None else MAX_EXCERPT_LINES // 2
        first, last = around or (1, len(self.lines))
        return max(first, line - reach), min(last, line + reach)


def _read(run: Run, name: str) -> _File:
    """Read a file that a trace names; where that is impossible, its note says why."""
    if not name:
        return _File("", (), "The trace names no file for this function.")
    shown = visible(name)
    try:
        path = _find(run, name)
        with tokenize.open(path) as file:
            text = file.read()
        note = " ".join(_doubts(run, path))
    except FileNotFoundError:
        return _File(shown, (), f"{shown} is not on this computer.")
    except (ValueError, SyntaxError):  # a NUL in its name; not in the encoding it declares
        return _File(shown, (), f"{shown} cannot be read: it is not a text.")
    except OSError as error:
        return _File(shown, (), f"{shown} cannot be read: {visible(error.strerror or str(error))}.")
    lines = tuple(text.removesuffix("\n").split("\n"))
    return _File(shown, lines, note, tuple(sorted(_functions(text))))


def _find(run: Run, name: str) -> Path:
    """Return the path of a file; a relative name begins at the folder of the run.

    Raises:
        OSError: there is no such file, or it is not to be read.
    """
    if not name.endswith(_SUFFIXES):
        raise OSError("its name does not end in .py")
    folder = run.meta.get("folder")
    path = Path(folder if isinstance(folder, str) else "", name)
    if kind := special_kind(path):
        raise OSError(f"it is {kind}")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise OSError("it is longer than 4 MiB")
    return path


def _doubts(run: Run, path: Path) -> Iterator[str]:
    """Yield why a file may not be the one that ran."""
    host = run.meta.get("host")
    if isinstance(host, str) and host != platform.node():
        yield (
            f"The run was recorded on {visible(host)}: "
            "this is the file of the same name on this computer."
        )
    elif path.stat().st_mtime > _started_s(run) + _CLOCK_S:
        yield "The file has changed since the run, so its lines may have moved."


def _started_s(run: Run) -> float:
    """Return when a run started, in seconds since 1970; infinity if that is not known."""
    try:
        return datetime.fromisoformat(run.meta["started"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return float("inf")


def _functions(text: str) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each ``def``; nothing if the text is no Python."""
    tree = _tree(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(part.lineno for part in (node, *node.decorator_list))
            yield first, node.end_lineno or first


def _tree(text: str) -> ast.Module | None:
    """Return the syntax tree of a text; None if it is no Python."""
    try:
        with warnings.catch_warnings():  # of the text, such as invalid escapes
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
