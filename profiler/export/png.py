"""The shaded call graph as PNG, for documents and slides."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from bsplib.profiler.export.picture import draw

if TYPE_CHECKING:
    from bsplib.profiler.export.request import Request


def write(request: Request, file: BinaryIO) -> None:
    """Write the picture of a request as PNG, with 144 pixels to the inch."""
    file.write(draw(request.drawing, "png"))
