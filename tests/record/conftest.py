"""Programs of mpi4py that run on ranks of both MPIs, with and without the recorder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bsplib.record.events import CALLS, RankFile, rank_files, read_rank
from tests.mpi_installations import MPICH, OPEN_MPI, Mpi

DEADLINE_S = 60.0
"""Whatever takes longer hangs."""

RECORDED = (
    "import sys; from bsplib.record import command; command.JOIN = 'nosuch'; "
    "command.main(sys.argv[1:])"
)
"""The recorder without the join, so that the files of the ranks are kept."""


@pytest.fixture(params=[MPICH, OPEN_MPI], ids=lambda mpi: mpi.distribution, scope="module")
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Let a test run on one MPI after the other."""
    chosen: Mpi = request.param
    if not chosen.is_here():
        pytest.skip(f"{chosen.name} and mpi4py are not installed here: pip install -e '.[dev]'")
    return chosen


@dataclass
class Ran:
    """A program that has ended."""

    status: int
    output: str
    errors: str
    ranks: list[RankFile] = field(default_factory=list)


def start(mpi: Mpi, nprocs: int, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Start ranks of Python."""
    return subprocess.Popen(
        mpi.start(nprocs, sys.executable, *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=mpi.whole_environment(nprocs) | variables,
        start_new_session=True,
    )


def run(mpi: Mpi, nprocs: int, *words: str, **variables: str) -> Ran:
    """Run ranks of Python to their end."""
    process = start(mpi, nprocs, *words, **variables)
    try:
        output, errors = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    return Ran(process.returncode, output, errors)


def record(mpi: Mpi, nprocs: int, out: Path, *words: str, **variables: str) -> Ran:
    """Run a recorded program, and read what its ranks have recorded."""
    ran = run(mpi, nprocs, "-c", RECORDED, str(out), *words, **variables)
    folder = Path(f"{out}.ranks")
    if folder.is_dir():
        ran.ranks = [read_rank(path) for path in rank_files(folder)]
    return ran


@pytest.fixture
def recorded(mpi: Mpi, tmp_path: Path) -> Callable[..., Ran]:
    """Record the text of a program."""

    def of(text: str, nprocs: int = 2, *arguments: str, **variables: str) -> Ran:
        program = tmp_path / "program.py"
        program.write_text(text, encoding="utf-8")
        return record(mpi, nprocs, tmp_path / "out.bsp", str(program), *arguments, **variables)

    return of


class Rows:
    """The rows of the calls that one function of a program made in one rank."""

    def __init__(self, rank: RankFile, function: str) -> None:
        stacks = [
            number
            for number, frames in enumerate(rank.stacks)
            if function in {name for _, name, *_ in frames}
        ]
        self.numbers = [number for number, row in enumerate(rank.events) if row["stack"] in stacks]
        self.rank = rank

    def named(self, *names: str) -> list[int]:
        """Numbers of the events of calls with these names."""
        return [each for each in self.numbers if self.name(each) in names]

    def name(self, number: int) -> str:
        return CALLS[self.rank.events["call"][number]]

    def names(self) -> list[str]:
        return [self.name(each) for each in self.numbers]

    def bytes_of(self, name: str) -> list[tuple[int, int]]:
        """(bytes out, bytes in) of the calls of a name."""
        rows = self.rank.events[self.named(name)]
        return list(zip(rows["bytes_out"].tolist(), rows["bytes_in"].tolist(), strict=True))

    def column(self, name: str, column: str) -> list[int]:
        values: list[int] = self.rank.events[self.named(name)][column].tolist()
        return values

    def parts(self, name: str) -> list[list[tuple[int, int, int]]]:
        """(partner, bytes out, bytes in) of each call of a name."""
        return [
            [row[1:] for row in self.rank.parts.tolist() if row[0] == each]
            for each in self.named(name)
        ]

    def dones(self, *names: str) -> list[list[tuple[int, int, int, int]]]:
        """(request, source, tag, bytes) that each call of a name has completed."""
        return [
            [row[1:] for row in self.rank.dones.tolist() if row[0] == each]
            for each in self.named(*names)
        ]
