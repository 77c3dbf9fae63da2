"""Options of command lines that had another word before, for ``bsp`` and the applications."""

from __future__ import annotations

from typing import Any

import click


class Option(click.Option):
    """An option with former names, which helps and completion do not show.

    Args:
        *args: as for ``click.Option``.
        old: names that the option had before.
        **more: as for ``click.Option``.
    """

    def __init__(self, *args: Any, old: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.old = old

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser take the former names, too."""
        shown = self.opts
        self.opts = [*shown, *self.old]
        super().add_to_parser(parser, ctx)
        self.opts = shown
