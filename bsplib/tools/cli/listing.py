"""A group of commands that lists them in sections, with the whole first sentence of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import click

_LONGEST = 200
"""Characters of a sentence; it is folded, not cut."""


class Listing(click.Group):
    """A group whose help lists its commands in sections.

    ``sections`` has the names of the commands by the title of their section, in order; without
    it there is one section.
    """

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        keep_lines(self)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command."""
        keep_lines(cmd)
        super().add_command(cmd, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            rows = [
                (name, command.get_short_help_str(_LONGEST))
                for name in names
                if (command := self.get_command(ctx, name)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


def keep_lines(command: click.Command) -> None:
    """Do not fold the paragraphs of a help that begin with a line of a backslash and b.

    In click the character that Python writes so has this meaning; the docstrings are raw.
    """
    command.help = (command.help or "").replace("\\b\n", "\b\n")
