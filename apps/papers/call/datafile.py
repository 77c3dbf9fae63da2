"""The data file of CALL: lines of JSON as Extra-P 4 has them, with the formula of each block.

For each passage of a block there is a line of its time in seconds, one of its h-relation in bytes
and one of each counter; of the processes the greatest value counts.
:mod:`bsplib.profiler.predict.files` reads such lines. Files are joined by ``cat``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bsplib.errors import UsageError
from bsplib.output_file import OutputKind, obstacle
from bsplib.profiler.predict.experiments import Passage
from bsplib.profiler.predict.files import json_line


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
            file.write(
                "".join(map(json_line, (row for each in found for row in each.measurements())))
            )
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None
