"""The ``bsp`` command.

Each command has a module of its name here, which is imported when the command is called. They
import the profiler and the pages later still: ``bsp run`` starts faster without them, and each
rank of a program under ``bsp record`` loads nothing but the recorder.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import click

from bsplib.command_options import as_sentence
from bsplib.errors import BspError
from bsplib.version import __version__


class Listing(click.Group):
    """A group whose help lists its commands in sections.

    ``sections`` has the names of the commands by the title of their section, in order; without
    it there is one section.
    """

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            rows = [
                (name, command.get_short_help_str(sys.maxsize))  # folded, not cut
                for name in names
                if (command := self.get_command(ctx, name)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


class _Sentences(Listing):
    """A group of commands that shows an error of bsplib as one sentence, without traceback."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {
        "Run and record": ["run", "record", "recover"],
        "See where the time goes": ["report", "view", "compare", "export"],
        "Predict and tune": ["machine", "predict", "sweep"],
        "Compare with the literature": ["papers"],
    }

    moved: ClassVar[Mapping[str, str]] = {
        "probe": "bsp machine probe",
        "machines": "bsp machine list, and of a trace: bsp predict --machine all TRACE",
        "fit": "bsp predict --at VALUES FILE...",
        "tune": "bsp sweep --set NAME=VALUES SCRIPT",
        "experiment": "bsp sweep --set NAME=VALUES SCRIPT, and then bsp predict FOLDER",
    }
    """Names of an earlier version, each with what to write now."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:  # noqa: ARG002  # as in click
        return sorted(name for names in self.sections.values() for name in names)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        if cmd_name in self.moved:
            raise click.UsageError(f"bsp {cmd_name} is now {self.moved[cmd_name]}")
        if cmd_name not in self.list_commands(ctx):
            return None
        # A program sees standard output as it is; what a command prints may not have a character.
        if cmd_name not in ("run", "record") and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        command: click.Command = import_module(f"bsplib.tools.cli.{cmd_name}").command
        return command

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        """All commands, which this imports."""
        return {name: self.get_command(None, name) for name in self.list_commands(None)}  # type: ignore[misc]  # each is there

    @commands.setter
    def commands(self, value: object) -> None:
        """Ignore the empty dictionary that click begins with."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        if args is None and sys.argv[1:2] == ["record"]:
            from bsplib.tools.cli import record  # noqa: PLC0415  # only this is to be imported

            if record.run_outside_click(sys.argv[2:]):
                return None
        return super().main(args, *rest, **options)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BspError as error:
            raise as_sentence(error) from None
        except OSError as error:
            if error.errno != errno.ENOSPC or error.filename is not None:
                raise
            _drop_output()
            raise click.ClickException("standard output cannot be written: no space left") from None


def _drop_output() -> None:
    """Lead standard output nowhere, so that its rest is no second error at the exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _tell_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from bsplib import core  # noqa: PLC0415  # few command lines ask

        click.echo(f"bsp {__version__} (core: {core.BUILD})\n{core.REASON}".rstrip())
        ctx.exit()


@click.group(cls=_Sentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and the core, and exit.",
)
def main() -> None:
    """Run bulk synchronous parallel programs, and see where their time goes.

    \b
    bsp run --profile sort.bsp sort.py    runs a script and records it in a trace
    bsp report sort.bsp                   prints what was lost, and where
    bsp view sort.bsp                     shows the call graph in the browser

    A trace is a file that a run was recorded in, and a Machine the set of parameters of a
    computer. bsp COMMAND --help explains a command.
    """
