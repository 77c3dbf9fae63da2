"""Every equation, table, figure and system of the five papers, with where it lives here.

The list is ``places.csv``. Where an entry lives nowhere, it says why; what is said beside a place
is how ours differs from print.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.resources import files

NAMES = {
    "jarvis": "Jarvis et al. 2002",
    "gonzalez": "Gonzalez et al.",
    "roda": "Roda et al. 1999",
    "chittor": "Chittor 1995",
    "shi": "Shi",
}
"""Papers by their name in the list."""


@dataclass(frozen=True)
class PaperEntry:
    """An equation, a table, a figure or a system."""

    paper: str
    kind: str
    """``equation``, ``table``, ``figure`` or ``system``."""
    number: str
    """As printed; the name of a system."""
    what: str
    where: tuple[str, ...]
    """Each a module, a name in a module after a colon, a file of the repository, or a command."""
    why: str
    """Why it lives nowhere, or how ours differs."""

    @property
    def title(self) -> str:
        """Return its name, as in ``Figure 3``."""
        return self.number if self.kind == "system" else f"{self.kind.capitalize()} {self.number}"


def read() -> list[PaperEntry]:
    """Return all entries, in the order of the papers."""
    text = files("bsplib.apps.papers").joinpath("places.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines(), strict=True))
    return [_entry(row) for row in rows]


def _entry(row: dict[str, str]) -> PaperEntry:
    if set(row) != {field.name for field in fields(PaperEntry)} or None in row.values():
        raise ValueError(f"places.csv: a line has too many or too few values: {row}")
    where = tuple(place.strip() for place in row.pop("where").split(",") if place.strip())
    return PaperEntry(**{**row, "where": where, "paper": NAMES[row["paper"]]})  # type: ignore[arg-type]


def counts(entries: Sequence[PaperEntry]) -> dict[str, dict[str, tuple[int, int]]]:
    """Return for each paper and kind how many entries live here, and how many there are."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for entry in entries:
        kinds = found.setdefault(entry.paper, {})
        here, of = kinds.get(entry.kind, (0, 0))
        kinds[entry.kind] = here + bool(entry.where), of + 1
    return found
