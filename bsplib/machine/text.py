"""The text of a Machine: TOML in seconds and bytes, with the source of every figure.

::

    version = 5                       # of this format
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

A cluster that a user describes (:mod:`bsplib.machine.template`) has::

    nodes = 8                         # hosts; g and l are those between them
    cores = 16                        # of each node

A probe adds what it measured; then these times price a superstep in place of g and l
(:mod:`bsplib.machine.measured`)::

    host = "node7"                    # that was measured
    cores = 2                         # that the processes could use

    [[measured]]                      # one table for each number of processes, ascending
    p = 2
    empty_s = 5e-7                    # a superstep in which nothing is communicated
    call_s = 1e-7                     # each further put of an array of 8 bytes in a superstep
    start_s = 2e-2                    # a run that does nothing
    slowdown = 1.05                   # of a computation, compared with its time alone
    spread = 0.02                     # mean relative difference of two halves of the rounds

    [measured.patterns.exchange]      # knots: bytes of the h-relation, seconds of a superstep
    bytes = [64, 1048576]
    seconds = [1.7e-6, 7e-5]

Name, source and g are required, and cores where there are nodes; a figure that is missing is a
gap; of an entry of ``measured`` p and empty_s are required. Other entries are errors, and so is a
later version. Apart from the units in their names, entries are the fields of a Machine and of its
parts, which :mod:`bsplib.machine.parameters` checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERSION = 5
"""Version of the format; a file need not say it."""

NAMES = {
    "g": "g_s_per_byte",
    "l": "l_s",
    "speed": "speed_flop_per_s",
    "empty": "empty_s",
    "call": "call_s",
    "start": "start_s",
    "nbytes": "bytes",
}
"""What a file calls the fields whose names have no unit."""
_G_PER_WORD = "g_s_per_word"
_FIELDS = {name: field for field, name in NAMES.items()} | {"L_s": "l", _G_PER_WORD: "g"}

Values = dict[str, Any]


def parse(text: str) -> Values:
    """Return the fields of the Machine in a file, which are not checked, by name.

    Raises:
        ValueError: the text is not TOML, has a later version, or a figure in other units; the text
            of the error is one sentence.
    """
    import tomllib  # noqa: PLC0415  # who only imports bsplib reads no Machine

    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is no file in TOML: {error}") from None
    version = entries.pop("version", VERSION)
    if type(version) is not int or version > VERSION:
        raise ValueError(
            f"the file has version {version} of the format; this bsplib reads up to {VERSION}"
        )
    values: Values = _in_bytes(entries, entries.get("word_bytes", 8))
    return values


def _in_bytes(entries: Any, word_bytes: Any) -> Any:
    """Return entries by the names of their fields."""
    if isinstance(entries, list):
        return [_in_bytes(entry, word_bytes) for entry in entries]
    if not isinstance(entries, dict):
        return entries
    given: Values = entries
    found: Values = {}
    for name, value in given.items():
        if name in NAMES:
            raise ValueError(f"there is no entry {name!r}; write {NAMES[name]}")
        field = _FIELDS.get(name, name)
        if field in found:
            raise ValueError(f"it has both {NAMES[field]} and {name}; give only one of them")
        # The sources are those of figures, which have no units.
        found[field] = value if name == "sources" else _in_bytes(value, word_bytes)
        if name == _G_PER_WORD and type(value) in (int, float) and type(word_bytes) is int:
            found[field] = value / max(word_bytes, 1)
    return found


def text_of(values: Mapping[str, Any]) -> str:
    """Return the text of a file for the fields of a Machine; gaps are left out."""
    import tomlkit  # noqa: PLC0415  # most programs write no Machine

    # TOML allows characters that turn the direction of what a terminal shows; escaped they are read
    # as the same characters.
    return "".join(
        char if char.isprintable() or char == "\n" else f"\\U{ord(char):08x}"
        for char in tomlkit.dumps(_in_units({"version": VERSION, **values}, NAMES))
    )


def _in_units(value: Any, names: Mapping[str, str]) -> Any:
    """Return values by the names in a file; a number that is not whole has four digits."""
    if isinstance(value, float):
        return float(f"{value:.3e}")
    if isinstance(value, tuple | list):
        return [_in_units(each, names) for each in value]
    if not isinstance(value, Mapping):
        return value
    inner = {"sources": {}, "patterns": {**NAMES, "l": "L_s"}}
    return {
        names.get(name, name): _in_units(each, inner.get(name, names))
        for name, each in value.items()
        if each not in (None, "", (), {})
    }
