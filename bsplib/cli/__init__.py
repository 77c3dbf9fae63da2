"""The ``bsp`` command.

Each command has a module of its name here. Commands import the profiler and the pages when
they are called: ``bsp run`` starts faster without them.
"""

from __future__ import annotations

from typing import Any

import click

from bsplib import core
from bsplib.cli import (
    compare,
    experiment,
    export,
    fit,
    machines,
    merge,
    papers,
    predict,
    probe,
    recover,
    report,
    run,
    tune,
    view,
)
from bsplib.errors import BspError
from bsplib.own_packages import prefer_own
from bsplib.sentences import as_sentence
from bsplib.version import __version__

_COMMANDS = (
    run,
    recover,
    merge,
    report,
    compare,
    view,
    export,
    probe,
    predict,
    experiment,
    fit,
    machines,
    papers,
    tune,
)
"""Modules of this package, each with one command."""

_VERSION = f"%(prog)s %(version)s (core: {core.BUILD})\n{core.REASON}".rstrip()


class _Sentences(click.Group):
    """A group of commands that shows an error of bsplib as one sentence, without traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BspError as error:
            raise as_sentence(error) from None


@click.group(cls=_Sentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bsp", message=_VERSION)
@click.pass_context
def main(context: click.Context) -> None:
    """Run bulk synchronous parallel programs and see where their time goes."""
    if context.invoked_subcommand != "run":  # a script imports its own modules
        prefer_own("profiler", "webui")


for _module in _COMMANDS:
    main.add_command(_module.command)
