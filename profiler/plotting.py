"""Where plots go: the one place that knows how matplotlib writes files.

Nothing is shown on a screen: figures are made and saved, and no window is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler import format as fmt

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def check_target(path: Path) -> None:
    """Check that a figure can be saved there, before the work that it is to show.

    Raises:
        ValueError: its ending names no format, or there is no such folder.
    """
    from matplotlib.backend_bases import FigureCanvasBase  # noqa: PLC0415  # half a second

    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in formats:
        raise ValueError(f"plot: {path} names no format; let it end in .{', .'.join(formats)}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"plot: there is no folder {path.absolute().parent}")


def plain(text: str) -> str:
    """Text of unknown origin for a figure, in which matplotlib finds no formulas."""
    return fmt.visible(text).replace("$", r"\$")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # half a second

    return Figure(figsize=(width, height), layout="constrained")


def scale_seconds(axes: Axes) -> None:
    """Make the horizontal axis one of seconds, logarithmic, with units at its ticks."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415  # half a second

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = next(ticks for span, ticks in _TICKS if high / low < span)
    axes.xaxis.set_major_locator(LogLocator(subs=ticks))
    axes.xaxis.set_major_formatter(lambda value, _: fmt.seconds(value))
    axes.xaxis.set_minor_formatter(NullFormatter())


_TICKS = ((50, (1, 2, 5)), (5000, (1, 3)), (float("inf"), (1,)))
"""By how many times the greatest value of an axis is the least: ticks of a decade."""


def save(figure: Figure, path: Path) -> None:
    """Save a figure in the format that the file's ending names.

    Raises:
        ValueError: the file cannot be written.
    """
    try:
        figure.savefig(path)
    except OSError as error:
        raise ValueError(f"plot: {path} cannot be written: {error.strerror or error}") from None
