"""``bsp machines``: what a recorded run would cost on several Machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bsplib.errors import UsageError
from bsplib.machine import known_machines, load_machine
from bsplib.tools.cli.options import (
    TRACE,
    MachineName,
    Whole,
    library_option,
    run_option,
    speed_option,
)
from bsplib.tools.cli.traces import position_of, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsplib.machine import Machine


@click.command("machines")
@click.option(
    "--machine",
    "names",
    type=MachineName(),
    metavar="NAME",
    multiple=True,
    help="Machine to show; may be given several times.  [default: all that come with "
    "bsplib and have the figures]",
)
@speed_option
@click.option(
    "--top",
    default=20,
    show_default=True,
    type=Whole(0),
    metavar="N",
    help="Number of functions and cost centres to show; 0: all.",
)
@run_option
@library_option
@click.argument("file", type=TRACE, required=False)
def command(
    names: tuple[str, ...],
    speed: str | None,
    top: int,
    number: int | None,
    library: bool,
    file: Path | None,
) -> None:
    r"""List the Machines, or show a run as it would be on each of them, side by side.

    Without FILE the Machines that come with bsplib are listed. FILE is a trace. Its run is
    timed anew for each Machine: computation by its speed, and g h + l at the end of each
    superstep; the program does not run again. The first column is the run as it was.

    NAME is a Machine that comes with bsplib, or a .toml file as bsp probe or bsp
    machine new writes it. Figures that it lacks can follow its name, as in
    cray-t3e-mpi:l=1e-5,speed=3e8.

    \b
    Examples:
      bsp machines
      bsp machines sort.bsp
      bsp machines --machine here.toml --machine ideal --speed 1x sort.bsp
    """
    chosen = [(name, load_machine(name)) for name in names or known_machines()]
    if file is None:
        if speed is not None or number is not None or library:
            raise click.UsageError("--speed, --run and --library need a FILE")
        _list(chosen)
        return
    from bsplib.profiler.machines_report import print_machines  # noqa: PLC0415  # imported late
    from bsplib.profiler.rates import rates_on  # noqa: PLC0415

    trace = read(file)
    position = position_of(trace, number)
    runs = trace.runs if position is None else trace.runs[position : position + 1]
    for run in runs:
        rates, gaps = [], []
        for name, machine in chosen:
            try:
                rates.append(rates_on(machine, run, speed=speed))
            except UsageError:
                if names:
                    raise
                gaps.append((name, machine))
        print_machines(run, rates, most=top or None, library=library)
        for sentence in _left_out(gaps):
            click.echo(sentence)


def _list(machines: Sequence[tuple[str, Machine]]) -> None:
    """Print a table of Machines; what is not known of one is left empty."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # imported late
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from bsplib.console import Console  # noqa: PLC0415

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("NAME", no_wrap=True)
    for title in ("p", "flop/s", "g in s/byte", "l in s"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("source", overflow="fold")
    for name, machine in machines:
        l_s = machine.l if machine.l is not None and machine.l >= 0 else None
        figures = (machine.p, machine.speed, machine.g, l_s)
        cells = ("" if figure is None else f"{figure:.3g}" for figure in figures)
        table.add_row(*(Text(cell) for cell in (name, *cells, machine.source)))
    Console().print(table)


def _left_out(gaps: Sequence[tuple[str, Machine]]) -> Iterator[str]:
    """Yield which Machines are left out, and how what they lack can be given."""
    without_l = [name for name, machine in gaps if machine.l is None or machine.l < 0]
    without_speed = [name for name, _ in gaps if name not in without_l]
    if without_speed:
        yield (
            f"Left out, since their speed compared with the run is not known: "
            f"{', '.join(without_speed)}; give it, as in --speed 0.5x."
        )
    if without_l:
        yield (
            f"Left out, since their l is not known: {', '.join(without_l)}; give it, as in "
            f"--machine {without_l[0]}:l=1e-5."
        )
