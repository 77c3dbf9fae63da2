"""What the verdict says of real programs of mpi4py, each with one fault."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.costs import h_relation, superstep_numbers
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.kinds import FIXED
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind
from tests.mpi_installations import MPICH, OPEN_MPI
from tests.processes import run_command
from tests.record import same_algorithms
from tests.record.expected_faults import FAULTS, PROGRAM, is_possible, line_of
from tests.recordings import record_run

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(params=[MPICH, OPEN_MPI], ids=lambda mpi: mpi.distribution, scope="module")
def recorded(request, tmp_path_factory):
    """Return what records a program on each MPI and returns the run."""
    mpi = request.param
    if not mpi.is_here():
        pytest.skip(f"{mpi.name} and mpi4py are not installed here: pip install -e '.[dev]'")

    def recorded(nprocs, *program):
        out = tmp_path_factory.mktemp("recorded") / "out.bsp"
        ran = run_command(
            *mpi.start(nprocs, sys.executable, "-m", "bsplib", "record", str(out), *program),
            env=mpi.whole_environment(nprocs),
            cwd=ROOT,
        )
        assert ran.returncode == 0, ran.stderr
        return read_trace(out).runs[0]

    return recorded


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("nprocs", [2, 4])
def test_a_fault_is_named_with_its_line(recorded, fault, nprocs):
    if not is_possible(fault, nprocs):
        pytest.skip("of two processes one sends as much as the other one receives")
    expected = FAULTS[fault]
    # On a busy computer a sentence about what others do to it may come before.
    sentences = book_graph(build(recorded(nprocs, str(PROGRAM), fault))).verdict().sentences
    found = [each for each in sentences if (each.kind, each.pids) == (expected.kind, expected.pids)]
    line = line_of(fault)
    place = f"in {fault} (faults.py line {line} " if line else ""
    assert any(place in each.text and expected.word in each.text for each in found), sentences


def h_of_iterations(run):
    """Return the greatest h of each superstep that a function ``iterate...`` ended, in order."""
    steps = superstep_numbers(run)
    h = np.maximum(*h_relation(run))
    inside = [
        any(frame.function.startswith("iterate") for frame in run.stacks[stack])
        for stack in run.records["stack"].tolist()
    ]
    chosen = np.unique(steps[np.array(inside) & (run.records["kind"] != Kind.END)])
    return [int(h[steps == step].max()) for step in chosen.tolist()]


def stragglers(run):
    """Return kind and processes of the first sentence about computing that is uneven."""
    sentences = book_graph(build(run)).verdict().sentences
    return [(each.kind, each.pids) for each in sentences if each.part == "imbalance"][:1]


@pytest.mark.parametrize(("algorithm", "supersteps"), [("jacobi", 2), ("sort", 3)])
def test_an_algorithm_has_the_same_supersteps_h_and_verdict_on_mpi4py_and_bsplib(
    recorded, algorithm, supersteps, tmp_path
):
    """One of three recordings suffices for the verdict, since a busy computer disturbs them."""
    found = []
    for number in range(3):
        of_mpi = recorded(2, str(Path(same_algorithms.__file__)), algorithm)
        main = getattr(same_algorithms, f"{algorithm}_bsp")
        own = record_run(tmp_path / f"own-{number}.bsp", main, nprocs=2)
        assert h_of_iterations(of_mpi) == h_of_iterations(own)
        assert len(h_of_iterations(own)) == supersteps * same_algorithms.ROUNDS
        found.append((stragglers(of_mpi), stragglers(own)))
        if found[-1] == ([(FIXED, (1,))], [(FIXED, (1,))]):
            return
    pytest.fail(str(found))
