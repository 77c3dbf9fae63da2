"""``bsp machine``: the computers whose parameters are known, and how to make this one known."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import click

from bsplib.backends import table as backends
from bsplib.command_options import OutputFile, check_output, force_option, writing
from bsplib.machine import known_machines, load_machine
from bsplib.machine.template import template
from bsplib.output_file import write_text
from bsplib.running.options import BackendName
from bsplib.tools.cli import Listing
from bsplib.tools.cli.options import MachineName, Whole, option
from bsplib.tools.cli.run import enter
from bsplib.visible import as_command


@click.group("machine", cls=Listing)
def command() -> None:
    """List, show, describe and measure Machines, the parameters of computers.

    Other commands take a Machine by --machine: the name of one that comes with bsplib, or a
    .toml file. Figures that it lacks can follow its name, as in
    cray-t3e-mpi:l=1e-5,speed=3e8.

    \b
    Examples:
      bsp machine list
      bsp machine probe --out here.toml
    """


@command.command("list")
def list_machines() -> None:
    """List the Machines that come with bsplib.

    \b
    Example:
      bsp machine list
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # imported late
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from bsplib.console import Console  # noqa: PLC0415

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("NAME", no_wrap=True)
    for title in ("p", "flop/s", "g in s/byte", "l in s"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("source", overflow="fold")
    for name in known_machines():
        machine = load_machine(name)
        l_s = machine.l if machine.l is not None and machine.l >= 0 else None
        figures = (machine.p, machine.speed, machine.g, l_s)
        cells = ("" if figure is None else f"{figure:.3g}" for figure in figures)
        table.add_row(*(Text(cell) for cell in (name, *cells, machine.source)))
    Console().print(table)


@command.command("show")
@click.argument("name", type=MachineName())
def show(name: str) -> None:
    """Print all figures of a Machine, as its file has them.

    \b
    Example:
      bsp machine show ibm-sp2-pvm
    """
    click.echo(load_machine(name).text(), nl=False)


@command.command("new")
@force_option
@click.argument("file", type=OutputFile())
def new(file: Path, force: bool) -> None:
    """Write a commented .toml file into which the figures of a cluster can be entered.

    FILE is a name that ends in .toml; other commands take it as the NAME of the Machine, such
    as bsp predict for a run on the cluster.

    \b
    Example:
      bsp machine new cluster.toml
    """
    if file.suffix != ".toml":
        raise click.UsageError(f"{file}: the name of a Machine's file ends in .toml")
    check_output("FILE", file, force=force)
    with writing(file):
        write_text(file, template(file.name), force=force)
    click.echo(f"wrote {file}; enter the figures of your cluster, then name it by --machine {file}")


@command.command("probe")
@option(
    "-n",
    "--nprocs",
    type=Whole(min=2),
    help="Number of processes for which g and l hold; 1, 2 and this number are measured.  "
    "[default: the number of cores; then twice as many are measured, too]",
)
@option(
    "--backend",
    type=click.Choice(backends.probed_names()),
    default=backends.DEFAULT,
    help="Backend that starts the processes.",
)
@option("--name", help="Name of the Machine.  [default: the name of this computer]")
@option(
    "-o",
    "--out",
    type=OutputFile(),
    help="File to write.  [default: NAME.toml in the current folder]",
)
@option(
    "--plot",
    type=OutputFile(),
    help="Plot g by processes and the times by size into this file.",
)
@force_option
def probe(
    nprocs: int | None,
    backend: BackendName,
    name: str | None,
    out: Path | None,
    plot: Path | None,
    force: bool,
) -> None:
    """Measure this computer, and write its parameters to a Machine file.

    For several numbers of processes this command measures an empty sync, small puts, six
    patterns of communication by message size, and what else prices a superstep; it takes
    about a minute. g and L are lines fitted to the curves of the patterns, with their greatest
    error. Spread is the mean difference between one half of the measurements and the other.

    With --backend mpi on several hosts, it measures g and l between the hosts and inside
    them instead. Every --machine option takes the file, and it needs no other option for
    traces of this host.

    \b
    Examples:
      bsp machine probe --out here.toml
      bsp machine probe --backend mpi -n 16 --name cluster
    """
    from bsplib.console import Console  # noqa: PLC0415  # imported late
    from bsplib.machine.probing.table import probe_with_progress, table  # noqa: PLC0415
    from bsplib.profiler import plotting  # noqa: PLC0415
    from bsplib.profiler.models.machine_plot import plot_machine  # noqa: PLC0415

    name = name or platform.node() or "this computer"
    out = out or Path(re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".toml")
    check_output("out", out, force=force)
    if plot is not None:
        plotting.check_target(plot, force=force)
    count = nprocs or max(2, backends.own_cores())
    enter(backend, count, "-n", str(count))
    probed = probe_with_progress(nprocs, name, backend)
    if backends.own_rank():
        return
    with writing(out):
        write_text(out, probed.machine.text(), force=force)
    Console().print(table(probed))
    click.echo(f"wrote {out}: {as_command('bsp', 'predict', '--machine', out)} TRACE")
    if plot is not None:
        plot_machine(probed.machine, plot, force=force)
        click.echo(f"wrote {plot}")
