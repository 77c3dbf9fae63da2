"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.backends import table as backends


class Whole(click.IntRange):
    """Type of an option that is a whole number; errors call it so."""

    name = "whole number"


class Real(click.FloatRange):
    """Type of an option that is a number; errors call it so."""

    name = "number"


TRACE = click.Path(dir_okay=False, path_type=Path)
"""Type of an argument or option that names a file."""

FOLDER = click.Path(file_okay=False, path_type=Path)
"""Type of an argument or option that names a folder."""

backend_option = click.option(
    "--backend",
    type=click.Choice(backends.names()),
    envvar="BSP_BACKEND",
    show_envvar=True,
    help=f"{backends.summary()}  [default: {backends.DEFAULT}, or what the program says]",
)
machine_option = click.option(
    "--machine",
    metavar="NAME",
    envvar="BSP_MACHINE",
    show_envvar=True,
    help="Machine whose parameters price the communication of virtual processors: one that comes "
    "with bsplib, as bsp machines names it, or a .toml file.",
)
run_option = click.option(
    "--run",
    "number",
    type=int,
    metavar="N",
    help="Number of the run in the trace, from 1.  [default: all runs]",
)
speed_option = click.option(
    "--speed",
    metavar="X",
    help="Speed of a process of the Machine: in flop/s, as in 3e8, or compared with the recorded "
    "run, as in 0.5x.",
)
library_option = click.option(
    "--library", is_flag=True, help="Show the functions of bsplib as nodes, too."
)
