"""The ``bsp`` command.

Each command has a module of its name here. Commands import the profiler and the pages when
they are called: ``bsp run`` starts faster without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import click

from bsplib import core
from bsplib.errors import BspError
from bsplib.sentences import as_sentence
from bsplib.tools.cli import (
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
from bsplib.tools.cli.listing import Listing
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


class _Sentences(Listing):
    """A group of commands that shows an error of bsplib as one sentence, without traceback."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {
        "Run and record": ["run", "recover", "merge"],
        "See where the time goes": ["report", "view", "compare", "export"],
        "Predict and tune": ["probe", "predict", "machines", "fit", "experiment", "tune"],
        "Compare with the literature": ["papers"],
    }

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BspError as error:
            raise as_sentence(error) from None


@click.group(cls=_Sentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    __version__, prog_name="bsp", message=_VERSION, help="Show the version and the core, and exit."
)
def main() -> None:
    r"""Run bulk synchronous parallel programs, and see where their time goes.

    \b
    bsp run --profile sort.bsp sort.py    runs a script and records it in a trace
    bsp report sort.bsp                   prints what was lost, and where
    bsp view sort.bsp                     shows the call graph in the browser

    A trace is a file that a run was recorded in, and a Machine the set of parameters of a
    computer. bsp COMMAND --help explains a command.
    """


for _module in _COMMANDS:
    main.add_command(_module.command)
