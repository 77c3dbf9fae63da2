"""Names, titles and units for the page: ``static/terms.js`` is written from those of the profiler.

After a change of a name here or there, ``python -m bsplib.webui.terms`` writes it anew; a test says
when. So Python and the page call everything the same.
"""

from __future__ import annotations

import json
from pathlib import Path

from bsplib.profiler.account import PARTS, TITLES
from bsplib.profiler.book import LOST
from bsplib.profiler.critical import MEASURE_TITLES, METRIC_TITLES, VIEWS
from bsplib.profiler.format import SIZE_UNITS, TIME_UNITS
from bsplib.profiler.lines import PART_NAMES

FILE = Path(__file__).parent / "static" / "terms.js"
"""What is written."""

NARROW = {
    "useful": "useful",
    "imbalance": "imbalance",
    "transfers": "transfers",
    "transfer_imbalance": "uneven",
    "latency": "latency",
    "core": "no core",
    "ends": "ends",
}
"""Names of parts of the account in narrow places, where their titles are longer."""
MEASURE_NAMES = {
    "abs": "maximum",
    "imb": "imbalance",
    "rel": "relative",
    "weighted": "weighted",
}
"""Names of the measures as heads of columns."""

_NUMBERS_WITH_UNITS = "/** @type {[number, string][]} */"
_NAMES = "/** @type {Record<string, string>} */"
_LIST = "/** @type {string[]} */"


def script() -> str:
    """Return the text of the module of the page."""
    tables = [
        ("PATHS", _LIST, "The losses, and the critical paths of Jarvis et al. (2002)", VIEWS),
        ("METRICS", _NAMES, "What the critical paths are about", METRIC_TITLES),
        ("MEASURES", _NAMES, "What they take of it", MEASURE_TITLES),
        ("MEASURE_NAMES", _NAMES, "The same as heads of columns", MEASURE_NAMES),
        ("PARTS", _LIST, "The parts of the account, in their order", PARTS),
        ("LOST", _LIST, "Those that are loss", [PARTS[part] for part in LOST]),
        ("PART_TITLES", _NAMES, "What they are called", TITLES),
        ("NARROW", _NAMES, "The same in narrow places, where titles are longer", NARROW),
        ("SAMPLED", _NAMES, "The parts of the seconds of samples", PART_NAMES),
        ("TIME_UNITS", _NUMBERS_WITH_UNITS, "Units of times, in seconds", TIME_UNITS),
        ("SIZE_UNITS", _NUMBERS_WITH_UNITS, "Units of sizes, in bytes", SIZE_UNITS),
    ]
    lines = ["/* Names, titles and units. Written by bsplib.webui.terms: change them there. */"]
    for name, kind, about, value in tables:
        text = json.dumps(value, ensure_ascii=False)
        lines += ["", f"/* {about}. */", kind, f"export const {name} = {text};"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(script(), encoding="utf-8")
