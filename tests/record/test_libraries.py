"""The library of MPI is found that mpi4py would load, and the shim has the rows of events.py."""

from __future__ import annotations

import pytest

from bsplib.record import build, libraries
from bsplib.record.events import CALLS, DONE, EVENT, PART
from bsplib.record.shim import functions, generate

from .conftest import run

FIND = """
import sys; from pathlib import Path; from bsplib.record.libraries import find_library
library = find_library(Path(sys.argv[1])); print(library.path); print(library.name)
"""


@pytest.mark.lengthy
def test_the_library_is_that_of_mpi4py(mpi, tmp_path):
    lines = run(mpi, 1, "-c", FIND, str(tmp_path)).output.splitlines()
    assert lines == [str(mpi.file(mpi.library)), mpi.name]


def test_every_call_has_one_wrapper():
    by_hand = (generate.FOLDER / "by_hand.c").read_text(encoding="utf-8")
    assert len(set(CALLS)) == len(CALLS)
    assert all(f" MPI_{each.name}(" in by_hand for each in functions.BY_HAND)


@pytest.mark.slow
def test_the_rows_of_the_shim_are_those_that_are_read(mpi, tmp_path):
    code = (
        "import ctypes, os, sys; from pathlib import Path; from bsplib.record import build\n"
        "from bsplib.record.libraries import find_library\n"
        "cache = build.cache_folder(); path = build.compiled_shim(find_library(cache), cache)\n"
        "shim = ctypes.CDLL(str(path), os.RTLD_GLOBAL); sizes = (ctypes.c_int * 3)()\n"
        "shim.bsp_record_sizes(sizes); print(*sizes)\n"
    )
    assert run(mpi, 1, "-c", code).output.split() == [
        str(row.itemsize) for row in (EVENT, PART, DONE)
    ]


def test_without_a_compiler_the_reason_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    library = libraries.Library("/nosuch/libmpi.so.12", is_open_mpi=False, version="MPICH")
    with pytest.raises(libraries.NoShimError, match="there is no C compiler"):
        build.compiled_shim(library, tmp_path / "cache")
