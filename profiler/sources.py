"""The source code around the nodes of a call graph, read from the files that a trace names.

A trace holds the names of files and their digests, not their content. A file of this computer
is shown only if its digest is that of the file that ran, on whatever computer that was: a trace
that comes from others cannot make a page show another file. The reader may name a folder of
sources; there, files are found by the ends of their names, and also those without a digest are
shown. What is read is never executed.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from importlib.util import decode_source
from typing import TYPE_CHECKING, NamedTuple

from bsplib.recording.sources import content, located
from bsplib.recording.sources import digest as digest_of
from bsplib.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bsplib.profiler.callgraph import CallGraph, Node
    from bsplib.recording.records import Run

MAX_EXCERPT_LINES = 400
"""Greatest number of lines of a function; of a longer one, and of a file where a node is in no
function, those around the node are shown."""
MAX_LINES = 20_000
"""Lines of all excerpts of a run together."""

_CHANGED = "has changed since the run, so it is not shown."
_UNKNOWN = (
    "is not shown: the trace does not have its digest, by which the file that ran would be known. "
    "Name the folder of the sources by bsp view --sources."
)
_DOUBT = "The trace does not have the digest of this file: it may not be the one that ran."


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


def read_sources(
    callgraph: CallGraph, folder: Path | None = None
) -> tuple[list[Excerpt], dict[str, int]]:
    """Read the source of every node of a call graph, as far as it is on this computer.

    The excerpt of a function is the function; that of a cost centre is the innermost
    function around its line.

    Args:
        callgraph: of a run.
        folder: where the reader wants files to be looked for, too.

    Returns:
        The excerpts, of which nodes of one function share one; and the position of the excerpt of
        each node, by its id. Of lines there are at most ``MAX_LINES``; for the nodes that come
        after them, the note says so.
    """
    files: dict[str, _File] = {}
    positions: dict[Excerpt, int] = {}
    of: dict[str, int] = {}
    lines = 0
    for name, node in callgraph.graph.nodes(data="node"):
        if node.file not in files:
            files[node.file] = _read(callgraph.run, node.file, folder)
        excerpt = files[node.file].around(node)
        if excerpt not in positions:
            lines += len(excerpt.lines)
            if lines > MAX_LINES:
                note = f"The source is left out: only {MAX_LINES} lines of a run are shown."
                excerpt = excerpt._replace(lines=(), note=note)
        of[name] = positions.setdefault(excerpt, len(positions))
    return list(positions), of


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
        reach, (first, last) = MAX_EXCERPT_LINES // 2, around or (1, len(self.lines))
        return max(first, line - reach), min(last, line + reach)


def _read(run: Run, name: str, folder: Path | None = None) -> _File:
    """Read a file that a trace names; where that is impossible, its note says why."""
    if not name:
        return _File("", (), "The trace names no file for this function.")
    shown = visible(name)
    digest = run.sources.get(name)
    try:
        found = _found(run, name, digest, folder)
        text = None if found is None else decode_source(found)
    except FileNotFoundError:
        return _File(shown, (), f"{shown} is not on this computer.")
    except (ValueError, SyntaxError):  # a NUL in its name; not in the encoding it declares
        return _File(shown, (), f"{shown} cannot be read: it is not a text.")
    except OSError as error:
        return _File(shown, (), f"{shown} cannot be read: {visible(error.strerror or str(error))}.")
    if text is None:
        return _File(shown, (), f"{shown} {_CHANGED if digest else _UNKNOWN}")
    lines = tuple(text.removesuffix("\n").split("\n"))
    return _File(shown, lines, "" if digest else _DOUBT, tuple(sorted(_functions(text))))


def _found(run: Run, name: str, digest: str | None, folder: Path | None) -> bytes | None:
    """Return the content of a file; None where there is only one that may not be shown.

    Raises:
        OSError: there is no such file, or it is not to be read.
    """
    path = located(name, run.meta.get("folder"))
    for there in [] if folder is None else _inside(folder, path):
        read = content(there)
        if digest is None or digest_of(read) == digest:
            return read
    if digest is None:
        return None
    read = content(path)
    return read if digest_of(read) == digest else None


def _inside(folder: Path, path: Path) -> Iterator[Path]:
    """Yield the files in a folder whose names end as a path does, the most similar first."""
    parts = path.parts
    for first in range(1 if path.is_absolute() else 0, len(parts)):
        there = folder.joinpath(*parts[first:])
        if there.is_file() and there.resolve().is_relative_to(folder.resolve()):
            yield there


def _functions(text: str) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each ``def``; nothing if the text is no Python."""
    try:
        with warnings.catch_warnings():  # of the text, such as invalid escapes
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(part.lineno for part in (node, *node.decorator_list))
            yield first, node.end_lineno or first
