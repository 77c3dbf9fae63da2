"""``bsp record``: record a program that uses mpi4py."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.command_options import OutputFile
from bsplib.output_file import TRACE
from bsplib.record import command as recording


@click.command("record", help=f"{recording.ABOUT}\n\b\n{recording.EXAMPLES}")
@click.argument("out", type=OutputFile(TRACE))
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def command(out: Path, program: tuple[str, ...]) -> None:
    """Record a program; most command lines are taken by :func:`run_outside_click` before."""
    recording.main([str(out), *program])


command.allow_interspersed_args = False  # options after OUT are the program's


def run_outside_click(words: list[str]) -> bool:
    """Record the program of a command line; return whether that was done.

    click would catch Ctrl-C and change how the program ends, so it only gets command lines that
    ask for help or lack an argument.

    Args:
        words: the words after ``bsp record``.
    """
    if len(words) < 2 or words[0].startswith("-"):
        return False
    recording.main(words)
    return True
