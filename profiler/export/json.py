"""A profile as JSON for programs: the document that ``bsp report --json`` prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO

from bsplib.profiler.report.document import document

if TYPE_CHECKING:
    from bsplib.profiler.export.request import Request


def write(request: Request, file: BinaryIO) -> None:
    """Write losses, verdict, nodes, edges and a critical path of a request as JSON.

    Where the run was repeated, the intervals over its repeats are there, too.

    Times are in seconds, sizes in bytes; ``docs/report.md`` describes the format.

    Raises:
        TooLargeError: there are too many nodes and processes for a file of JSON.
    """
    content = document([request.profile], path=request.metric, among=request.repeats)
    file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
