"""Every command, as tests find them by themselves, and what is printed on a terminal."""

from __future__ import annotations

import importlib
import io
import pkgutil
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import click
from click.testing import CliRunner, Result
from rich.console import Console

from bsplib import apps
from bsplib.running import options
from bsplib.tools.cli import main


def walk(
    command: click.Command, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Yield each command that does something by itself, with the words that call it."""
    if isinstance(command, click.Group):
        if command.invoke_without_command:
            yield " ".join(words), command
        for name, inner in command.commands.items():
            yield from walk(inner, (*words, name))
    else:
        yield " ".join(words), command


def of_bsp() -> dict[str, click.Command]:
    """Return the commands of ``bsp`` by the words after it."""
    return dict(walk(main))


def of_apps() -> dict[str, click.Command]:
    """Return the commands of the applications by module, or room, and words."""
    found: dict[str, click.Command] = {}
    for module in pkgutil.walk_packages(apps.__path__, "bsplib.apps."):
        if module.ispkg or module.name.startswith("bsplib.apps.gallery"):
            continue  # a program of the gallery has no options, and may need mpi4py
        if module.name.endswith("__main__"):
            continue  # it would run
        *_, room, inner = module.name.split(".")
        every = vars(importlib.import_module(module.name)).values()
        commands = [each for each in every if isinstance(each, click.Command)]
        groups = [each for each in commands if isinstance(each, click.Group)]
        below = [each for group in groups for _, each in walk(group)]
        for command in commands:
            if command not in below:
                found |= dict(walk(command, (room if inner == "cli" else inner,)))
    return found


def run_bsp(*words: object, **more: Any) -> Result:
    """Run the command ``bsp`` in this process; what it overrides ends with it."""
    in_force = list(options._in_force)
    try:
        return copy_context().run(CliRunner().invoke, main, [*map(str, words)], **more)
    finally:
        options._in_force[:] = in_force


def printed_by(
    show: Callable[..., None], *what: Any, width: int = 160, colours: str | None = None, **more: Any
) -> str:
    """Return what a function prints on a terminal, by default one without colours."""
    terminal = Console(
        file=io.StringIO(), width=width, color_system=colours, force_terminal=colours is not None
    )
    show(*what, console=terminal, **more)
    return terminal.file.getvalue()
