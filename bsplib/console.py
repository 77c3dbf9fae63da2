"""The console on which commands print: no text can control the terminal, wherever it is from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich.console
from rich.segment import Segment

from bsplib.visible import visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterable


class Console(rich.console.Console):
    """A console that shows unprintable characters by their escapes, and takes no text as markup."""

    def __init__(self, **options: Any) -> None:
        """Take the options of rich."""
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render(self, *renderable: Any, **options: Any) -> Iterable[Segment]:
        """Return the segments of a renderable; what rich itself controls is kept."""
        for text, style, control in super().render(*renderable, **options):
            yield Segment(text if control else visible_lines(text), style, control)
