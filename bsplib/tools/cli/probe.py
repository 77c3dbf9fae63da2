"""``bsp probe``: measure this computer."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bsplib.backends import table as backends
from bsplib.command_options import OutputFile, check_output, force_option
from bsplib.output_file import write_text
from bsplib.running.options import BackendName
from bsplib.tools.cli.options import Whole
from bsplib.visible import as_command

if TYPE_CHECKING:
    from bsplib.machine import Machine


@click.command("probe")
@click.option(
    "-n",
    "--nprocs",
    type=Whole(min=2),
    metavar="N",
    help="Number of processes for which g and l hold; 1, 2 and this number are measured.  "
    "[default: the number of cores; then twice as many are measured, too]",
)
@click.option(
    "--backend",
    type=click.Choice(backends.probed_names()),
    default=backends.DEFAULT,
    help="Backend that starts the processes.  [default: shm]",
)
@click.option("--name", help="Name of the Machine.  [default: the name of this computer]")
@click.option(
    "-o",
    "--out",
    type=OutputFile(),
    help="File to write.  [default: NAME.toml in the current folder]",
)
@click.option(
    "--plot",
    type=OutputFile(),
    help="Plot g by processes and the times by size into this file.",
)
@force_option
def command(
    nprocs: int | None,
    backend: BackendName,
    name: str | None,
    out: Path | None,
    plot: Path | None,
    force: bool,
) -> None:
    r"""Measure this computer, and write its parameters to a Machine file.

    A Machine is the set of parameters of a computer. For several numbers of processes
    this command measures an empty sync, the cost of small puts, six patterns of
    communication by message size, memory that is touched for the first time, the start
    of a run, what recording adds, and how much slower a process computes while others
    do. It takes about a minute. The curves of the patterns price supersteps; g and L
    are lines fitted to them. Misfit is the greatest error of the curves at sizes that
    were measured between their knots, spread the mean difference between one half of
    the measurements and the other.

    With --backend mpi on several hosts, it measures g and l between the hosts and
    inside them instead. Every --machine option takes the file:
    bsp predict --machine FILE.toml. It needs no other option for traces of this host.

    \b
    Examples:
      bsp probe --out here.toml
      bsp probe --backend mpi -n 16 --name cluster
    """
    from bsplib.console import Console  # noqa: PLC0415  # imported late
    from bsplib.machine.probing.table import probe_with_progress, table  # noqa: PLC0415

    name = name or platform.node() or "this computer"
    out = out or Path(re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".toml")
    check_output("out", out, force=force)
    if plot is not None:
        _check_plot(plot, force=force)
    probed = probe_with_progress(nprocs, name, backend)
    try:
        write_text(out, probed.machine.text(), force=force)
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from None
    Console().print(table(probed))
    click.echo(f"wrote {out}: {as_command('bsp', 'predict', '--machine', out)} TRACE")
    if plot is not None:
        _plot(probed.machine, plot, force=force)
        click.echo(f"wrote {plot}")


def _check_plot(path: Path, *, force: bool) -> None:
    from bsplib.profiler import plotting  # noqa: PLC0415  # imported late

    try:
        plotting.check_target(path, force=force)
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def _plot(machine: Machine, path: Path, *, force: bool) -> None:
    from bsplib.profiler.models.machine_plot import plot_machine  # noqa: PLC0415  # imported late

    try:
        plot_machine(machine, path, force=force)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
