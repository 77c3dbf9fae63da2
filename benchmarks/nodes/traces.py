"""The traces that node models are fitted to, and those that they predict.

``python -m benchmarks.nodes.traces FOLDER`` records them; a trace that exists is kept.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks.lent import borrow_memory
from benchmarks.nodes.settings import HELD_OUT

_VIRTUAL = HELD_OUT["virtual"]
PARTS = ("fitted", "develop", "held_out")


class VirtualRun(NamedTuple):
    """One run of a program on virtual processors."""

    program: str
    size: int
    processes: int
    seed: int | None

    def path(self, folder: Path) -> Path:
        """Return the file of its trace."""
        seed = "" if self.seed is None else f"_{self.seed}"
        return folder / f"{self.program}_{self.size}_{self.processes}{seed}.bsp"


def cells(program: str, part: str) -> list[VirtualRun]:
    """Return the runs of a program that are fitted, or are held out."""
    settings = _VIRTUAL["programs"][program]
    seeds = _VIRTUAL["seeds"] if settings.get("seeds") else [None]
    if part == "fitted":
        sizes = settings.get("sizes", _VIRTUAL["sizes"])
        places = [(size, processes) for size in sizes for processes in _VIRTUAL["processes"]]
    else:
        there = settings.get(part, _VIRTUAL[part])
        places = [(there["size"], there["processes"])]
    return [VirtualRun(program, *place, seed) for place in places for seed in seeds]


def record(cell: VirtualRun, folder: Path) -> None:
    """Record a run, unless its trace exists."""
    path = cell.path(folder)
    if path.exists():
        return
    settings = _VIRTUAL["programs"][cell.program]
    arguments = ["--size", str(cell.size), "--nprocs", str(cell.processes)]
    if cell.seed is not None:
        arguments += ["--seed", str(cell.seed)]
    if each := settings.get("memory_for_each"):
        arguments += ["--memory", str(each * cell.processes)]
    run_program([*settings["run"], *arguments], _VIRTUAL["backend"], path)


def record_real(program: str, size: int, condition: str, path: Path) -> None:
    """Record a run of real processes, unless its trace exists.

    Args:
        program: its name in ``held_out.toml``.
        size: number of elements.
        condition: name of the environment of the run.
        path: file of the trace.
    """
    if path.exists():
        return
    settings = HELD_OUT["real"]
    line = [*settings["programs"][program], "--size", str(size)]
    line += ["--nprocs", str(settings["processes"]), "--backend", settings["backend"]]
    borrow_memory()
    subprocess.run(  # our own programs
        [sys.executable, "-m", *line, "--profile", str(path)],
        env=os.environ | settings["environment"] | settings["conditions"][condition],
        check=True,
        capture_output=True,
    )


def run_program(line: list[str], backend: str, path: Path) -> None:
    """Run the command of a program in this process, and record it."""
    module, *arguments = line
    arguments += ["--backend", backend, "--profile", str(path)]
    command = _command(module)
    before = sys.argv
    sys.argv = [module, *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            command.main(arguments, standalone_mode=False)
    finally:
        sys.argv = before


def _command(module: str) -> Any:
    found = importlib.import_module(
        {"bsplib.apps.broadcast": "bsplib.apps.broadcast.broadcast"}.get(module, module)
    )
    if module == "bsplib.apps.sql":
        return importlib.import_module("bsplib.apps.sql.cli").cli
    return found.command


def _wanted(programs: tuple[str, ...], parts: tuple[str, ...]) -> Iterator[VirtualRun]:
    for program in programs or _VIRTUAL["programs"]:
        for part in parts or PARTS:
            yield from cells(program, part)


@click.command()
@click.option("--program", "programs", multiple=True, type=click.Choice(list(_VIRTUAL["programs"])))
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def main(folder: Path, programs: tuple[str, ...], parts: tuple[str, ...]) -> None:
    """Record the traces of virtual processors in FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    for cell in _wanted(programs, parts):
        click.echo(cell.path(folder).name)
        record(cell, folder)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.nodes.traces")
