"""``bsp merge``: make one trace of the parts that the hosts of a run have."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.command_options import OutputFile
from bsplib.output_file import TRACE
from bsplib.recording.recovery import merge
from bsplib.tools.cli.options import FOLDER
from bsplib.tools.cli.recover import say_written


@click.command("merge")
@click.option("-o", "--out", type=OutputFile(TRACE), required=True, help="Trace file to write.")
@click.argument("parts", type=FOLDER, nargs=-1, required=True, metavar="PART...")
def command(out: Path, parts: tuple[Path, ...]) -> None:
    r"""Save the trace of a killed run from the parts that several hosts have.

    A process that cannot see the folder of the trace keeps its records in a folder
    named bsp-part-RUN-PID among the temporary files of its host until the run ends.
    If the run is killed, these folders remain. Copy them to one host and give them
    all as PART..., with the folder .bsp-records-... beside the trace file if records
    are in it. The trace has the supersteps that all processes had recorded. Where a
    host is gone for good, it names the processes whose records are missing, and has
    those of the others. The folders are kept.

    \b
    Example:
      bsp merge bsp-part-* --out sort.bsp
    """
    say_written(out, merge(parts, out))
