"""The library of MPI is found that mpi4py would load, and the shim has the rows of events.py."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bsplib.record import build, compiler
from bsplib.record.events import CALLS, DONE, EVENT, PART, rank_files, read_rank
from bsplib.record.shim import functions

from .conftest import RECORDED, run

FIND = """
import sys; from pathlib import Path; from bsplib.record.libraries import find_library
library = find_library(Path(sys.argv[1])); print(library.path); print(library.name)
"""


@pytest.mark.lengthy
def test_the_library_is_that_of_mpi4py(mpi, tmp_path):
    lines = run(mpi, 1, "-c", FIND, str(tmp_path)).output.splitlines()
    assert lines == [str(mpi.file(mpi.library)), mpi.name]


def test_every_call_has_one_wrapper():
    by_hand = (compiler.FOLDER / "by_hand.c").read_text(encoding="utf-8")
    assert len(set(CALLS)) == len(CALLS)
    assert all(f" MPI_{each.name}(" in by_hand for each in functions.BY_HAND)


@pytest.mark.slow
def test_the_rows_of_the_shim_are_those_that_are_read(mpi, tmp_path):
    code = (
        "import ctypes, os, sys; from pathlib import Path; from bsplib.record import build\n"
        "from bsplib.record.libraries import find_library\n"
        "cache = build.cache_folder(); path = build.shim_of(find_library(cache), cache)\n"
        "shim = ctypes.CDLL(str(path), os.RTLD_GLOBAL); sizes = (ctypes.c_int * 3)()\n"
        "shim.bsp_record_sizes(sizes); print(*sizes)\n"
    )
    assert run(mpi, 1, "-c", code).output.split() == [
        str(row.itemsize) for row in (EVENT, PART, DONE)
    ]


PROGRAM = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\nprint('done')\n"
OF_WHEEL = (
    "import pathlib; from bsplib.record import build; build._CAME_ALONG = pathlib.Path({!r})\n"
)
"""Lets shims be looked for in another folder than in an installation."""


def recorded_without_compiler(mpi, folder):
    """Record a program where there is no compiler and nothing is in the cache."""
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    code = OF_WHEEL.format(str(folder)) + RECORDED
    words = (str(folder / "out.bsp"), str(folder / "program.py"))
    variables = {"CC": "nosuch", "PATH": "/nosuch", "XDG_CACHE_HOME": str(folder / "cache")}
    return run(mpi, 1, "-c", code, *words, **variables)


@pytest.fixture(scope="module")
def shims(tmp_path_factory):
    """A folder with the shims that wheels have."""
    folder = tmp_path_factory.mktemp("shims")
    subprocess.run(
        [sys.executable, "-m", "bsplib.record.compiler", str(folder)], check=True, timeout=100
    )
    return folder


@pytest.mark.slow
def test_with_the_shim_of_a_wheel_no_compiler_is_needed(mpi, shims):
    ran = recorded_without_compiler(mpi, shims)
    assert (ran.status, ran.output) == (0, "done\n"), ran.errors
    (rank,) = [read_rank(path) for path in rank_files(shims / "out.bsp.ranks")]
    assert "Barrier" in [CALLS[number] for number in rank.events["call"]]
    assert not (shims / "cache").exists()
    (shims / "out.bsp.ranks").rename(shims / f"{mpi.distribution}.ranks")


@pytest.mark.lengthy
def test_without_a_shim_a_compiler_is_asked_for_in_one_sentence(mpi, tmp_path):
    ran = recorded_without_compiler(mpi, tmp_path)
    assert (ran.status, ran.output) == (2, "")
    (said,) = [line for line in ran.errors.splitlines() if line.startswith("bsp record")]
    assert said == (
        "bsp record: the program was not started, since its recorder has to be compiled for "
        f"{mpi.name}, and there is no C compiler (cc, gcc, clang, or what CC names); on Debian: "
        "apt-get install gcc libc6-dev"
    )


@pytest.mark.slow
def test_a_shim_that_lacks_a_call_of_the_library_is_not_used(mpi, tmp_path):
    source = tmp_path / "shim.c"
    source.write_text('const char *bsp_record_lacks = "PMPI_Nosuch PMPI_Send";')
    for is_open_mpi in (False, True):
        shim = tmp_path / build.name_in_wheel(is_open_mpi=is_open_mpi)
        subprocess.run(["cc", "-shared", source, "-o", shim], check=True, timeout=100)
    ran = recorded_without_compiler(mpi, tmp_path)
    assert ran.status == 2
    assert "its recorder has to be compiled" in ran.errors
