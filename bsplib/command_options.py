"""What all command lines share: options for files to write, and how they show errors.

The commands of ``bsp`` and of the applications use them. A file which must stay is reported before
a command begins its work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from bsplib.errors import BspError, MissingExtraError
from bsplib.output_file import OutputKind, obstacle
from bsplib.visible import visible_lines


class OutputFile(click.Path):
    """Type of a parameter that names a file to write; its value is a Path.

    Args:
        replaces: what an earlier file may be; None: nothing is replaced without ``--force``.
        allow_dash: whether ``-`` is the standard output.
    """

    def __init__(self, replaces: OutputKind | None = None, *, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, path_type=Path, allow_dash=allow_dash)
        self.replaces = replaces

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, if a file can be written there."""
        path = Path(str(super().convert(value, param, ctx)))
        if str(path) == "-" and not self.allow_dash:
            self.fail("- stands for standard output elsewhere; name a file here", param, ctx)
        if str(path) != "-":
            name = "" if param is None else max(param.opts, key=len).lstrip("-")
            force = ctx is not None and bool(ctx.params.get("force"))
            check_output(name, path, self.replaces, force=force)
        return path


def check_output(
    option: str, path: Path, replaces: OutputKind | None = None, *, force: bool = False
) -> None:
    """Check that a file can be written; arguments as for :func:`bsplib.output_file.obstacle`.

    Raises:
        click.ClickException: it cannot; the sentence begins with the name of the option.
    """
    if reason := obstacle(path, replaces, force=force):
        raise click.ClickException(f"{option}: {reason}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in a sentence why a file cannot be written, if it cannot."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None


force_option = click.option(
    "--force",
    is_flag=True,
    is_eager=True,  # known when the names of files are checked
    help="Replace a file that exists.",
)


# -- errors as a command line shows them ----------------------------------------------------------


class MissingExtra(click.ClickException):
    """A command needs an extra; the exit status is that of a wrong option."""

    exit_code = 2


def as_sentence(error: BspError) -> click.ClickException:
    """Return what a command raises so that click shows an error and ends the program."""
    kind = MissingExtra if isinstance(error, MissingExtraError) else click.ClickException
    return kind(visible_lines(str(error)))
