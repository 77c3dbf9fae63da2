"""The programs of the gallery compute what sequential programs do, and are short."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import bsplib
from benchmarks.whole.lines import lines_of_code
from bsplib.apps import gallery
from bsplib.apps.gallery import references, word_count
from tests.mpi_installations import MPICH, OPEN_MPI
from tests.mpi_ranks import MPIS, ranks_of
from tests.processes import run_command, run_python

FOLDER = Path(gallery.__file__).parent
SMALL = {
    "heat": (20, 7),
    "kmeans": (400, 4, 5),
    "conjugate_gradients": (60, 1e-10),
    "nbody": (40, 3, 1e-2),
    "cannon": (24,),
    "word_count": (word_count.text(3000),),
    "histogram": (2400, 2, 1000),
    "monte_carlo": (0.5, 480, 8),
    "farm": (24, 0.002),
    "prefix_sums": (1001,),
    "lu": (37,),
    "sparse_matrix_vector": (50, 480, 4),
    "fft": (32, 20),
    "sample_sort": (2400,),
    "heat3d": (11, 4),
    "pipeline": (7, 16, 5),
}
"""Arguments with which each program is quick."""
PEERS = [name for name in SMALL if (FOLDER / f"{name}_mpi4py.py").exists()]
PROGRAMS = pytest.mark.parametrize("name", SMALL)


def main_of(name):
    return importlib.import_module(f"bsplib.apps.gallery.{name}").main


def assert_alike(found, expected):
    """Results are the same but for the order of additions."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    elif isinstance(expected, bytes):
        assert found == expected
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_every_program_has_a_reference_and_is_tested():
    assert list(references.OF) == list(SMALL)
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "references"}
    assert files == {*SMALL, *(f"{name}_mpi4py" for name in PEERS), *MAPS}


def test_fourteen_programs_have_a_peer_in_mpi4py():
    assert len(PEERS) == 14


MAPS = ("map_files", "map_files_multiprocessing")
"""A loop over files by ``bsplib.map``, and by a pool of multiprocessing."""


@pytest.mark.lengthy
@pytest.mark.parametrize("name", MAPS)
def test_a_map_over_files_finds_the_words_of_each(name, tmp_path):
    for number in range(5):
        words = ["the"] * (number + 3) + ["a"] * (number + 2) + ["of"] * number + ["once"]
        (tmp_path / f"{number}.txt").write_text(" ".join(words))
    done = run_python("-m", f"bsplib.apps.gallery.{name}", tmp_path, check=True)
    assert done.stdout.splitlines()[2:] == [
        f"{number}.txt [('the', {number + 3}), ('a', {number + 2}), ('of', {number})]"
        for number in (2, 3, 4)
    ]


@PROGRAMS
def test_a_program_takes_20_to_80_lines(name):
    assert 20 <= len((FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 80


@PROGRAMS
@pytest.mark.parametrize(
    ("backend", "nprocs", "how"),
    [("shm", 1, {}), ("shm", 2, {}), ("shm", 3, {}), ("sim", 16, {}), ("sim", 4, {"check": True})],
)
def test_processes_compute_what_one_program_does(name, backend, nprocs, how, run_on):
    results = run_on(main_of(name), *SMALL[name], nprocs=nprocs, backend=backend, **how)
    assert_alike(results[0], references.OF[name](nprocs, *SMALL[name]))


@pytest.fixture(scope="module")
def backend(request):
    """An MPI, whose ranks stay for the next program."""
    with ranks_of(MPIS[request.param]) as name:
        yield name


@PROGRAMS
@pytest.mark.parametrize("nprocs", [3])
@pytest.mark.parametrize("backend", MPIS, indirect=True)
def test_ranks_of_an_mpi_compute_what_one_program_does(name, nprocs, backend):
    results = bsplib.run(main_of(name), *SMALL[name], nprocs=nprocs, backend=backend)
    assert_alike(results[0], references.OF[name](nprocs, *SMALL[name]))


# -- beside mpi4py ----------------------------------------------------------------------------

PEER = """
import importlib, pickle, sys
from mpi4py import MPI
given, wanted = sys.argv[1:]
results = {}
for name, args in pickle.load(open(given, "rb")).items():
    main = importlib.import_module(f"bsplib.apps.gallery.{name}_mpi4py").main
    results[name] = main(MPI.COMM_WORLD, *args)
if MPI.COMM_WORLD.rank == 0:
    pickle.dump(results, open(wanted, "wb"))
"""
"""Runs all programs, one after the other, and writes the results of rank 0."""


@pytest.fixture(
    scope="module",
    params=[MPICH, pytest.param(OPEN_MPI, marks=pytest.mark.slow)],
    ids=["mpich", "openmpi"],
)
def by_mpi4py(request, tmp_path_factory):
    """The results of all programs in mpi4py, on two ranks of an MPI."""
    mpi = request.param
    if not mpi.is_here():
        pytest.skip(f"{mpi.title} is not installed: pip install -e '.[dev]'")
    given, wanted = (tmp_path_factory.mktemp("peers") / name for name in ("given", "wanted"))
    small = (
        SMALL
        | {
            "word_count": (np.array(SMALL["word_count"][0]),),  # not in shared memory
            "farm": SMALL["farm"][:1],  # without slices of time
        }
    )
    given.write_bytes(pickle.dumps({name: small[name] for name in PEERS}))
    line = mpi.start(2, sys.executable, "-c", PEER, str(given), str(wanted))
    done = run_command(*line, env=mpi.whole_environment(2))
    assert done.returncode == 0, done.stderr
    return pickle.loads(wanted.read_bytes())


@pytest.mark.lengthy
@pytest.mark.parametrize("name", PEERS)
def test_the_same_program_in_mpi4py_computes_the_same(name, by_mpi4py, pools):
    assert_alike(by_mpi4py[name], pools(2).run(main_of(name), *SMALL[name])[0])


@pytest.mark.parametrize("name", PEERS)
def test_no_program_has_more_lines_of_code_than_the_same_in_mpi4py(name):
    ours, theirs = (
        lines_of_code((FOLDER / f"{name}{of}.py").read_text(encoding="utf-8"))
        for of in ("", "_mpi4py")
    )
    assert ours <= theirs
