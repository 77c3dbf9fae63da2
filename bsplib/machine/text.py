"""The text of a Machine: TOML in seconds and bytes, with the source of every figure.

::

    version = 5                       # of this format; a file without it has version 1
    name = "four boards"
    source = "measured by hand"       # source of all figures that [sources] does not name
    p = 4                             # number of processes with which it was measured
    h = "max"                         # max or sum, of the bytes in and the bytes out
    word_bytes = 8                    # bytes of a word; g is shown for a word
    speed_flop_per_s = 2e9            # speed of one process while all compute; or
    relative_speed = 1.0              # in multiples of the computer that records a run
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

A cluster that a user describes (:mod:`bsplib.machine.template`) has from version 3 on::

    nodes = 8                         # hosts; g and l are those between them
    cores = 16                        # of each node

A probe adds what it measured, from version 2 on; then these times price a superstep in place of
g and l (:mod:`bsplib.machine.measured`)::

    host = "node7"                    # that was measured
    cores = 2                         # that the processes could use

    [[measured]]                      # one table for each number of processes, ascending
    p = 2
    empty_s = 5e-7                    # a superstep in which nothing is communicated
    call_s = 1e-7                     # each further put of an array of 8 bytes in a superstep
    start_s = 2e-2                    # a run that does nothing
    slowdown = 1.05                   # of a computation, compared with its time alone
    misfit = 0.03                     # greatest relative error between the knots of the curves
    spread = 0.02                     # mean relative difference of two halves of the rounds

    [measured.patterns.exchange]      # knots: bytes of the h-relation, seconds of a superstep
    bytes = [64, 1048576]
    seconds = [1.7e-6, 7e-5]

Name, source and g are required, and cores where there are nodes; a figure that is missing is a
gap; of an entry of ``measured`` p and empty_s are required. Other entries are errors, and so is a
later version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bsplib.machine import measured_text
from bsplib.machine.measured_text import check_names, number_of, table_in, text_of_value, whole_of
from bsplib.machine.pattern import PATTERNS

__all__ = ["PATTERNS"]

RULES = ("max", "sum")

_SOURCES = ("p", "speed", "g", "l", "h", "inside", *PATTERNS)
_G = ("g_s_per_byte", "g_s_per_word")
_TOP = (
    *("name", "source", "p", "h", "word_bytes", "speed_flop_per_s"),
    *(*_G, "l_s", "patterns", "inside", "sources"),
    *("version", "host", "cores", "measured", "nodes", "relative_speed"),
)

VERSION = 5
"""Version of the format. Version 1 has no ``version``, ``host``, ``cores`` and ``measured``, and
version 2 no ``nodes`` and ``relative_speed``. Up to version 4 a probe measured more: its entries
are none any more."""

Values = dict[str, Any]


class NoTomlError(ValueError):
    """A text is not TOML."""


"""The fields of a Machine by name; ``patterns`` maps names to g and l, in a dictionary each, and
``inside`` is such a dictionary, or None."""


def parse(text: str) -> Values:
    """Return the values of the text of a file, in bytes and seconds; :func:`check` checks them.

    Raises:
        ValueError: the text is not TOML, or a value is not valid; the text of the error is
            one sentence.
        KeyError: an entry is missing; the argument of the error is its name.
    """
    entries = _entries(text)
    _check_version(entries.get("version", 1))
    check_names("entry", entries, _TOP)
    word = whole_of("word_bytes", entries.get("word_bytes", 8), 64)
    patterns, sources = table_in("patterns", entries), table_in("sources", entries)
    check_names("pattern", patterns, PATTERNS)
    check_names("figure", sources, _SOURCES)
    same = ("name", "source", "p", "h", "host", "cores", "nodes", "relative_speed")
    return {name: entries[name] for name in same if name in entries} | {
        "word_bytes": word,
        "speed": entries.get("speed_flop_per_s"),
        "g": _g(entries, word),
        "l": entries.get("l_s"),
        "patterns": {name: _pattern(name, patterns, word) for name in patterns},
        "inside": _inside(entries, word),
        "sources": sources,
        "measured": measured_text.parse(entries.get("measured", [])),
    }


def _entries(text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415  # who only imports bsplib reads no Machine

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NoTomlError(str(error)) from None


def _check_version(version: object) -> None:
    if whole_of("version", version, 2**31) > VERSION:
        raise ValueError(
            f"the file has version {version} of the format; this bsplib reads up to {VERSION}"
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
    patterns, sources = table_in("patterns", values), table_in("sources", values)
    check_names("pattern", patterns, PATTERNS)
    relative = values.get("relative_speed")
    if speed is not None and relative is not None:
        raise ValueError("it has both a speed and a relative_speed; give only one of them")
    nodes, cores = (_count(name, values) for name in ("nodes", "cores"))
    if nodes is not None and cores is None:
        raise ValueError("it has nodes but no cores; give the cores of each node")
    return {
        "name": text_of_value("name", values["name"]),
        "source": text_of_value("source", values["source"]),
        "p": None if p is None else whole_of("p", p, 2**31),
        "h": h,
        "word_bytes": whole_of("word_bytes", values.get("word_bytes", 8), 64),
        "speed": None if speed is None else check_speed(speed),
        "g": check_time("g", values["g"]),
        "l": _latency("l", values.get("l")),
        "patterns": {name: _checked_pattern(name, patterns) for name in patterns},
        "inside": _checked_inside(values),
        "sources": {name: text_of_value(name, source) for name, source in sources.items()},
        "host": text_of_value("host", values.get("host", "")),
        "cores": cores,
        "nodes": nodes,
        "relative_speed": None if relative is None else check_relative_speed(relative),
        "measured": measured_text.check(values.get("measured", ())),
    }


def check_time(what: str, value: object) -> float:
    """Return a g or an l in seconds.

    Raises:
        ValueError: the value is not a number from 0 to 1.
    """
    number = number_of(what, value)
    if not 0 <= number < 1:
        raise ValueError(f"{what} is {number}; it has to be from 0 to 1 second")
    return number


def check_speed(value: object) -> float:
    """Return a speed in flop/s.

    Raises:
        ValueError: the value is not a finite number greater than 0.
    """
    number = number_of("speed", value)
    if not 0 < number < math.inf:
        raise ValueError(f"speed is {number}; it has to be a number of flop/s greater than 0")
    return number


def check_relative_speed(value: object) -> float:
    """Return a speed in multiples of that of another computer.

    Raises:
        ValueError: the value is not a finite number greater than 0.
    """
    number = number_of("relative_speed", value)
    if not 0 < number < math.inf:
        raise ValueError(f"relative_speed is {number}; it has to be greater than 0, as in 0.5")
    return number


def _count(name: str, values: Mapping[str, Any]) -> int | None:
    return None if values.get(name) is None else whole_of(name, values[name], 2**31)


def _pattern(name: str, patterns: Values, word: int) -> Values:
    entries = table_in(name, patterns)
    check_names("entry", entries, (*_G, "L_s"))
    return {"g": _g(entries, word), "l": entries.get("L_s")}


def _checked_pattern(name: str, patterns: Values) -> Values:
    costs = table_in(name, patterns)
    return {
        "g": check_time(f"g of {name}", costs["g"]),
        "l": _latency(f"L of {name}", costs.get("l")),
    }


def _inside(entries: Values, word: int) -> Values | None:
    if "inside" not in entries:
        return None
    inside = table_in("inside", entries)
    check_names("entry", inside, (*_G, "l_s"))
    if "l_s" not in inside or not set(_G).intersection(inside):
        raise ValueError("inside needs both g_s_per_byte and l_s")
    return {"g": _g(inside, word), "l": inside["l_s"]}


def _checked_inside(values: Mapping[str, Any]) -> Values | None:
    if values.get("inside") is None:
        return None
    inside = table_in("inside", values)
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
    number = number_of("g", entries[given[0]])
    return number / word if given[0] == _G[1] else number


def _latency(what: str, value: object) -> float | None:
    """Check an l and return it; a fitted value may be below zero."""
    if value is None:
        return None
    number = number_of(what, value)
    return number if -1 < number < 0 else check_time(what, number)
