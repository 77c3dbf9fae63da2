"""The shaded call graph as PDF, one page as large as the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from bsplib.profiler.export.picture import draw

if TYPE_CHECKING:
    from bsplib.profiler.export.request import Request


def write(request: Request, file: BinaryIO) -> None:
    """Write the picture of a request as PDF."""
    file.write(draw(request.drawing, "pdf"))
