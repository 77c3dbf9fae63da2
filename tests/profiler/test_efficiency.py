"""The efficiencies of a run, and computation scaling between runs of a program."""

from __future__ import annotations

import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.compare.comparison import compare_runs
from bsplib.profiler.compare.report import as_data, print_comparison
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import print_report
from bsplib.profiler.report.document import document
from bsplib.recording.records import Trace
from tests.commands import printed_by

US = 1000


def test_efficiencies_multiply_and_show_who_is_slow(script):
    program = script(2)
    program.step("main", w=[10, 30])
    program.step("main", w=[50, 10], transfer=20)
    found = book_graph(build(program.run())).efficiencies
    assert found.parallel == pytest.approx(50 / 100)
    assert found.load_balance == pytest.approx(50 / 60)
    assert found.serialisation == pytest.approx(60 / 80)
    assert found.transfer == pytest.approx(80 / 100)
    assert found.communication == pytest.approx(found.serialisation * found.transfer)
    assert found.parallel == pytest.approx(found.load_balance * found.communication)


def computing(script, nprocs, each_us, *, stack="main relax", **meta):
    """A run whose processes compute equally long."""
    program = script(nprocs)
    program.step(stack, w=each_us * US)
    return program.run(meta=meta)


@pytest.fixture
def three(script):
    """The same work on 2 and 4 processes, twice, where 4 compute a quarter more in all."""
    return Profile(Trace(tuple(computing(script, p, us) for p, us in [(4, 50), (2, 80), (4, 50)])))


def test_a_comparison_tells_computation_scaling(script):
    comparison = compare_runs(computing(script, 1, 100), computing(script, 4, 50))
    sentence = (
        "computation scaling 50%, if both do the same work: 100 µs of useful computation in all "
        "on 1 process, 200 µs on 4."
    )
    assert sentence in printed_by(print_comparison, comparison, width=200).splitlines()
    assert as_data(comparison)["computation_scaling"] == pytest.approx(0.5)


@pytest.mark.lengthy
def test_a_report_of_several_runs_tells_it_of_all_but_the_one_with_the_fewest(three):
    text = printed_by(print_report, three.runs)
    assert text.count("computation scaling 80%") == text.count("computation scaling") == 2
    first, reference, last = document(three.runs)["runs"]
    assert reference["computation_scaling"] is None
    assert first["computation_scaling"] == last["computation_scaling"]
    assert first["computation_scaling"]["fraction"] == pytest.approx(0.8)
    (alone,) = document(three.runs[2:], among=three.runs)["runs"]
    assert alone["computation_scaling"] == last["computation_scaling"]


def test_runs_of_another_program_are_no_reference(script):
    runs = computing(script, 2, 80, stack="other"), computing(script, 4, 50)
    assert [run["computation_scaling"] for run in document(Profile(Trace(runs)).runs)["runs"]] == [
        None,
        None,
    ]
