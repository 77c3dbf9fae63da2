"""Whole programs give the result of a sequential one, whoever runs their processes."""

from __future__ import annotations

from pathlib import Path

import pytest

import bsplib
from benchmarks.cases import programs
from benchmarks.mpi import Ranks
from benchmarks.whole import versions
from benchmarks.whole.lines import lines_of_code
from benchmarks.whole.on_bsplib import whole_program
from tests.mpi_installations import OPEN_MPI

pytest.importorskip("scipy", reason="the programs need SciPy: pip install -e '.[bench]'")

SMALL = {
    "heat": {"size": 14, "steps": 9},
    "kmeans": {"points": 300, "dimensions": 3, "clusters": 4, "rounds": 7},
    "conjugate_gradients": {"width": 9, "time": 3.0},
    "pagerank": {"pages": 90, "links": 400, "site": 10, "leaving": 0.3},
    "sample_sort": {"records": 3000},
}


@pytest.fixture
def problem(program):
    yield versions.problem_of(program, SMALL[program])
    versions.forget(program)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "result"
    place.mkdir()
    return str(place)


def check(problem, folder):
    versions.check(problem, problem.reference(), folder)
    assert list(Path(folder).iterdir()) == []


@pytest.mark.parametrize("program", versions.PROGRAMS)
@pytest.mark.parametrize(("backend", "nprocs"), [("sim", 1), ("sim", 5), ("shm", 3)])
def test_ours_gives_the_result_of_the_sequential_program(program, problem, backend, nprocs, folder):
    arguments = (program, SMALL[program], folder)
    seconds = bsplib.run(whole_program, *arguments, nprocs=nprocs, backend=backend)
    assert min(seconds) > 0
    check(problem, folder)


@pytest.fixture(scope="module")
def ranks():
    if not OPEN_MPI.is_here():
        pytest.skip(f"{OPEN_MPI.title} is not installed: pip install -e '.[bench]'")
    with Ranks(OPEN_MPI, 3) as started:
        yield started


@pytest.mark.lengthy
@pytest.mark.parametrize("program", versions.PROGRAMS)
def test_mpi4py_gives_the_result_of_the_sequential_program(program, problem, ranks, folder):
    fields = SMALL[program]
    assert ranks.sample("whole_program", name=program, fields=fields, folder=folder) > 0
    check(problem, folder)


@pytest.mark.parametrize("program", versions.PROGRAMS)
def test_a_wrong_result_is_an_error(program, problem, folder):
    other = versions.problem_of(program, SMALL[program] | wrong(program))
    versions.keep(other.reference(), folder, 0)
    with pytest.raises(RuntimeError, match="differs from the reference"):
        versions.check(problem, problem.reference(), folder)


def wrong(program):
    """A size that gives another result of the same shape."""
    return {
        "heat": {"steps": 8},
        "kmeans": {"rounds": 1},
        "conjugate_gradients": {"time": 4.0},
        "pagerank": {"leaving": 0.5},
        "sample_sort": {"records": 2999},
    }[program]


def test_only_lines_with_code_count():
    text = (
        '"""What it is."""\n\nimport math  # why\n\ndef f(x):\n    """Say.\n\n    More.\n    """\n'
    )
    assert lines_of_code(text) == 2
    assert lines_of_code(text + "    # because\n    return math.sin(\n        x\n    )\n") == 5
    assert lines_of_code("x = '''one\ntwo'''\n") == 2


def test_every_program_is_measured():
    titles = [section.title for section in programs.SECTIONS]
    for program in versions.PROGRAMS:
        assert f"{versions.problem_of(program, {})}, p = 2" in titles
    for small in ("3600 unknowns", "sort of 20000 records"):
        assert sum(small in title for title in titles) == 1


@pytest.mark.lengthy
def test_several_runs_of_a_short_program_give_the_same_result(folder):
    problem = versions.problem_of("sample_sort", SMALL["sample_sort"])
    arguments = ("sample_sort", SMALL["sample_sort"], folder, 3)
    assert min(bsplib.run(whole_program, *arguments, nprocs=2, backend="sim")) > 0
    check(problem, folder)
