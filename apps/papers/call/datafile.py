"""The data file of CALL: one line of JSON for each passage of a block.

A line is a measurement in the JSON Lines format of Extra-P 4 (``params``, ``callpath``, ``metric``,
``value`` in seconds), with what :class:`bsplib.profiler.predict.experiments.Passage` has besides.
Files are joined by ``cat``; a last line that was cut short does not count.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from bsplib.errors import UsageError
from bsplib.output_file import OutputKind, obstacle
from bsplib.profiler.predict.experiments import Passage

_MOST_BYTES = 2**30


def _begins(start: bytes) -> bool:
    return start.lstrip().startswith(b"{") and b'"callpath"' in start and b'"formula"' in start


DATA = OutputKind("a data file of CALL", lambda start: not start or _begins(start))
"""What lines may be added to; a data file has no lines before the first run."""


def append(path: Path, found: Iterable[Passage]) -> None:
    """Add passages to a file, which is made if it is missing.

    Raises:
        UsageError: it cannot be written, or is no data file.
    """
    if reason := obstacle(path, DATA):
        raise UsageError(f"call: {reason}")
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(_row(each)) + "\n" for each in found))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def _row(passage: Passage) -> dict[str, object]:
    row = passage._asdict()
    measurement = {"params": row.pop("values"), "callpath": row.pop("name"), "metric": "time"}
    return {**measurement, "value": max(passage.times), **row}


def read(paths: Sequence[Path]) -> list[Passage]:
    """Read data files.

    Raises:
        UsageError: a file cannot be read, or a line is none of a data file.
    """
    return [each for path in paths for each in _read(path)]


def _read(path: Path) -> list[Passage]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path}: more than {_MOST_BYTES >> 30} GiB are no measurements")
        *lines, cut = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no data file of CALL: it is no text") from None
    numbered = enumerate(lines or [cut], 1)
    return [_passage(line, f"{path}, line {number}") for number, line in numbered if line.strip()]


def _passage(line: str, place: str) -> Passage:
    """Return a line as numbers and text."""
    try:
        row = json.loads(line)
        found = Passage(
            name=row["callpath"], values=row["params"], **{each: row[each] for each in _FIELDS}
        )
        lists = [found.times, found.h, *found.counted.values()]
        numbers = [*found.values.values(), *(each for some in lists for each in some)]
        sound = all(type(each) in (int, float) and math.isfinite(each) for each in numbers)
        sound = sound and all(type(some) is list and some for some in lists)
        sound = sound and isinstance(found.name, str) and isinstance(found.formula, str)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        sound = False
    if not sound:
        raise UsageError(f"{place} is no passage of a block; bsp papers call writes such files")
    return found


_FIELDS = set(Passage._fields) - {"name", "values"}
