"""The parameter to tune, and its values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bsplib.errors import UsageError

_RANGE = re.compile(r"(?P<first>[^:]+):(?P<last>[^:]+)(?::(?P<step>[x+].+))?")
_MOST = 1000
"""Greatest number of values: running more would take too long."""


@dataclass(frozen=True)
class Parameter:
    """An option of an application, without its dashes, and its values in rising order."""

    name: str
    values: tuple[int, ...]
    geometric: bool = False
    """Whether each value is a multiple of the one before."""

    @property
    def option(self) -> str:
        """The option as on a command line."""
        return f"--{self.name}"


def parse_parameter(text: str) -> Parameter:
    """Read a parameter and its range, which includes both ends.

    Args:
        text: ``NAME=A:B``, all integers from A to B; ``NAME=A:B:+K``, every K-th of them;
            or ``NAME=A:B:xK``, each K times the one before.

    Raises:
        UsageError: the text has another form, or the range is empty.
    """
    name, _, numbers = text.partition("=")
    name = name.strip().lstrip("-").replace("_", "-")
    found = _RANGE.fullmatch(numbers.strip())
    if not name or found is None:
        raise UsageError(
            f"tune: {text!r} is not a parameter with a range; write NAME=A:B, NAME=A:B:+K or "
            f"NAME=A:B:xK, as in oversampling=4:4096:x2"
        )
    first, last = (_integer(found[end], text) for end in ("first", "last"))
    if first > last:
        raise UsageError(f"tune: the range {text!r} is empty: {first} is greater than {last}")
    values, geometric = _values(first, last, found["step"] or "+1", text)
    return Parameter(name, values, geometric)


def _values(first: int, last: int, step: str, text: str) -> tuple[tuple[int, ...], bool]:
    size, geometric = _integer(step[1:], text), step.startswith("x")
    if size < (2 if geometric else 1) or (geometric and first < 1):
        raise UsageError(f"tune: the range {text!r} does not rise from {first} by {step}")
    values = [first]
    while (following := values[-1] * size if geometric else values[-1] + size) <= last:
        values.append(following)
        if len(values) > _MOST:
            raise UsageError(f"tune: the range {text!r} has more than {_MOST} values")
    return tuple(values), geometric


def _integer(digits: str, text: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise UsageError(f"tune: {digits!r} in {text!r} is no integer") from None
