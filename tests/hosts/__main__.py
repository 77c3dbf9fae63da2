"""Use hosts by hand: ``python -m tests.hosts up`` makes them and prints commands."""

from __future__ import annotations

import shlex
import signal
import sys

import click

from tests.hosts import folder
from tests.hosts.hosts import Hosts, HostsError
from tests.hosts.launching import mpiexec
from tests.mpi_installations import ALL

_HELLO = "from mpi4py import MPI; print(MPI.COMM_WORLD.rank, MPI.Get_processor_name())"


@click.group()
def main() -> None:
    """Several hosts on this machine: namespaces of the kernel, joined by a switch."""


@main.command()
@click.option("--hosts", "count", default=4, show_default=True)
@click.option("--rate", default=1e9, show_default=True, help="Bits a second of each link.")
@click.option("--delay", default=1e-3, show_default=True, help="Seconds from host to host.")
def up(count: int, rate: float, delay: float) -> None:
    """Make hosts, print commands that use them, and keep them until Ctrl-C."""
    try:
        with Hosts(count, rate, delay) as hosts:
            click.echo("A shell on each host:")
            for host in range(count):
                click.echo(shlex.join(hosts.on(host, "sh")))
            for mpi in filter(lambda each: each.is_here(), ALL):
                click.echo(f"\n{mpi.title}, a rank on each host:")
                click.echo(shlex.join(mpiexec(hosts, mpi, count, 1, sys.executable, "-c", _HELLO)))
            click.echo("\nThe hosts are gone after Ctrl-C.")
            signal.pause()
    except HostsError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo()


@main.command()
def clean() -> None:
    """Remove what a run has left whose processes were all killed; there are only files."""
    for removed in folder.remove_abandoned():
        click.echo(f"removed {removed}")


if __name__ == "__main__":
    main()
