"""Checks of the values of a Machine; each error is one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def number_of(what: str, value: object) -> float:
    """Return a number as a float.

    Raises:
        ValueError: it is not; the text of the error is one sentence.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is {value!r}; it has to be a number")  # noqa: TRY004  # as all here
    return float(value)


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
