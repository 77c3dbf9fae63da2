"""Tables of times in files: CSV, and the JSON Lines of Extra-P."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bsplib.output_file import write_text
from bsplib.profiler.predict.table import Timings, TimingsError

if TYPE_CHECKING:
    from bsplib.profiler.predict.table import Timings

FITTED = '"format": "bsp predict"'
"""By it a file is known that holds a fit of a table."""
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
        path: a CSV file with a line of names, or JSON Lines as Extra-P has them.
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
    if is_json_lines(text):
        values, times, metric = choose(read_json_lines(text, name), name, time, region)
    else:
        return _read_csv(text, name, time or "time", by, of_repeats)
    if by is not None:
        _need(by, values, name)
        values = {each: values[each] for each in by}
    return Timings.of(values, times, time=metric, source=name, of_repeats=of_repeats)


def read_fitted(path: Path) -> tuple[Timings, str | None, bool] | None:
    """Read what ``bsp predict --model-out`` wrote of a table; None if a file is none of these.

    Returns:
        The times, the formula if a user gave it, and whether its coefficients may be negative.

    Raises:
        TimingsError: the file is damaged.
    """
    try:
        with path.open("rb") as file:
            if FITTED.encode() not in file.read(200):
                return None
        found = json.loads(path.read_bytes())
        rows = [{name: _finite(value) for name, value in row.items()} for row in found["measured"]]
        times, _ = ([row.pop(name) for row in rows] for name in ("time", "fitted"))
        values = {name: [row[name] for row in rows] for name in rows[0]}
        formula = str(found["formula"]) if found["chosen_by"] == "the user" else None
        negative = any(_finite(each["value"]) < 0 for each in found["coefficients"].values())
        source, time = str(found["source"]), str(found["time"])
    except OSError:  # whoever reads it as a table says why
        return None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise TimingsError(f"{path} is no fit that can be read: {_cause(error)}") from None
    return Timings.of(values, times, time=time, source=source), formula, negative


def write_timings(timings: Timings, path: str | Path, *, force: bool = False) -> None:
    """Write a table as JSON Lines, which Extra-P reads.

    Args:
        timings: the table.
        path: the file.
        force: replace a file that exists.

    Raises:
        TimingsError: the file cannot be written.
    """
    try:
        write_text(path, as_json_lines(timings), force=force)
    except OSError as error:
        raise TimingsError(f"{path} cannot be written: {error.strerror or error}") from None


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
    if time not in names and (wide := _wide(names, rows[1:], source)) is not None:
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
        if len(row) != len(names):
            raise TimingsError(
                f"{source}, line {number}: there are {len(row)} cells under {len(names)} names"
            )
        for name, cell in zip(names, row, strict=True):
            if name in columns:
                columns[name].append(_number(cell, f"{source}, line {number}", name, time))
    times = columns.pop(time)
    return Timings.of(columns, times, time=time, source=source, of_repeats=of_repeats)


_WIDE = 3
"""Columns whose names are numbers, from which on a table is taken for a wide one."""


def _wide(
    names: Sequence[str], rows: Sequence[tuple[int, list[str]]], source: str
) -> tuple[dict[str, list[float]], list[float]] | None:
    """Return the values and times of a wide table; None if it is none.

    Its first column has the values of one variable, and the names of the others are those of
    another: ``N/P,1,2,4``, where the first name may have both. Empty cells were not measured.
    """
    try:
        columns = [float(name.lstrip("pP= ")) for name in names[1:]]
    except ValueError:
        return None
    if len(columns) < _WIDE:
        return None
    first, _, second = (names[0] or "N").replace("\\", "/").partition("/")
    values: dict[str, list[float]] = {first.strip(): [], second.strip() or "P": []}
    times = []
    for number, row in rows:
        place = f"{source}, line {number}"
        if len(row) != len(names):
            raise TimingsError(f"{place}: there are {len(row)} cells under {len(names)} names")
        at = _number(row[0], place, names[0], "")
        for column, cell in zip(columns, row[1:], strict=True):
            if cell.strip() and cell.strip() not in ("NA", "-"):
                for one, value in zip(values.values(), (at, column), strict=True):
                    one.append(value)
                times.append(_number(cell, place, f"{column:g}", f"{column:g}"))
    return values, times


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


class Series(NamedTuple):
    """The measurements of one metric in one region."""

    region: str
    metric: str


Table = tuple[dict[str, list[float]], list[float]]
"""Values of the variables by name, and times, one element for each measurement."""


def is_json_lines(text: str) -> bool:
    """Tell whether a text is in the JSON Lines format."""
    return text.lstrip().startswith("{")


def read_json_lines(text: str, source: str) -> dict[Series, Table]:
    """Read lines such as ``{"params": {"p": 4}, "value": 1.5}``, with callpath and metric."""
    found: dict[Series, Table] = {}
    names: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{source}, line {number}"
        try:
            data = json.loads(line)
            params, value = data["params"], data["value"]
            names = names or [str(name) for name in params]
            point = [_finite(params[name]) for name in names]
            values = [_finite(each) for each in (value if isinstance(value, list) else [value])]
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
            raise TimingsError(
                f'{place} is no measurement such as {{"params": {{"p": 4}}, "value": 1.5}}: '
                f"{_cause(error)}"
            ) from None
        series = Series(str(data.get("callpath", ROOT)), str(data.get("metric", DEFAULT)))
        for each in values:
            _add(found, series, names, point, each)
    return found


def _cause(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not math.isfinite(float(value)):
        raise ValueError(f"{value} is no finite number")
    return float(value)


def _add(
    found: dict[Series, Table], series: Series, names: list[str], point: list[float], value: float
) -> None:
    values, times = found.setdefault(series, ({name: [] for name in names}, []))
    for name, each in zip(names, point, strict=True):
        values[name].append(each)
    times.append(value)


def choose(
    found: dict[Series, Table], source: str, metric: str | None, region: str | None
) -> tuple[dict[str, list[float]], list[float], str]:
    """Return the values and times of one series, and the name of its metric.

    Raises:
        TimingsError: there is no such series, or there are several.
    """
    if not found:
        raise TimingsError(f"{source} has no measurements")
    for kind, name, option in (("region", region, "--region"), ("metric", metric, "--time")):
        names = list(dict.fromkeys(getattr(series, kind) for series in found))
        if name is None and len(names) == 1:
            continue
        if name not in names:
            raise TimingsError(
                f"{source} has no {kind} {name!r}; choose one of {', '.join(names)} with {option}"
                if name is not None
                else f"{source} has {len(names)} {kind}s; choose one of {', '.join(names)} with "
                f"{option}"
            )
        found = {series: table for series, table in found.items() if getattr(series, kind) == name}
    if len(found) != 1:
        raise TimingsError(f"{source} has no such measurements")
    ((series, (values, times)),) = found.items()
    return values, times, "time" if series.metric == DEFAULT else series.metric


def as_json_lines(timings: Timings) -> str:
    """Return a table in the JSON Lines format."""
    lines = [
        json.dumps(
            {
                "params": {name: float(column[row]) for name, column in timings.values.items()},
                "metric": timings.time,
                "value": float(time),
            }
        )
        for row, time in enumerate(timings.times)
    ]
    return "\n".join(lines) + "\n"
