"""The entries ``measured`` of a Machine's file, and checks of all values: see ``text.py``."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from bsplib.machine.pattern import PATTERNS

TIMES = ("empty", "call", "start")
"""Times in seconds; their entries in a file end in ``_s``."""
RATIOS = ("slowdown", "misfit", "spread")
_ENTRIES = ("p", *(f"{name}_s" for name in TIMES), *RATIOS, "patterns")
_MOST_S = 1000.0
_MOST_KNOTS = 1000

Values = dict[str, Any]


def parse(entries: object) -> list[Values]:
    """Return the fields of what was measured, from a file; :func:`check` checks them."""
    found = []
    for entry in _list("measured", entries):
        check_names("entry", entry, _ENTRIES)
        times = {name: entry[f"{name}_s"] for name in TIMES if f"{name}_s" in entry}
        others = {name: entry[name] for name in ("p", *RATIOS) if name in entry}
        patterns = table_in("patterns", entry).items()
        curves = {name: _parsed(name, curve) for name, curve in patterns}
        found.append(others | times | {"patterns": curves})
    return found


def check(entries: object) -> list[Values]:
    """Check what was measured, and return it with all fields.

    Args:
        entries: as :func:`parse` returns them, or as a trace contains them.

    Raises:
        ValueError: a value is not valid; the text of the error is one sentence.
        KeyError: p or empty is missing.
    """
    found = [_checked(entry) for entry in _list("measured", entries)]
    if any(one["p"] >= two["p"] for one, two in pairwise(found)):
        raise ValueError("the entries of measured have to be in ascending order of p")
    return found


def _checked(entry: Values) -> Values:
    check_names("field", entry, ("p", *TIMES, *RATIOS, "patterns"))
    defaults: Values = {"call": 0.0, "slowdown": 1.0}
    found: Values = {"p": whole_of("p of measured", entry["p"], 2**31)}
    for name in (*TIMES, *RATIOS):
        value = entry["empty"] if name == "empty" else entry.get(name, defaults.get(name))
        found[name] = None if value is None else _not_negative(name, value)
    if found["slowdown"] <= 0:
        raise ValueError("slowdown is 0; it has to be greater")
    patterns = table_in("patterns", entry)
    check_names("pattern", patterns, PATTERNS)
    found["patterns"] = {name: _curve(name, curve) for name, curve in patterns.items()}
    return found


def _not_negative(name: str, value: object) -> float:
    number = number_of(name, value)
    if not 0 <= number < _MOST_S:
        raise ValueError(f"{name} is {number}; it has to be from 0 to {_MOST_S:g}")
    return number


def _parsed(name: str, curve: object) -> Values:
    table = _table(name, curve)
    check_names("entry", table, ("bytes", "seconds"))
    return {"nbytes": table["bytes"], "seconds": table["seconds"]}


def _curve(name: str, curve: object) -> Values:
    table = _table(name, curve)
    check_names("entry", table, ("nbytes", "seconds"))
    nbytes, seconds = _knots(name, table["nbytes"]), _knots(name, table["seconds"])
    if len(nbytes) != len(seconds) or len(nbytes) < 2:  # a line
        raise ValueError(f"{name} needs two knots or more, each with its bytes and seconds")
    if any(one >= two for one, two in pairwise(nbytes)):
        raise ValueError(f"the bytes of {name} have to ascend")
    if max(seconds) >= _MOST_S or not all(value.is_integer() for value in nbytes):
        raise ValueError(f"{name} has bytes that are not whole, or seconds of {_MOST_S:g} or more")
    return {"nbytes": tuple(int(value) for value in nbytes), "seconds": tuple(seconds)}


def _knots(name: str, values: object) -> list[float]:
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) > _MOST_KNOTS:
        raise ValueError(f"{name} needs lists of at most {_MOST_KNOTS} numbers")
    numbers = [number_of(name, value) for value in values]
    if not all(0 <= number < math.inf for number in numbers):
        raise ValueError(f"{name} has a number below 0, or one that is not finite")
    return numbers


def _list(name: str, entries: object) -> list[Values]:
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ValueError(f"{name} is {entries!r}; it has to be a list of tables")  # noqa: TRY004  # as all here
    return [_table(name, entry) for entry in entries]


def _table(name: str, value: object) -> Values:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is {value!r}; it has to be a table")  # noqa: TRY004  # as all here
    return dict(value)


# -- checks of the values of a Machine ------------------------------------------------------------


def number_of(what: str, value: object) -> float:
    """Return a number as a float.

    Raises:
        ValueError: it is not; the text of the error is one sentence.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is {value!r}; it has to be a number")  # noqa: TRY004  # as all here
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} is {reprlib.repr(value)}, which is beyond all floats") from None


def whole_of(what: str, value: object, most: int) -> int:
    """Return a whole number from 1 to ``most``.

    Raises:
        ValueError: it is not; the text of the error is one sentence.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{what} is {value!r}; it has to be a whole number from 1 to {most}")
    return value


def text_of_value(what: str, value: object) -> str:
    """Return a text.

    Raises:
        ValueError: it is not; the text of the error is one sentence.
    """
    if not isinstance(value, str):
        raise ValueError(f"{what} is {value!r}; it has to be a text")  # noqa: TRY004  # as all here
    return value


def table_in(what: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a name; empty where there is none.

    Raises:
        ValueError: it is not; the text of the error is one sentence.
    """
    value = entries.get(what, {})
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {value!r}; it has to be a table")  # noqa: TRY004  # as all here
    return dict(value)


def check_names(what: str, entries: Mapping[str, Any], known: Sequence[str]) -> None:
    """Check that all names of a table are known.

    Raises:
        ValueError: it is not; the text of the error is one sentence.
    """
    for name in entries:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r}; choose one of {', '.join(known)}")
