"""The profile for pprof and the tools that read its files: samples of call stacks.

There is one sample for each call stack and process, with one value for each metric and the
label ``pid``. A function is a node of the call graph, so that the sums that pprof shows
are those of the pies of the call graph.

Source: profile.proto of google/pprof. The messages are written here, in the thirty lines of
``wire``, since a package for Protocol Buffers would be a dependency of every user.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import record_costs
from bsplib.profiler.format import title_lines
from bsplib.profiler.limits import check_file
from bsplib.profiler.survey import elapsed_s
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bsplib.profiler._arrays import Ints
    from bsplib.profiler.book import Book
    from bsplib.profiler.callgraph import CallGraph, Node
    from bsplib.profiler.export.table import Request
    from bsplib.recording.records import Run


_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = range(1, 7)
_TIME_NANOS, _DURATION_NANOS, _COMMENT, _DEFAULT_SAMPLE_TYPE = 9, 10, 13, 14
"""Numbers of the fields of a Profile."""
_Strings = defaultdict[str, int]
"""The positions of strings in the table of a profile, in which each is there once."""


def write(request: Request, file: BinaryIO) -> None:
    """Write the samples of a request, compressed by gzip.

    Raises:
        TooLargeError: there are too many samples.
    """
    weights = weights_of(request.profile.callgraph, request.profile.book().book)
    check_file(len(weights[0]), "samples", size_bytes=50)
    with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packing:
        for part in _profile(request.profile.callgraph, weights):
            packing.write(part)


def _profile(callgraph: CallGraph, weights: Weights) -> Iterator[bytes]:
    """Yield the fields of a Profile."""
    strings = _Strings(None, {"": 0})
    strings.default_factory = strings.__len__  # a new one is the next
    for name, unit in VALUES:
        yield message(_SAMPLE_TYPE, number(1, strings[name]) + number(2, strings[unit]))
    # A label without a unit is lost where its number is 0, that of the first process.
    label = number(1, strings["pid"]) + number(4, strings["count"])
    yield from _samples(callgraph, weights, label)
    yield message(_MAPPING, _mapping(callgraph.run, strings))
    for position, node in enumerate(_nodes(callgraph), start=1):
        yield message(_LOCATION, _location(position, node))
        yield message(_FUNCTION, _function(position, node, strings))
    yield from _facts(callgraph.run, strings)
    for string in strings:
        yield text(_STRING, string)


def _nodes(callgraph: CallGraph) -> list[Node]:
    return [node for _, node in callgraph.graph.nodes(data="node")]


def _samples(callgraph: CallGraph, weights: Weights, label: bytes) -> Iterator[bytes]:
    """Yield the samples, each with a label to which the pid is added.

    The numbers of locations are those of nodes, from 1.
    """
    place = {node.id: position for position, node in enumerate(_nodes(callgraph), start=1)}
    stacks = [packed(1, [place[node] for node in reversed(chain)]) for chain in callgraph.origins]
    for origin, pid, values in zip(*(each.tolist() for each in weights), strict=True):
        labelled = message(3, label + number(3, pid))
        yield message(_SAMPLE, stacks[origin] + packed(2, values) + labelled)


def _mapping(run: Run, strings: _Strings) -> bytes:
    """Return the program, and that its functions, files and lines are known."""
    known = b"".join(number(field, 1) for field in (7, 8, 9))
    program = strings[fmt.visible(str(run.meta.get("program", "")))]
    return number(1, 1) + number(5, program) + known


def _location(position: int, node: Node) -> bytes:
    line = number(1, position) + number(2, node.line)
    return number(1, position) + number(2, 1) + message(4, line)


def _function(position: int, node: Node, strings: _Strings) -> bytes:
    name, file = strings[fmt.label(node)], strings[fmt.visible(node.file)]
    # Where both names are equal, pprof takes <locals> for arguments of a template.
    system_name = strings[node.id]
    fields = (position, name, system_name, file, node.line)
    return b"".join(number(field, value) for field, value in enumerate(fields, start=1))


def _facts(run: Run, strings: _Strings) -> Iterator[bytes]:
    """Yield when the run started, how long it took, what it was, and what to show first."""
    try:
        started = datetime.fromisoformat(str(run.meta.get("started")))
        yield number(_TIME_NANOS, max(0, round(started.timestamp() * 1e6)) * 1000)
    except (ValueError, OverflowError):
        pass  # it was not recorded
    yield number(_DURATION_NANOS, round(elapsed_s(run) * 1e9))
    for line in title_lines(run):
        yield number(_COMMENT, strings[line])
    yield number(_DEFAULT_SAMPLE_TYPE, strings["loss"])


# -- what each process spent at each call stack, for formats that hold stacks with weights --------


Weights = tuple["Ints", "Ints", "Ints"]
"""Call stacks and processes, with what was spent there: see :func:`weights_of`."""

VALUES = (
    ("supersteps", "count"),
    ("computation", "nanoseconds"),
    ("communication", "nanoseconds"),
    ("idle", "nanoseconds"),
    ("h", "bytes"),
    ("loss", "nanoseconds"),
)
"""Name and unit of each value."""


def weights_of(callgraph: CallGraph, book: Book) -> Weights:
    """Sum up the records of a run by call stack and process.

    What a process has of supersteps, times and h adds up to its slices in the pies of the
    call graph. A loss is that of its root, on average over the processes that lose it, and the
    losses add up to that of the run.

    Args:
        callgraph: the call graph of the run.
        book: the book of the run.

    Returns:
        Position in ``CallGraph.origins``, process, and values, shape (pairs, ``len(VALUES)``).
    """
    run = callgraph.run
    keys = callgraph.origin_of_records().astype(np.int64) * run.nprocs + run.records["pid"]
    found, pair = np.unique(keys, return_inverse=True)
    columns = (run.records["kind"] != Kind.END, *record_costs(run))
    lost = np.zeros(len(found))
    for (_, origin), by_pid in book.sums.losses.items():
        for pid, ns in by_pid.items():
            lost[np.searchsorted(found, origin * run.nprocs + pid)] += ns / run.nprocs
    sums = [*(np.bincount(pair, column, len(found)) for column in columns), lost]
    values = np.rint(np.stack(sums, axis=1)).astype(np.int64)
    return *np.divmod(found, run.nprocs), values


# -- the wire format of Protocol Buffers, as far as it is needed to write messages ----------------
#
# Source: Protocol Buffers, Encoding: varints (wire type 0) and length-delimited fields (2).


_VARINT, _DELIMITED = 0, 2


def number(field: int, value: int) -> bytes:
    """Return a field with an integer, ``0 <= value < 2**63``; nothing for 0, the default."""
    return _varint(field << 3 | _VARINT) + _varint(value) if value else b""


def message(field: int, content: bytes) -> bytes:
    """Return a field with the fields of another message."""
    return _varint(field << 3 | _DELIMITED) + _varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """Return a field with a text, in UTF-8."""
    return message(field, content.encode())


def packed(field: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of integers."""
    return message(field, b"".join(map(_varint, values)))


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
