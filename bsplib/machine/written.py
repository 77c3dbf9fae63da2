"""Write the text of a Machine: see :mod:`bsplib.machine.text`, which reads it.

Most programs write none. So this module, which needs tomlkit, is loaded when one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit

from bsplib.machine.measured_text import RATIOS, TIMES
from bsplib.machine.text import VERSION, Values


def text_of(values: Values) -> str:
    """Return the text of a file for values that :func:`check` returned; gaps are left out."""
    document = tomlkit.document()
    _add_head(document, values)
    document.add("h", values["h"])
    document.add("word_bytes", values["word_bytes"])
    if values["speed"] is not None:
        document.add("speed_flop_per_s", _rounded(values["speed"]))
    if values["relative_speed"] is not None:
        document.add("relative_speed", _rounded(values["relative_speed"]))
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
    if values["measured"]:
        document.add("measured", _table_of(values["measured"]))
    # TOML allows characters that turn the direction of what a terminal shows; escaped they are read
    # as the same characters.
    return "".join(
        char if char.isprintable() or char == "\n" else f"\\U{ord(char):08x}"
        for char in tomlkit.dumps(document)
    )


def _add_head(document: Any, values: Values) -> None:
    later = ("host", "cores", "nodes", "relative_speed")
    if values["measured"] or any(values[name] not in (None, "") for name in later):
        document.add("version", VERSION)
    for name in ("name", "source", "host", "nodes", "cores", "p"):
        if values[name] not in (None, "") or name in ("name", "source"):
            document.add(name, values[name])


def _add_costs(table: Any, values: Mapping[str, Any], latency: str) -> None:
    table.add("g_s_per_byte", _rounded(values["g"]))
    if values["l"] is not None:
        table.add(latency, _rounded(values["l"]))


def _rounded(value: float) -> Any:
    """Return a value with four digits."""
    return tomlkit.float_(f"{value:.3e}")


def _table_of(entries: Sequence[Values]) -> Any:
    """Return the tables of a file for values that :func:`check` returned."""
    tables = tomlkit.aot()
    for entry in entries:
        table = tomlkit.table()
        table.add("p", entry["p"])
        for name in (*TIMES, *RATIOS):
            if entry[name] is not None:
                table.add(f"{name}_s" if name in TIMES else name, _rounded(entry[name]))
        if entry["patterns"]:
            patterns = tomlkit.table(is_super_table=True)
            for name, curve in entry["patterns"].items():
                patterns.add(name, _written(curve))
            table.add("patterns", patterns)
        tables.append(table)
    return tables


def _written(curve: Values) -> Any:
    table = tomlkit.table()
    table.add("bytes", list(curve["nbytes"]))
    seconds = tomlkit.array()
    for value in curve["seconds"]:
        seconds.append(_rounded(value))
    table.add("seconds", seconds)
    return table
