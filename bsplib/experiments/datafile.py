"""The data file of experiments: one line of JSON for each passage of a block.

A line is also a measurement in the JSON Lines format of Extra-P 4, with more beside it:

=========== ====================================================================================
params      values of the names in the formula, and P, the number of processes of the group
callpath    name of the block
metric      ``time``
value       the longest time of a process, in seconds
formula     formula of the time
pids        processes that passed the block with these values, by their number in the run
times       their times in seconds
supersteps  number of supersteps of the group that ended inside
entry       how often the group had passed the block before in this run
h           for each of these processes the bytes of the h-relations inside: the sum over the
            supersteps of what it sent or received, whichever is more; where the run was recorded
counted     by name of a counter, what it counted on each of these processes; where counters
            were asked for
run         ``id`` and ``of`` (number of lines of that id: fewer are an execution that was cut
            short), ``nprocs``, ``backend``, ``machine``, ``program``, ``host``, ``set`` (values
            that the sweep gave), ``repeat``, ``number`` (of the run in the execution)
=========== ====================================================================================

Files can be merged, and appended to. Lines of an execution that was cut short do not count.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bsplib.errors import UsageError
from bsplib.experiments.blocks import BlockSample, Samples
from bsplib.output_file import OutputKind, obstacle, write_text

Row = dict[str, Any]
"""A line of the file."""

_MOST_BYTES = 2**30


@dataclass(frozen=True)
class Experiment:
    """All passages of the blocks of one name."""

    name: str
    formulas: tuple[str, ...]
    """One, unless the program was changed."""
    values: dict[str, list[float]]
    """By name, one element for each passage."""
    times: list[float]
    """The longest time of a process, in seconds."""
    rows: list[Row]


def rows_of(
    samples: Sequence[Samples],
    run: Mapping[str, Any],
    h: Mapping[tuple[int, int], int] | None = None,
) -> list[Row]:
    """Return the lines of a run.

    Args:
        samples: what each process has measured.
        run: what the lines say of the run.
        h: bytes of the h-relation by process and position among its samples, where known.
    """
    together: dict[Hashable, list[tuple[int, int, BlockSample]]] = {}
    for pid, own in enumerate(samples):
        for number, each in enumerate(own.kept):
            values = tuple(sorted(each.values.items()))
            key = each.name, each.formula, each.members, each.entry, values
            together.setdefault(key, []).append((pid, number, each))
    return [_row(passed, run, h or {}) for passed in together.values()]


def _row(
    passed: Sequence[tuple[int, int, BlockSample]],
    run: Mapping[str, Any],
    h: Mapping[tuple[int, int], int],
) -> Row:
    *_, first = passed[0]
    several = [sample for *_, sample in passed]
    times = [sample.seconds for sample in several]
    counted = {name: [each.counted.get(name, 0) for each in several] for name in first.counted}
    more = {"h": [h[pid, number] for pid, number, _ in passed]} if h else {}
    return {
        "params": first.values,
        "callpath": first.name,
        "metric": "time",
        "value": max(times),
        "formula": first.formula,
        "pids": [pid for pid, *_ in passed],
        "times": times,
        "supersteps": max(sample.supersteps for sample in several),
        "entry": first.entry,
        **more,
        **({"counted": counted} if counted else {}),
        "run": dict(run),
    }


def is_data_file(path: Path) -> bool:
    """Tell whether a file begins as a data file of experiments does."""
    try:
        with path.open("rb") as file:
            return _begins(file.read(1 << 16))
    except OSError:
        return False


def _begins(start: bytes) -> bool:
    return start.lstrip().startswith(b"{") and b'"callpath"' in start and b'"formula"' in start


DATA = OutputKind("a data file of experiments", lambda start: not start or _begins(start))
"""What lines may be added to; a data file has no lines before the first execution."""


def read(path: Path, *, missing: bool = False) -> list[Row]:
    """Read the lines of all executions that were not cut short.

    Args:
        path: the data file.
        missing: the file may be missing.

    Raises:
        UsageError: the file cannot be read, or a line is none of a data file.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path}: more than {_MOST_BYTES >> 30} GiB are no experiments")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if missing:
            return []
        raise UsageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no data file of experiments: it is no text") from None
    lines = text.split("\n")
    cut = lines.pop()  # empty, unless the last line was cut short
    rows = [
        _checked(line, f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not rows and cut:
        _checked(cut, f"{path}, line 1")
    return _whole(rows)


def _checked(line: str, place: str) -> Row:
    """Return a line as numbers and text."""
    try:
        row = json.loads(line)
        lists = [row["times"], row.get("h", [0]), *row.get("counted", {}).values()]
        values = [*row["params"].values(), row["value"], *(each for some in lists for each in some)]
        numbers = all(type(each) in (int, float) and math.isfinite(each) for each in values)
        numbers = numbers and all(type(some) is list and some for some in lists)
        texts = all(isinstance(each, str) for each in (row["callpath"], row["formula"]))
        known = isinstance(row["run"]["id"], str) and type(row["run"]["of"]) is int
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        numbers = texts = known = False
    if not (numbers and texts and known):
        raise UsageError(
            f"{place} is no passage of an experiment; bsp experiment run and bsp run "
            f"--experiments write such files"
        )
    return row  # type: ignore[no-any-return]  # it was checked


def _whole(rows: Iterable[Row]) -> list[Row]:
    """Return the lines of executions that were not cut short, each once."""
    distinct = {json.dumps(row, sort_keys=True): row for row in rows}
    counts = Counter(row["run"]["id"] for row in distinct.values())
    return [row for row in distinct.values() if counts[row["run"]["id"]] >= row["run"]["of"]]


def write(
    path: Path, rows: Iterable[Row], replaces: OutputKind | None = None, *, force: bool = False
) -> None:
    """Write a data file; it is complete, or not written at all.

    Args:
        path: the file.
        rows: its lines.
        replaces: what an earlier file may be.
        force: replace any file.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        write_text(path, _text(rows), replaces, force=force)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def append(path: Path, rows: Sequence[Row]) -> None:
    """Add the lines of an execution.

    Raises:
        UsageError: the file cannot be written, or is no data file.
    """
    if reason := obstacle(path, DATA):
        raise UsageError(f"experiments: {reason}")
    identified = [row | {"run": row["run"] | {"of": len(rows)}} for row in rows]
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(_text(identified))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def _text(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def merge(paths: Sequence[Path], out: Path, *, force: bool = False) -> int:
    """Write all lines of several files into one, each once; return their number.

    Args:
        paths: the files.
        out: the one file.
        force: replace a file that exists.

    Raises:
        UsageError: a file cannot be read or written.
    """
    rows = _whole(row for path in paths for row in read(path))
    write(out, rows, force=force)
    return len(rows)


def experiments(rows: Iterable[Row]) -> dict[str, Experiment]:
    """Return the experiments of a data file, by name."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row["callpath"], []).append(row)
    return {name: _experiment(name, own) for name, own in by_name.items()}


def _experiment(name: str, rows: list[Row]) -> Experiment:
    common = [each for each in rows[0]["params"] if all(each in row["params"] for row in rows)]
    return Experiment(
        name,
        tuple(dict.fromkeys(row["formula"] for row in rows)),
        {each: [row["params"][each] for row in rows] for each in common},
        [row["value"] for row in rows],
        rows,
    )
