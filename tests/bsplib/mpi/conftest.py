"""Runs on ranks of both MPIs, in this process or in one of their own."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bsplib.backends.mpi.ranks import INSIDE
from tests.mpi_installations import MPICH, OPEN_MPI, Mpi
from tests.mpi_ranks import ranks_of

DEADLINE_S = 30.0
"""Whatever takes longer hangs."""
_MARK = "BSP_TEST_MARK"


@pytest.fixture(params=[MPICH, OPEN_MPI], ids=lambda mpi: mpi.distribution, scope="module")
def mpi(request: pytest.FixtureRequest) -> Iterator[Mpi]:
    """Let the runs of a test be those of an MPI, whose ranks stay."""
    with ranks_of(request.param):
        yield request.param


@pytest.fixture
def over_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ranks of one host exchange through MPI."""
    monkeypatch.setenv(INSIDE, "mpi")


@pytest.fixture(params=["memory", pytest.param("mpi", marks=pytest.mark.slow)])
def exchange(request: pytest.FixtureRequest) -> None:
    """Let ranks of one host exchange in both ways."""
    if request.param == "mpi":
        request.getfixturevalue("over_mpi")


@pytest.fixture
def marked(mpi: Mpi, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Provide a function that lists the processes which the test has started and which run."""
    mark = f"{_MARK}={uuid.uuid4()}"
    monkeypatch.setenv(*mark.split("="))

    def living() -> list[str]:
        return [line for process in Path("/proc").glob("[0-9]*") if (line := _line(process, mark))]

    return living


def _line(process: Path, mark: str) -> str:
    """Return the command line of a process that has a mark; empty where it has none."""
    try:
        if mark.encode() not in (process / "environ").read_bytes():
            return ""
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:  # it has ended
        return ""


@pytest.fixture
def nothing_left(marked: Callable[[], list[str]]) -> Callable[[float], None]:
    """Check that all processes which the test has started have ended, within some seconds."""

    def check(seconds: float) -> None:
        until = time.monotonic() + seconds
        while (living := marked()) and time.monotonic() < until:
            time.sleep(0.02)
        assert living == []

    return check


@pytest.fixture
def program(
    mpi: Mpi, marked: Callable[[], list[str]], tmp_path: Path
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a program in an interpreter of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str, *before: str) -> subprocess.Popen[str]:
        path = tmp_path / "program.py"
        path.write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            [*(before or (sys.executable,)), str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    for line in marked():
        pytest.fail(f"a process is left: {line}")
