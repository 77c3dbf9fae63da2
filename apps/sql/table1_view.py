"""Table 1 on a terminal: our costs beside the paper's seconds, and where the gains come from."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.apps.sql.generate import PAPER_SIZE, Generator
from bsplib.apps.sql.paper import MACHINES, TABLE_1, Table1Row, total_gain
from bsplib.apps.sql.table1 import Rows
from bsplib.profiler import format as fmt


def show(generator: Generator, rows: Rows) -> None:
    """Print the table, and what its figures are."""
    console = Console()
    console.print(table(rows))
    for line in notes(generator):
        console.print(Text(line))


def table(rows: Rows) -> Table:
    """Return a table with a row for each Machine and number of processors."""
    made = Table(title=Text("Table 1: the first stage against the last"), title_justify="left")
    made.box, made.padding = SIMPLE_HEAD, (0, 1, 0, 0)
    made.add_column("\nMachine", no_wrap=True)
    for title in ("\np", "ours\nfirst", "\nlast", "\ngain", "paral-\nlel"):
        made.add_column(title, justify="right", no_wrap=True)
    for title in ("paper\ngain", "sequen-\ntial", "paral-\nlel"):
        made.add_column(title, justify="right", no_wrap=True)
    for machine, found in rows.items():
        for nprocs, times in found.items():
            made.add_row(*_cells(machine, nprocs, times, found[1]))
    return made


def _cells(machine: str, nprocs: int, times: Table1Row, alone: Table1Row) -> list[str]:
    whole, _, parallel = total_gain(times, alone)
    printed = TABLE_1.get(machine, {})
    theirs = total_gain(printed[nprocs], printed[1]) if nprocs in printed else ()
    return [
        machine if nprocs == 1 else "",
        str(nprocs),
        *map(fmt.seconds, times),
        f"{whole:+.0%}",
        f"{parallel:+.0%}",
        *(f"{part:+.0%}" for part in theirs),
    ]


def notes(generator: Generator) -> list[str]:
    """Return lines that say what the figures are, and why they differ from the paper's."""
    return [
        f"{generator.size:,} records of TRAN; the paper has {PAPER_SIZE:,}. Ours are times by "
        "w + h g + l, the paper's wall-clock times of other programs: only gains can be compared.",
        "Sequential is the gain on one processor, from less work: our stages do the same work "
        "there. Parallel is the rest, the ratio of the speedups.",
        "The Machines: " + "; ".join(MACHINES.values()) + ". Their g is that of Roda et al. 1999. "
        "Speed and l of the Origin are those of the Oxford BSP toolset; l of the T3E and the "
        "other speeds are assumed round figures.",
    ]
