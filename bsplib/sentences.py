"""Errors as a command line shows them: one sentence, without a traceback."""

from __future__ import annotations

import click

from bsplib.errors import BspError, MissingExtraError
from bsplib.visible import visible_lines


class MissingExtra(click.ClickException):
    """A command needs an extra; the exit status is that of a wrong option."""

    exit_code = 2


def as_sentence(error: BspError) -> click.ClickException:
    """Return what a command raises so that click shows an error and ends the program."""
    kind = MissingExtra if isinstance(error, MissingExtraError) else click.ClickException
    return kind(visible_lines(str(error)))
