"""``bsp tune``: the best value of a parameter of an application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bsplib.command_options import OutputFile, force_option
from bsplib.tools.cli.options import FOLDER, Whole, backend_option, complete_files, machine_option


@click.command("tune")
@click.option(
    "--set",
    "sweep",
    required=True,
    metavar="NAME=A:B:xK",
    help="Integer option of APP and its values from A to B: all (A:B), with step K "
    "(A:B:+K), or each K times the one before (A:B:xK).",
)
@click.option(
    "-n",
    "--nprocs",
    type=Whole(1),
    metavar="N",
    help="Number of processes.  [default: what APP says]",
)
@backend_option
@machine_option
@click.option(
    "--repeats",
    type=Whole(1),
    metavar="N",
    help="Runs with each value and seed; the fastest of them counts.  [default: 3, or 1 with "
    "several seeds]",
)
@click.option(
    "--seeds",
    type=Whole(1),
    metavar="N",
    help="Number of seeds, which are given to APP by --seed.  [default: 5 where APP has it]",
)
@click.option("--keep", type=FOLDER, metavar="FOLDER", help="Keep the traces in this folder.")
@click.option("--plot", type=OutputFile(), help="Plot the costs over the values into this file.")
@force_option
@click.argument("app", shell_complete=complete_files)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_files)
def command(sweep: str, plot: Path | None, app: str, **options: Any) -> None:
    r"""Find the best value of a parameter of a program.

    APP is a module or a file with a click command named "command", such as
    bsplib.apps.sorting.sample_sort; ARGUMENTS, after --, are further options of APP. It is run and
    recorded with each value of the parameter. It needs an option --profile, and --nprocs,
    --backend and --machine where these are named here (--machine with --backend sim, too), whose
    values it gives to bsplib.run.

    The output shows which cost centres take longer as the parameter grows and which
    become more balanced. It names the best value for the Machine of the runs and for
    each Machine that comes with bsplib, where a superstep costs max w + g h + l. With
    several seeds it shows how much of the balance is chance. Virtual processors have the
    Machine shared-memory if none is named, on which an h-relation has a price.

    \b
    Examples:
      bsp tune --set oversampling=4:4096:x2 bsplib.apps.sorting.sample_sort
      bsp tune --set block=1:64:x2 --backend sim -n 16 steps.py -- --seed 3
    """
    from bsplib.profiler.tune.session import tune_and_print  # noqa: PLC0415  # imported late

    tune_and_print(app, sweep, plot=plot, **options)
