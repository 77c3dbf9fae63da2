"""Arguments and options that several commands have: one word for one idea."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from bsplib import output_file
from bsplib.backends import table as backends
from bsplib.errors import UsageError
from bsplib.machine import known_machines, load_machine
from bsplib.visible import as_command

option = partial(click.option, show_default=True, show_envvar=True)
"""Makes an option whose help has its default, and the environment variable that gives it, too."""


class Whole(click.IntRange):
    """Type of an option that is a whole number; errors call it so."""

    name = "whole number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002  # as in click
        """Return what stands for the number in a help."""
        return "N"


class Real(click.FloatRange):
    """Type of an option that is a number; errors call it so."""

    name = "number"


class _Named(click.types.StringParamType):
    """Type of an option that is one of some names, which TAB completes."""

    def names(self) -> Iterable[str]:
        """Return the names; they are looked for when they are needed."""
        raise NotImplementedError

    def shell_complete(
        self, _context: click.Context, _option: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin so."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class MachineName(_Named):
    """Type of an option that names a Machine: one that comes with bsplib, or a file."""

    name = "name"  # stands for it in a help
    names = staticmethod(known_machines)

    def shell_complete(
        self, context: click.Context, option: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the Machines that begin so; where there are none, let the shell complete files."""
        machines = super().shell_complete(context, option, incomplete)
        return machines or complete_files(context, option, incomplete)


class Metric(_Named):
    """Type of an option that names a view of costs: loss, or a critical path."""

    name = "metric"

    def names(self) -> Iterable[str]:
        """Return the views."""
        from bsplib.profiler.critical import VIEWS  # noqa: PLC0415  # imported late

        return VIEWS

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name, if there is such a view."""
        if value not in (views := self.names()):
            self.fail(f"{value!r} is no metric; choose one of {', '.join(views)}", param, ctx)
        return value


def complete_files(
    _context: click.Context, _argument: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete names of files."""
    return [CompletionItem(incomplete, type="file")]


TRACE = click.Path(dir_okay=False, path_type=Path)
"""Type of an argument or option that names a file."""

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
"""Type of an argument or option that names a folder to read."""


class Backend(_Named):
    """Type of an option that names a backend: one of bsplib, or of another distribution."""

    name = "backend"
    names = staticmethod(backends.every_name)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002  # as in click
        """Return all names, for which a help looks for those of other distributions."""
        return f"[{'|'.join(self.names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name, if there is such a backend."""
        try:
            return backends.find(value).name
        except UsageError as error:
            self.fail(str(error), param, ctx)


class LoadedMachine(MachineName):
    """Type of an option that is the Machine of a name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002  # as in click
        """Return the Machine."""
        return load_machine(value)


nprocs_option = option(
    "-n",
    "--nprocs",
    type=Whole(1),
    envvar="BSP_NPROCS",
    help="Number of processes.  [default: what SCRIPT says, or the cores of this computer]",
)
timeout_option = option(
    "--timeout",
    type=Real(0, min_open=True),
    metavar="SECONDS",
    envvar="BSP_TIMEOUT",
    help="End a run that takes longer, and say where its processes were.  [default: no limit]",
)
backend_option = option(
    "--backend",
    type=Backend(),
    envvar="BSP_BACKEND",
    help=f"{backends.summary()}  [default: {backends.DEFAULT}, or what the program says]",
)
machine_option = option(
    "--machine",
    type=LoadedMachine(),
    envvar="BSP_MACHINE",
    help="Machine whose parameters price the communication of virtual processors: one that comes "
    "with bsplib, as bsp machine list names it, or a .toml file.",
)
on_machine_option = option(
    "--machine",
    type=MachineName(),
    help="Show the run as it would be on this Machine.",
)
run_option = option(
    "--run",
    "number",
    type=int,
    metavar="N",
    help="Number of the run in the trace, from 1.  [default: all; where one is shown, the "
    "last, and of repeats the one of median time]",
)
speed_option = option(
    "--speed",
    metavar="X",
    help="Speed of a process of the Machine: in flop/s, as in 3e8, or compared with the recorded "
    "run, as in 0.5x.",
)
library_option = option(
    "--library", is_flag=True, help="Show the functions of bsplib as nodes, too."
)


# -- a script, and what follows it on the command line --------------------------------------------


def _existing(context: click.Context, parameter: click.Parameter, script: str) -> str:
    """Check that a script exists; the name of a module stays as it is."""
    if not context.params.get("is_module"):
        click.Path(exists=True, dir_okay=False).convert(script, parameter, context)
        if output_file.TRACE.is_at(script):
            view = as_command("bsp", "view", script)
            raise click.UsageError(f"{script} is a trace, not a script; show it by: {view}")
    return script


def script_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take ``script`` (with ``-m`` a module) and the ``arguments`` of the script."""
    for parameter in (
        click.argument(
            "arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_files
        ),
        click.argument("script", callback=_existing, shell_complete=complete_files),
        option(
            "-m",
            "--module",
            "is_module",
            is_flag=True,
            help="SCRIPT is the name of a module, such as bsplib.apps.broadcast, as for python -m.",
        ),
    ):
        command = parameter(command)
    return command


# -- values of variables and times, such as n=2^20,p=64 and 10m -----------------------------------


_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_VALUE = re.compile(rf"(?P<base>{_NUMBER})((\^|\*\*)(?P<power>{_NUMBER}))?")

Point = dict[str, float]


def values(text: str) -> Point:
    """Return the values in a text such as n=2^20,p=64.

    Raises:
        click.BadParameter: a value is no number.
    """
    return dict(map(_value, text.split(",")))


def setting(text: str) -> tuple[str, Point]:
    """Return values for traces, as in n=2^20,s=64 or 'run-1024-*:n=1024'."""
    pattern, _, of_traces = text.rpartition(":")
    return pattern, values(of_traces)


def time(text: str) -> float:
    """Return the seconds of a time such as 10m, 90s or 1.5h."""
    match = re.fullmatch(r"(\d+\.?\d*)([smh]?)", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no time: write it as 90s, 10m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def _value(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    match = _VALUE.fullmatch(number.strip())
    if not (name.strip() and match):
        raise click.BadParameter(f"{text!r} is no value of a variable: write it as N=2^20")
    try:
        return name.strip(), float(match["base"]) ** float(match["power"] or 1)
    except (OverflowError, ZeroDivisionError):
        raise click.BadParameter(f"{text!r} is too large a number") from None
