"""Values of variables and times on a command line, such as n=2^20,p=64 and 10m."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_VALUE = re.compile(rf"(?P<base>{_NUMBER})((\^|\*\*)(?P<power>{_NUMBER}))?")

Point = dict[str, float]


def point(text: str) -> Point:
    """Return the values in a text such as n=2^20,p=64.

    Raises:
        click.BadParameter: a value is no number.
    """
    return dict(map(_value, text.split(",")))


def points(_context: click.Context, _option: click.Parameter, texts: Sequence[str]) -> list[Point]:
    """Return the values of several points."""
    return list(map(point, texts))


def settings(
    _context: click.Context, _option: click.Parameter, texts: Sequence[str]
) -> list[tuple[str, Point]]:
    """Return values for traces, as in n=2^20,s=64 or 'run-1024-*:n=1024'."""
    return [(pattern, point(values)) for pattern, _, values in (t.rpartition(":") for t in texts)]


def durations(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Return the seconds of a time such as 10m, 90s or 1.5h."""
    match = re.fullmatch(r"(\d+\.?\d*)([smh]?)", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no time: write it as 90s, 10m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def _value(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    match = _VALUE.fullmatch(number.strip())
    if not (name.strip() and match):
        raise click.BadParameter(f"{text!r} is no value of a variable: write it as N=2^20")
    try:
        return name.strip(), float(match["base"]) ** float(match["power"] or 1)
    except (OverflowError, ZeroDivisionError):
        raise click.BadParameter(f"{text!r} is too large a number") from None
