"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.backends import table as backends

TRACE = click.Path(dir_okay=False, path_type=Path)
"""Type of an argument or option that names a file."""

FOLDER = click.Path(file_okay=False, path_type=Path)
"""Type of an argument or option that names a folder."""

backend_option = click.option(
    "--backend",
    type=click.Choice(backends.names()),
    envvar="BSP_BACKEND",
    show_envvar=True,
    help=backends.summary(),
)
machine_option = click.option(
    "--machine",
    metavar="NAME",
    envvar="BSP_MACHINE",
    show_envvar=True,
    help="Machine whose parameters price the communication of virtual processors.",
)
run_option = click.option(
    "--run", "number", type=int, help="Number of the run in the trace, from 1.  [default: all runs]"
)
