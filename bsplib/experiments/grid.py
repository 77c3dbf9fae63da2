"""Ranges of values on a command line, and all their combinations."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from bsplib.errors import UsageError

_RANGE = re.compile(r"(?P<first>[^:]+):(?P<last>[^:]+)(?::(?P<kind>[x*+])?(?P<step>[^:]+))?")
_POWER = re.compile(r"(\d+)(?:\^|\*\*)(\d+)")
_MOST = 100_000
"""Greatest number of values, and of combinations."""

Number = int | float


def read_values(what: str, text: str) -> tuple[Number, ...]:
    """Read values, separated by commas, and ranges, which include both ends.

    Args:
        what: the option, for errors.
        text: such as ``1,2,4``, ``1:16:x2`` (each twice the one before), ``10:100:+10``,
            ``1:4`` (all integers), ``2^10:2^20:x4`` or ``0.1,0.01``.

    Raises:
        UsageError: the text is none of that.
    """
    found: dict[Number, None] = {}
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        values = _in_range(what, part, match) if match else [_number(what, part, text)]
        found |= dict.fromkeys(values)
        if len(found) > _MOST:
            raise UsageError(f"{what} {text!r} has more than {_MOST} values")
    return tuple(found)


def read_counts(what: str, text: str) -> tuple[int, ...]:
    """Read positive integers, as :func:`read_values` does.

    Raises:
        UsageError: the text is none of that.
    """
    found = read_values(what, text)
    counts = tuple(value for value in found if isinstance(value, int) and value > 0)
    if len(counts) < len(found):
        raise UsageError(f"{what} {text!r} has to have positive integers only")
    return counts


def _in_range(what: str, part: str, match: re.Match[str]) -> Iterator[Number]:
    first, last = (_number(what, match[end], part) for end in ("first", "last"))
    step = _number(what, match["step"] or "1", part)
    times = match["kind"] in ("x", "*")
    if first > last or not step > (1 if times else 0) or (times and first <= 0):
        raise UsageError(
            f"{what} {part.strip()!r} is no rising range; write A:B, A:B:+K or A:B:xK, as in "
            f"1024:262144:x2"
        )
    if match["step"] and match["kind"] is None:
        raise UsageError(f"{what} {part.strip()!r}: write the step as +{step} or x{step}")
    value = first
    for _ in range(_MOST + 1):
        if value > last:
            return
        yield value
        value = value * step if times else value + step
    raise UsageError(f"{what} {part.strip()!r} has more than {_MOST} values")


def _number(what: str, digits: str, text: str) -> Number:
    digits = digits.strip()
    if (power := _POWER.fullmatch(digits)) and int(power[2]) < 64:
        value: Number = int(power[1]) ** int(power[2])
        return value
    for kind in (int, float):
        try:
            value = kind(digits)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    raise UsageError(f"{what} {text.strip()!r}: {digits!r} is no number")


def read_setting(text: str) -> tuple[str, tuple[Number, ...]]:
    """Read a name with its values, such as ``N=1024:262144:x2``.

    Raises:
        UsageError: the text has another form.
    """
    name, equals, values = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise UsageError(f"--set {text!r} is no name with values; write --set N=1024:262144:x2")
    return name.strip(), read_values(f"--set {name.strip()}", values)


def combinations(
    settings: Mapping[str, Sequence[Number]],
) -> list[dict[str, Number]]:
    """Return all combinations of values, each by name; one without names if there are none.

    Raises:
        UsageError: there are too many.
    """
    count = math.prod(map(len, settings.values()))
    if count > _MOST:
        raise UsageError(f"--set: {count} combinations are too many; at most {_MOST} are run")
    return [
        dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())
    ]


def filled(text: str, values: Mapping[str, object]) -> str:
    """Return a text in which ``{name}`` is replaced by the value of this name."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
