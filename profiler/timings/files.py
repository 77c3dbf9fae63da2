"""Tables of times in files: CSV, and the text and JSON Lines formats of Extra-P."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Sequence
from pathlib import Path

from bsplib.output_file import write_text
from bsplib.profiler.timings import extrap
from bsplib.profiler.timings.table import Timings, TimingsError

_MOST_BYTES = 100 * 2**20


def read_timings(
    path: str | Path,
    time: str | None = None,
    *,
    by: Sequence[str] | None = None,
    region: str | None = None,
    of_repeats: str = "least",
) -> Timings:
    """Read a table of times.

    Args:
        path: a CSV file with a line of names, or a file in one of the formats of Extra-P:
            JSON Lines (``.jsonl``) or text (lines with PARAMETER, POINTS, DATA).
        time: the column of the time, or the metric in a file of Extra-P; default: ``time``,
            or the only metric.
        by: the variables; default: all other columns.
        region: the region (call path) in a file of Extra-P; default: the only one.
        of_repeats: what counts of several times at one point: ``"least"``, ``"median"`` or
            ``"mean"``.

    Raises:
        TimingsError: the file cannot be read, or has no such table.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise TimingsError(f"{path}: more than {_MOST_BYTES >> 20} MiB are no table of times")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TimingsError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise TimingsError(
            f"{path} is no text in UTF-8; give a CSV file, or one of Extra-P"
        ) from None
    if not text.strip():
        raise TimingsError(f"{path} is empty")
    name = str(path)
    if extrap.is_json_lines(text):
        series = extrap.read_json_lines(text, name)
    elif extrap.is_text(text):
        series = extrap.read_text(text, name)
    else:
        return _read_csv(text, name, time or "time", by, of_repeats)
    values, times, metric = extrap.choose(series, name, time, region)
    if by is not None:
        _need(by, values, name)
        values = {each: values[each] for each in by}
    return Timings.of(values, times, time=metric, source=name, of_repeats=of_repeats)


def write_timings(timings: Timings, path: str | Path, *, force: bool = False) -> None:
    """Write a table in a format of Extra-P: JSON Lines if the file ends in .jsonl, else text.

    Args:
        timings: the table.
        path: the file.
        force: replace a file that exists.

    Raises:
        TimingsError: the file cannot be written, or the format does not hold the table.
    """
    path = Path(path)
    write = extrap.as_json_lines if path.suffix == ".jsonl" else extrap.as_text
    text = write(timings)
    try:
        write_text(path, text, force=force)
    except OSError as error:
        raise TimingsError(f"{path} cannot be written: {error.strerror or error}") from None


def _read_csv(
    text: str, source: str, time: str, by: Sequence[str] | None, of_repeats: str
) -> Timings:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    first = lines[0] if lines else ""
    delimiter = max(",;\t", key=first.count)
    rows = [
        (number, row)
        for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=delimiter), 1)
        if any(cell.strip() for cell in row) and not row[0].lstrip().startswith("#")
    ]
    names = [name.strip() for name in rows[0][1]] if rows else []
    if len(set(names)) < len(names):
        raise TimingsError(f"{source}: two columns have the same name in {', '.join(names)}")
    if time not in names:
        raise TimingsError(
            f"{source} has no column {time!r} with times; name another by --time: "
            f"{', '.join(names)}"
        )
    wanted = [name for name in names if name != time] if by is None else list(by)
    _need(wanted, names, source)
    columns: dict[str, list[float]] = {name: [] for name in (*wanted, time)}
    for number, row in rows[1:]:
        if len(row) != len(names):
            raise TimingsError(
                f"{source}, line {number}: there are {len(row)} cells under {len(names)} names"
            )
        for name, cell in zip(names, row, strict=True):
            if name in columns:
                columns[name].append(_number(cell, f"{source}, line {number}", name, time))
    times = columns.pop(time)
    return Timings.of(columns, times, time=time, source=source, of_repeats=of_repeats)


def _number(cell: str, place: str, name: str, time: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return value
    way_out = "" if name == time else "; name the variables that are numbers with --by"
    raise TimingsError(f"{place}: {name} is {cell.strip()!r}, which is no number{way_out}")


def _need(wanted: Sequence[str], names: Collection[str], source: str) -> None:
    for name in wanted:
        if name not in names:
            raise TimingsError(f"{source} has no column {name!r}; it has {', '.join(names)}")
