"""The file of a benchmark: its figures and their provenance, as JSON that is short to read.

Numbers have six digits. What fits on a line stands on one, together with its neighbours, and a
list of cells with the same names is a table: its columns once, then a row for each cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Document = dict[str, Any]
"""The content of the file of a benchmark."""

_WIDTH = 160
_INDENT = " "
_DIGITS = 6
_TABLE = {"columns", "rows"}
_LEAST_ROWS = 3
"""Shorter lists are no tables."""


def read(path: Path) -> Document:
    """Read the file of a benchmark."""
    document: Document = _without_tables(json.loads(path.read_text(encoding="utf-8")))
    return document


def merged(before: Document | None, new: Document, titles: Sequence[str]) -> Document:
    """Return a document in which sections that were measured anew replace those of before.

    A section whose circumstances are not those of the whole document has its own.

    Args:
        before: the document so far; None if there is none.
        new: a document of the same benchmark with the sections that were measured.
        titles: of all sections of the benchmark, in their order; others are left out.
    """
    if before is None:
        return new
    own = {name: value for name, value in new.items() if name not in ("benchmark", "sections")}
    found = {section["title"]: section for section in before["sections"]}
    for section in new["sections"]:
        found[section["title"]] = section | {"circumstances": own}
    return before | {"sections": [found[title] for title in titles if title in found]}


_MOST_EXACT = 1e15
"""Whole numbers below this are written without a decimal point."""


def write(document: Document, path: Path) -> None:
    """Write the file of a benchmark."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = _lines(_with_tables(document), "", "", "")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _with_tables(value: Any) -> Any:
    """Return a value with numbers shortened, and with tables in place of lists of cells."""
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, dict):
        return {name: _with_tables(each) for name, each in value.items()}
    if not isinstance(value, list | tuple):
        return value
    cells = [_with_tables(each) for each in value]
    if not _are_cells(cells):
        return cells
    return {"columns": list(cells[0]), "rows": [list(cell.values()) for cell in cells]}


def _rounded(value: float) -> float:
    if not value.is_integer():
        value = float(f"{value:.{_DIGITS}g}")
    return int(value) if value.is_integer() and abs(value) < _MOST_EXACT else value


def _are_cells(values: list[Any]) -> bool:
    """Tell whether values are cells of one table: the same names, and no more inside them."""
    if len(values) < _LEAST_ROWS or not all(isinstance(each, dict) for each in values):
        return False
    names = list(values[0])
    return all(list(cell) == names and all(map(_is_simple, cell.values())) for cell in values)


def _is_simple(value: Any) -> bool:
    """Tell whether a value is neither an object nor a list of them."""
    if isinstance(value, list):
        return not any(isinstance(each, dict | list) for each in value)
    return not isinstance(value, dict)


def _without_tables(value: Any) -> Any:
    """Return a value with lists of cells in place of tables."""
    if isinstance(value, list):
        return [_without_tables(each) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == _TABLE:
        return [dict(zip(value["columns"], row, strict=True)) for row in value["rows"]]
    return {name: _without_tables(each) for name, each in value.items()}


def _lines(value: Any, indent: str, name: str, end: str) -> Iterator[str]:
    """Return the lines of a value; ``name`` stands before it, and ``end`` after it."""
    line = f"{indent}{name}{json.dumps(value, ensure_ascii=False)}{end}"
    if len(line) <= _WIDTH or not isinstance(value, dict | list):
        yield line
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield f"{indent}{name}{opening}"
    yield from _filled(_items(value, indent + _INDENT))
    yield f"{indent}{closing}{end}"


def _items(value: dict[str, Any] | list[Any], indent: str) -> Iterator[list[str]]:
    """Return the lines of each item of an object or a list."""
    named: Iterable[tuple[str, Any]] = (("", item) for item in value)
    if isinstance(value, dict):
        named = ((f"{json.dumps(name, ensure_ascii=False)}: ", value[name]) for name in value)
    last = len(value) - 1
    for position, (name, item) in enumerate(named):
        yield list(_lines(item, indent, name, "" if position == last else ","))


def _filled(items: Iterable[list[str]]) -> Iterator[str]:
    """Join neighbours that have a line each, as long as they fit on one."""
    line = ""
    for lines in items:
        joined = f"{line} {lines[0].lstrip()}" if line else lines[0]
        if len(lines) == 1 and len(joined) <= _WIDTH:
            line = joined
            continue
        if line:
            yield line
        line = lines[0] if len(lines) == 1 else ""
        if len(lines) > 1:
            yield from lines
    if line:
        yield line
