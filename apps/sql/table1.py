"""Table 1 of the paper: the first and the last stage on other Machines and process counts.

Each is run once for each number of virtual processors. The recorded work and h-relations are
then priced on every Machine by w + h g + l; w is scaled to the speed of the Machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.apps.sql.generate import PAPER_SIZE, Generator
from bsplib.apps.sql.paper import MACHINES, TABLE_1, Table1Row, total_gain
from bsplib.apps.sql.plan import EXPERIMENTAL
from bsplib.apps.sql.story import MODEL, StorySetting, run_stage
from bsplib.apps.sql.story_table import figure_table
from bsplib.apps.work import SPEED
from bsplib.machine import Machine, load_machine
from bsplib.profiler import format as fmt
from bsplib.profiler.models.prediction import predict
from bsplib.profiler.prices import ReplayPrices
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace

TABLE_SIZE = 240_000
"""Twenty times the paper's records: with 12,000 the sample of the theoretical factor is all rows,
and the last stage sorts them twice."""
_FIRST_AND_LAST = ("original", "bitonic")

Rows = dict[str, dict[int, Table1Row]]
"""Seconds of both stages by Machine and number of processors."""


def measure(
    generator: Generator,
    block: int,
    counts: Sequence[int],
    advance: Callable[[], object] = lambda: None,
) -> Rows:
    """Run both stages with each number of processors, and price them on ``MACHINES``.

    Args:
        generator: of the relations.
        block: rows of a block.
        counts: numbers of processors.
        advance: is called after each number.

    Source: Jarvis et al. 2002, section 5.1, Table 1.
    """
    machines = {name: load_machine(text) for name, text in MACHINES.items()}
    recorded_on = load_machine("shared-memory")  # any, since the runs are priced anew
    rows: Rows = {name: {} for name in machines}
    with tempfile.TemporaryDirectory(prefix="bsp-table1-") as folder:
        for nprocs in counts:
            setting = StorySetting(generator, nprocs, recorded_on, block, EXPERIMENTAL)
            runs = [_recorded(setting, stage, Path(folder)) for stage in _FIRST_AND_LAST]
            for name, machine in machines.items():
                rows[name][nprocs] = Table1Row(*(seconds(run, machine) for run in runs))
            advance()
    return rows


def seconds(run: Run, machine: Machine) -> float:
    """Return the cost of a recorded run on a Machine: the sum of w + h g + l.

    Raises:
        UsageError: the Machine has no speed, or no l.
    """
    ratio = SPEED / machine.need("speed")
    if run.nprocs == 1:
        machine = replace(machine, l=0.0)  # one process waits for nobody
    return predict(run, ReplayPrices(machine, ratio), [MODEL]).totals[MODEL].total_s


def _recorded(setting: StorySetting, stage: str, folder: Path) -> Run:
    path = folder / f"{stage}-{setting.nprocs}.bsp"
    run_stage(setting, stage, path)
    (run,) = read_trace(path).runs
    return run


# -- on a terminal: ours beside the paper's --------------------------------------------------------


def show(generator: Generator, rows: Rows) -> None:
    """Print the table, and what its figures are."""
    console = Console()
    console.print(_table(rows))
    for line in _notes(generator):
        console.print(Text(line))


def _table(rows: Rows) -> Table:
    """Return a table with a row for each Machine and number of processors."""
    titles = ("p", "ours\nfirst", "last", "gain", "paral-\nlel")
    theirs = ("paper\ngain", "sequen-\ntial", "paral-\nlel")
    made = figure_table("Table 1: the first stage against the last", "Machine", (*titles, *theirs))
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


def _notes(generator: Generator) -> list[str]:
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
