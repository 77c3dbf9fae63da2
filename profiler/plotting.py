"""Plots as files: all use of matplotlib's figures and formats is in this module.

Figures are created and saved; no window is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.extras import optional_module
from bsplib.output_file import obstacle, written_whole
from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

# Imported when the first figure is made, which takes half a second.
backend_bases = optional_module("matplotlib.backend_bases")
figures = optional_module("matplotlib.figure")


class PlotError(UsageError, ValueError):
    """A figure cannot be saved; the text is one sentence."""


def check_target(path: Path, *, force: bool = False) -> None:
    """Check that a figure can be saved at a path, before the measurements for it begin.

    Raises:
        PlotError: the suffix of the path names no format, or no file can be written there: without
            ``force`` a file that exists is not replaced.
        MissingExtraError: matplotlib is not installed.
    """
    formats = sorted(backend_bases.FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in formats:
        raise PlotError(
            f"plot: {path} has no suffix of a known format; use one of .{', .'.join(formats)}"
        )
    if reason := obstacle(path, force=force):
        raise PlotError(f"plot: {reason}")


def plain(text: str) -> str:
    """Return text of unknown origin in a form that matplotlib does not read as a formula."""
    return fmt.visible(text).replace("$", r"\$")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    figure: Figure = figures.Figure(figsize=(width, height), layout="constrained")
    return figure


def save(figure: Figure, path: Path, *, force: bool = False) -> None:
    """Save a figure in the format that the suffix of the file names.

    Raises:
        PlotError: the file cannot be written, or exists and ``force`` is not given.
    """
    try:
        with written_whole(path, force=force) as temporary:
            figure.savefig(temporary)
    except OSError as error:
        raise PlotError(f"plot: {path} cannot be written: {error.strerror or error}") from None
