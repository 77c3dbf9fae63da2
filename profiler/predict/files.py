"""Tables of times in files: CSV, the JSON Lines of Extra-P, and what was learned of a table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from bsplib.output_file import write_text
from bsplib.profiler.predict.table import Timings, TimingsError

FITTED = '"format": "bsp predict"'
"""By it a file is known that holds a fit of a table."""
_MOST_BYTES = 100 * 2**20
_ODD = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""What is raised where a file has other values than it should have."""


def read_timings(
    path: str | Path,
    time: str | None = None,
    *,
    by: Sequence[str] | None = None,
    region: str | None = None,
    of_repeats: str = "least",
    formula: str | None = None,
) -> Timings:
    """Read a table of times.

    Args:
        path: a CSV file with a line of names, JSON Lines as Extra-P or CALL has them, or what
            ``bsp predict --model-out`` wrote of a table, with its formula if a user gave it.
        time: the column of the time, or the metric in a file of Extra-P; default: ``time``,
            or the only metric.
        by: the variables; default: all other columns.
        region: the region (call path) in a file of Extra-P; default: the only one.
        of_repeats: what counts of several times at one point: ``"least"``, ``"median"`` or
            ``"mean"``.
        formula: in place of those of a file of CALL.

    Raises:
        TimingsError: the file cannot be read, or has no such table.
    """
    text, name = _text_of(path), str(path)
    if FITTED in text[:200]:
        return _read_fitted(text, name)
    if not text.lstrip().startswith("{"):
        return _read_csv(text, name, time or "time", by, of_repeats)
    how: dict[str, Any] = {"by": by, "of_repeats": of_repeats, "formula": formula}
    return timings_of(_lines(text, name), name, time, region=region, **how)


def _text_of(path: str | Path) -> str:
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
    return text


def _read_fitted(text: str, name: str) -> Timings:
    """Read what ``bsp predict --model-out`` wrote of a table."""
    try:
        found = json.loads(text)
        source, time = str(found["source"]), str(found["time"])
        table = Timings.of(found["measured"], found["times"], time=time, source=source)
        formula = str(found["formula"]) if found["chosen_by"] == "the user" else None
        signed = any(each["value"] < 0 for each in found["coefficients"].values())
    except TimingsError:
        raise
    except _ODD as error:
        raise TimingsError(f"{name} is no fit that can be read: {_cause(error)}") from None
    return replace(table, formula=formula, signed=signed)


def write_timings(timings: Timings, path: str | Path, *, force: bool = False) -> None:
    """Write a table as JSON Lines, which Extra-P reads.

    Args:
        timings: the table.
        path: the file.
        force: replace a file that exists.

    Raises:
        OSError: the file cannot be written.
    """
    columns = [column.tolist() for column in timings.values.values()]
    lines = [
        json_line(
            Measurement(ROOT, timings.time, dict(zip(timings.values, point, strict=False)), time)
        )
        for *point, time in zip(*columns, timings.times.tolist(), strict=True)
    ]
    write_text(path, "".join(lines), force=force)


def _read_csv(
    text: str, source: str, time: str, by: Sequence[str] | None, of_repeats: str
) -> Timings:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    first = lines[0] if lines else ""
    delimiter = max(",;\t", key=first.count)
    try:
        rows = [
            (number, row)
            for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=delimiter), 1)
            if any(cell.strip() for cell in row) and not row[0].lstrip().startswith("#")
        ]
    except csv.Error as error:
        raise TimingsError(f"{source} is no table of times: {error}") from None
    names = [name.strip() for name in rows[0][1]] if rows else []
    if len(set(names)) < len(names):
        raise TimingsError(f"{source}: two columns have the same name in {', '.join(names)}")
    for number, row in rows:
        if len(row) != len(names):
            raise TimingsError(
                f"{source}, line {number}: there are {len(row)} cells under {len(names)} names"
            )
    if time not in names and (numbers := _wide(names)):
        wide = _of_wide(numbers, rows, source)
        return Timings.of(*wide, time=time, source=source, of_repeats=of_repeats)
    if time not in names:
        raise TimingsError(
            f"{source} has no column {time!r} with times; name another by --time: "
            f"{', '.join(names)}"
        )
    wanted = [name for name in names if name != time] if by is None else list(by)
    _need(wanted, names, source)
    columns: dict[str, list[float]] = {name: [] for name in (*wanted, time)}
    for number, row in rows[1:]:
        for name, cell in zip(names, row, strict=True):
            if name in columns:
                columns[name].append(_number(cell, f"{source}, line {number}", name, time))
    times = columns.pop(time)
    return Timings.of(columns, times, time=time, source=source, of_repeats=of_repeats)


_WIDE = 3
"""Columns whose names are numbers, from which on a table is taken for a wide one."""


def _wide(names: Sequence[str]) -> list[float]:
    """Return the values that the names of columns are; none if the table is no wide one.

    The first column of a wide table has the values of one variable, and the names of the others are
    those of another: ``N/P,1,2,4``, where the first name may have both.
    """
    try:
        numbers = [float(name.lstrip("pP= ")) for name in names[1:]]
    except ValueError:
        return []
    return numbers if len(numbers) >= _WIDE else []


def _of_wide(
    numbers: Sequence[float], rows: Sequence[tuple[int, list[str]]], source: str
) -> tuple[dict[str, list[float]], list[float]]:
    """Return the values and times of a wide table, whose empty cells were not measured."""
    title = rows[0][1][0].strip() or "N"
    first, _, second = title.replace("\\", "/").partition("/")
    found: list[tuple[float, float, float]] = []
    for line, (start, *cells) in rows[1:]:
        place = f"{source}, line {line}"
        at = _number(start, place, title, "")
        for number, cell in zip(numbers, cells, strict=True):
            if cell.strip() and cell.strip() not in ("NA", "-"):
                name = f"{number:g}"
                found.append((at, number, _number(cell, place, name, name)))
    ats, others, times = ([row[column] for row in found] for column in range(3))
    return {first.strip(): ats, second.strip() or "P": others}, times


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


# -- the JSON Lines of Extra-P 4 ------------------------------------------------------------------


ROOT, DEFAULT = "<root>", "<default>"
"""Names that Extra-P gives to a region and a metric without a name."""


class Measurement(NamedTuple):
    """What one passage of a block, or one run, took in one metric."""

    region: str
    metric: str
    values: dict[str, float]
    amount: float
    formula: str | None = None
    """Of the block, if the program gives one."""


def json_line(row: Measurement) -> str:
    """Return a measurement as a line, which Extra-P reads."""
    formula = {} if row.formula is None else {"formula": row.formula}
    series = {"params": row.values, "callpath": row.region, "metric": row.metric}
    return json.dumps({**series, "value": row.amount, **formula}) + "\n"


def read_lines(path: str | Path) -> list[Measurement]:
    """Read lines such as ``{"params": {"p": 4}, "value": 1.5}``, with callpath and metric.

    Raises:
        TimingsError: the file cannot be read, or a line is no measurement.
    """
    return _lines(_text_of(path), str(path))


def _lines(text: str, source: str) -> list[Measurement]:
    found: list[Measurement] = []
    names: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            params, value, formula = data["params"], data["value"], data.get("formula")
            series = str(data.get("callpath", ROOT)), str(data.get("metric", DEFAULT))
            own = names.setdefault(series[0], [*params])
            point = {str(name): _finite(params[name]) for name in own}
            rest = None if formula is None else str(formula)
            amounts = map(_finite, value if isinstance(value, list) else [value])
            found += [Measurement(*series, point, each, rest) for each in amounts]
        except _ODD as error:
            raise TimingsError(
                f'{source}, line {number} is no measurement such as {{"params": {{"p": 4}}, '
                f'"value": 1.5}}: {_cause(error)}'
            ) from None
    return found


def timings_of(
    rows: Sequence[Measurement],
    source: str,
    metric: str | None = None,
    *,
    region: str | None = None,
    by: Sequence[str] | None = None,
    of_repeats: str = "least",
    formula: str | None = None,
) -> Timings:
    """Return the measurements of one metric in one region; see :func:`read_timings`.

    Raises:
        TimingsError: there is none, or they have several formulas.
    """
    if metric is None and any(row.metric == "time" for row in rows):
        metric = "time"
    asked = (("region", region, "--region"), ("metric", metric, "--time"))
    for kind, name, option in asked:
        known = list(dict.fromkeys(str(getattr(row, kind)) for row in rows))
        if name is None and len(known) <= 1:
            continue
        if name not in known:
            has = f"{len(known)} {kind}s" if name is None else f"no {kind} {name!r}"
            raise TimingsError(
                f"{source} has {has}; choose one of {', '.join(known)} with {option}"
            )
        rows = [row for row in rows if getattr(row, kind) == name]
    first = rows[0].values if rows else {}
    names = [each for each in first if all(each in row.values for row in rows)]
    _need(by or (), names, source)
    formulas = list(dict.fromkeys(row.formula for row in rows if row.formula is not None))
    if formula is None and len(formulas) > 1:
        raise TimingsError(
            f"{source}: {rows[0].region} has {len(formulas)} formulas, "
            f"{' and '.join(formulas[:3])}; choose one with --formula, or formula="
        )
    columns = {name: [row.values[name] for row in rows] for name in (by or names)}
    time = rows[0].metric if rows and rows[0].metric != DEFAULT else "time"
    amounts = [row.amount for row in rows]
    found = Timings.of(columns, amounts, time=time, source=source, of_repeats=of_repeats)
    return replace(found, formula=formula or next(iter(formulas), None))


def _cause(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not math.isfinite(float(value)):
        raise ValueError(f"{value} is no finite number")
    return float(value)
