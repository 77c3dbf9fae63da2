"""What the command lines of the applications have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def machine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a program runs, and whether it is recorded."""
    command = click.option(
        "--profile", type=click.Path(dir_okay=False), help="Record the run in this file."
    )(command)
    return click.option(
        "--nprocs",
        type=click.IntRange(1, 256),
        help="Number of processes; the cores of this machine if not said.",
    )(command)
