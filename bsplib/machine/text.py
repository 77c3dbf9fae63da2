"""The text of a Machine: TOML in seconds and bytes, with the source of every figure.

::

    name = "four boards"
    source = "measured by hand"       # source of all figures that [sources] does not name
    p = 4                             # number of processes with which it was measured
    h = "max"                         # max or sum, of the bytes in and the bytes out
    word_bytes = 8                    # bytes of a word; g is shown for a word
    speed_flop_per_s = 2e9            # speed of one process while all compute
    g_s_per_byte = 5e-10              # or g_s_per_word
    l_s = 3e-6                        # a value below zero is a fit that cannot be used

    [patterns.ping-pong]              # those of the six patterns that are known
    g_s_per_byte = 9e-10
    L_s = 4e-6

    [inside]                          # of a Machine with several hosts, whose g and l are
    g_s_per_byte = 5e-11              # those between hosts: those inside a host
    l_s = 2e-6

    [sources]
    speed = "its data sheet"

Name, source and g are required; a figure that is missing is a gap. Other entries are errors.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit

PATTERNS = (
    "exchange",
    "ping-pong",
    "one-to-all",
    "personalised-one-to-all",
    "all-to-one",
    "all-to-all",
)
"""The patterns of Roda et al. 1999, section 3, each with its own g and L."""

RULES = ("max", "sum")

_SOURCES = ("p", "speed", "g", "l", "h", "inside", *PATTERNS)
_G = ("g_s_per_byte", "g_s_per_word")
_TOP = (
    *("name", "source", "p", "h", "word_bytes", "speed_flop_per_s"),
    *(*_G, "l_s", "patterns", "inside", "sources"),
)

Values = dict[str, Any]
"""The fields of a Machine by name; ``patterns`` maps names to g and l, in a dictionary each, and
``inside`` is such a dictionary, or None."""


def parse(text: str) -> Values:
    """Return the checked values of the text of a file, in bytes and seconds.

    Raises:
        ValueError: the text is not TOML, or a value is not valid; the text of the error is
            one sentence.
        KeyError: an entry is missing; the argument of the error is its name.
    """
    entries = tomllib.loads(text)
    _check_names("entry", entries, _TOP)
    word = _whole("word_bytes", entries.get("word_bytes", 8), 64)
    patterns, sources = _table("patterns", entries), _table("sources", entries)
    _check_names("pattern", patterns, PATTERNS)
    _check_names("figure", sources, _SOURCES)
    return check(
        {
            "name": _text("name", entries["name"]),
            "source": _text("source", entries["source"]),
            "p": entries.get("p"),
            "h": entries.get("h", "max"),
            "word_bytes": word,
            "speed": entries.get("speed_flop_per_s"),
            "g": _g(entries, word),
            "l": entries.get("l_s"),
            "patterns": {name: _pattern(name, patterns, word) for name in patterns},
            "inside": _inside(entries, word),
            "sources": sources,
        }
    )


def check(values: Mapping[str, Any]) -> Values:
    """Check the values of a Machine and return them with their proper types.

    Args:
        values: values as :func:`parse` returns them, or as a trace contains them.

    Raises:
        ValueError: a value is not valid; the text of the error is one sentence.
        KeyError: a value is missing; the argument of the error is its name.
    """
    h = values.get("h", "max")
    if h not in RULES:
        raise ValueError(f"h is {h!r}; it has to be 'max' or 'sum'")
    p, speed = values.get("p"), values.get("speed")
    patterns, sources = _table("patterns", values), _table("sources", values)
    _check_names("pattern", patterns, PATTERNS)
    return {
        "name": _text("name", values["name"]),
        "source": _text("source", values["source"]),
        "p": None if p is None else _whole("p", p, 2**31),
        "h": h,
        "word_bytes": _whole("word_bytes", values.get("word_bytes", 8), 64),
        "speed": None if speed is None else check_speed(speed),
        "g": check_time("g", values["g"]),
        "l": _latency("l", values.get("l")),
        "patterns": {name: _checked_pattern(name, patterns) for name in patterns},
        "inside": _checked_inside(values),
        "sources": {name: _text(name, source) for name, source in sources.items()},
    }


def check_time(what: str, value: object) -> float:
    """Return a g or an l in seconds.

    Raises:
        ValueError: the value is not a number from 0 to 1.
    """
    number = _number(what, value)
    if not 0 <= number < 1:
        raise ValueError(f"{what} is {number}; it has to be from 0 to 1 second")
    return number


def check_speed(value: object) -> float:
    """Return a speed in flop/s.

    Raises:
        ValueError: the value is not a finite number greater than 0.
    """
    number = _number("speed", value)
    if not 0 < number < math.inf:
        raise ValueError(f"speed is {number}; it has to be a number of flop/s greater than 0")
    return number


def text_of(values: Values) -> str:
    """Return the text of a file for values that :func:`check` returned; gaps are left out."""
    document = tomlkit.document()
    for name in ("name", "source"):
        document.add(name, values[name])
    if values["p"] is not None:
        document.add("p", values["p"])
    document.add("h", values["h"])
    document.add("word_bytes", values["word_bytes"])
    if values["speed"] is not None:
        document.add("speed_flop_per_s", _rounded(values["speed"]))
    _add_costs(document, values, "l_s")
    if values["patterns"]:
        patterns = tomlkit.table(is_super_table=True)
        for name, pattern in values["patterns"].items():
            _add_costs(entry := tomlkit.table(), pattern, "L_s")
            patterns.add(name, entry)
        document.add("patterns", patterns)
    if values["inside"] is not None:
        _add_costs(inside := tomlkit.table(), values["inside"], "l_s")
        document.add("inside", inside)
    if values["sources"]:
        document.add("sources", tomlkit.item(dict(values["sources"])))
    return tomlkit.dumps(document)


def _add_costs(table: Any, values: Mapping[str, Any], latency: str) -> None:
    table.add("g_s_per_byte", _rounded(values["g"]))
    if values["l"] is not None:
        table.add(latency, _rounded(values["l"]))


def _rounded(value: float) -> Any:
    """Return a value with four digits."""
    return tomlkit.float_(f"{value:.3e}")


def _pattern(name: str, patterns: Values, word: int) -> Values:
    entries = _table(name, patterns)
    _check_names("entry", entries, (*_G, "L_s"))
    return {"g": _g(entries, word), "l": entries.get("L_s")}


def _checked_pattern(name: str, patterns: Values) -> Values:
    costs = _table(name, patterns)
    return {
        "g": check_time(f"g of {name}", costs["g"]),
        "l": _latency(f"L of {name}", costs.get("l")),
    }


def _inside(entries: Values, word: int) -> Values | None:
    if "inside" not in entries:
        return None
    inside = _table("inside", entries)
    _check_names("entry", inside, (*_G, "l_s"))
    if "l_s" not in inside or not set(_G).intersection(inside):
        raise ValueError("inside needs both g_s_per_byte and l_s")
    return {"g": _g(inside, word), "l": inside["l_s"]}


def _checked_inside(values: Mapping[str, Any]) -> Values | None:
    if values.get("inside") is None:
        return None
    inside = _table("inside", values)
    g = check_time("g inside a host", inside["g"])
    if g > 0 and values["g"] == 0:
        raise ValueError("g is 0 between hosts; then it has to be 0 inside a host, too")
    return {"g": g, "l": check_time("l inside a host", inside["l"])}


def _g(entries: Values, word: int) -> float:
    """Return g per byte, from the entry per byte or per word."""
    given = [name for name in _G if name in entries]
    if not given:
        raise KeyError(_G[0])
    if len(given) > 1:
        raise ValueError(f"it has both {_G[0]} and {_G[1]}; give only one of them")
    number = _number("g", entries[given[0]])
    return number / word if given[0] == _G[1] else number


def _latency(what: str, value: object) -> float | None:
    """Check an l and return it; a fitted value may be below zero."""
    if value is None:
        return None
    number = _number(what, value)
    return number if -1 < number < 0 else check_time(what, number)


def _number(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is {value!r}; it has to be a number")  # noqa: TRY004  # as all here
    return float(value)


def _whole(what: str, value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{what} is {value!r}; it has to be a whole number from 1 to {most}")
    return value


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is {value!r}; it has to be a text")  # noqa: TRY004  # as all here
    return value


def _table(what: str, entries: Mapping[str, Any]) -> Values:
    value = entries.get(what, {})
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {value!r}; it has to be a table")  # noqa: TRY004  # as all here
    return dict(value)


def _check_names(what: str, entries: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in entries:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r}; choose one of {', '.join(known)}")
