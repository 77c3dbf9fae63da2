"""``bsp recover``: save the trace of a run that was killed."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.command_options import OutputFile
from bsplib.output_file import TRACE
from bsplib.record.events import rank_files
from bsplib.record.join import recover as rescue_ranks
from bsplib.recording.recovery import recover as rescue
from bsplib.tools.cli.options import FOLDER, option
from bsplib.visible import as_command, visible


@click.command("recover")
@option(
    "-o",
    "--out",
    type=OutputFile(TRACE),
    help="Trace file to write.  [default: the file given for the run]",
)
@click.argument("folders", type=FOLDER, nargs=-1, required=True, metavar="FOLDER...")
def command(out: Path | None, folders: tuple[Path, ...]) -> None:
    """Save the trace of a run that was killed.

    While a program runs with --profile, its records are kept in a folder named
    .bsp-records-... beside the trace file. If the program is killed, the folder
    remains; give it as FOLDER. The trace has the supersteps that all processes had
    recorded. FOLDER is removed afterwards. So is the folder OUT.ranks of a program
    that bsp record was to record in OUT; of this the trace has all that is there.

    A process that cannot see the folder of the trace keeps its records in a folder
    named bsp-part-RUN-PID among the temporary files of its host. Copy these folders
    to one host and give them all. Where a host is gone for good, --out makes a trace
    without it, which names the processes whose records are missing; then the folders
    are kept.

    \b
    Examples:
      bsp recover .bsp-records-x1y2z3
      bsp recover .bsp-records-x1y2z3 bsp-part-* --out sort.bsp
      bsp recover jacobi.bsp.ranks
    """
    folder, *others = folders
    if not others and folder.is_dir() and rank_files(folder):
        target, run = rescue_ranks(folder, out)
    else:
        target, run = rescue(folder, out, *others)
    number = len(set(run.records["superstep"][run.records["group"] == 0].tolist()))
    path = visible(str(target))
    if run.absent:
        told = f"{run.meta['error']}; give further folders, if there are any"
        click.echo(visible(told), err=True)
    processes = f"{run.nprocs} process{'es' * (run.nprocs != 1)}"
    supersteps = f"{number} superstep{'s' * (number != 1)}"
    click.echo(f"wrote {path}: {processes}, {supersteps}: {as_command('bsp', 'report', target)}")
