"""``bsp machine``: describe a computer that cannot be measured."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.command_options import OutputFile, check_output, force_option
from bsplib.machine.template import template
from bsplib.output_file import write_text
from bsplib.tools.cli.listing import Listing


@click.group("machine", cls=Listing)
def command() -> None:
    r"""Describe a computer that cannot be measured, such as a cluster.

    bsp probe measures this computer, and bsp machines lists those that are known.

    \b
    Examples:
      bsp machine new cluster.toml
    """


@command.command("new")
@force_option
@click.argument("file", type=OutputFile())
def new(file: Path, force: bool) -> None:
    r"""Write a commented .toml file into which the figures of a cluster can be entered.

    FILE is a name that ends in .toml; other commands take it as the NAME of the Machine, such
    as bsp predict for a run on the cluster.

    \b
    Example:
      bsp machine new cluster.toml
    """
    if file.suffix != ".toml":
        raise click.UsageError(f"{file}: the name of a Machine's file ends in .toml")
    check_output("FILE", file, force=force)
    try:
        write_text(file, template(file.name), force=force)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from None
    click.echo(f"wrote {file}; enter the figures of your cluster, then name it by --machine {file}")
