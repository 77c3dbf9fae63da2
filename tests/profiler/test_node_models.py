"""Node models: closed forms of supersteps and h from small runs, and what is refused."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import bsplib
from bsplib.errors import UsageError
from bsplib.machine import Machine
from bsplib.machine.measured import Curve, HRelation, Measured
from bsplib.profiler.models.nodes import (
    ModelError,
    fit_nodes,
    model_of_traces,
    predict_nodes,
    read_model,
    scaling,
    write_model,
)
from bsplib.profiler.models.nodes.document import document
from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.nodes.laws import EXACT, Law, Piece, Where
from bsplib.profiler.models.nodes.settle import at_a_bound, words
from bsplib.profiler.models.nodes.spread import Shares, added_terms, fit_shares
from bsplib.profiler.models.nodes.work import fit_work, supported
from bsplib.profiler.models.terms import counted_terms, library
from bsplib.recording.trace import read_trace
from bsplib.tools.cli import main as cli
from tests.made_runs import RunMaker, frame
from tests.undisturbed import undisturbed

SIZES, PROCESSES = (64, 256, 1024), (2, 4, 8, 16)
TERMS = ("chains", 0, "laws", "h", "pieces", 0, "forms", 0, "terms")


def gather(bsp, n):
    """Send everything to process 0, n/p numbers from each: h = 8 n (p - 1) / p."""
    if bsp.pid:
        bsp.send(0, np.zeros(n // bsp.nprocs))
    bsp.sync()


def recursion(bsp, n):
    """Send n/p numbers to a partner in each of log2(p) supersteps."""
    distance = 1
    while distance < bsp.nprocs:
        bsp.send(bsp.pid ^ distance, np.zeros(n // bsp.nprocs))
        bsp.sync()
        distance *= 2


def square(bsp, n):
    """Send p - 1 numbers to each other process: h = 8 (p - 1)^2."""
    for other in range(bsp.nprocs):
        if other != bsp.pid:
            bsp.send(other, np.zeros(bsp.nprocs - 1))
    bsp.sync()


def three(bsp, n):
    """Three kinds of h-relations, and twice a last superstep."""
    gather(bsp, n)
    recursion(bsp, n)
    square(bsp, n)
    for _ in range(2):
        bsp.sync()


def chosen(bsp, n):
    """Let the Machine choose the stages of a broadcast."""
    bsp.broadcast(np.zeros(n))


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Run on virtual processors, once at each size; return the run with its variables and seed."""
    folder = tmp_path_factory.mktemp("runs")
    recorded = {}

    def record_it(main, n, nprocs, *args, seed=(), **more):
        place = (main, n, nprocs, args, seed, str(sorted(more.items())))
        if place not in recorded:
            recorded[place] = record_anew(main, n, nprocs, *args, seed=seed, **more)
        return recorded[place], {"n": float(n)}, seed

    def record_anew(main, n, nprocs, *args, seed, **more):
        path = folder / "run.bsp"

        def run():
            path.unlink(missing_ok=True)
            bsplib.run(main, n, *args, nprocs=nprocs, backend="sim", profile=path, **more)

        undisturbed(run)
        return read_trace(path).runs[0]

    return record_it


def learnt(record, main, sizes=SIZES, processes=PROCESSES, **more):
    return fit_nodes([record(main, n, p, **more) for n in sizes for p in processes])


def laws(model, quantity):
    """The laws by the function that contains the cost centre."""
    return {
        model.nodes[each.chain[-2]].name: each.law(quantity).text
        for each in model.chains
        if model.nodes[each.chain[-1]].sync == "sync"
    }


def the_law(model, quantity):
    (law,) = laws(model, quantity).values()
    return law


@pytest.mark.lengthy
def test_supersteps_and_h_get_their_exact_forms(record):
    model = learnt(record, three)
    assert laws(model, "supersteps") == {
        "gather": "1",
        "recursion": "log2(p)",
        "square": "1",
        "three": "2",
    }
    assert laws(model, "h") == {
        "gather": "8*n*(p - 1)/p",
        "recursion": "8*n*log2(p)/p",
        "square": "8*(p - 1)**2",
        "three": "0",
    }


@pytest.mark.lengthy
def test_exact_forms_give_the_values_of_a_run_that_was_not_fitted(record):
    model = learnt(record, three)
    large, values, _ = record(three, 4096, 64)
    there = learnt_from([(large, values, ())])
    point = {"n": 4096.0, "p": 64.0}
    for leaf, chains in model.leaves().items():
        for quantity in ("supersteps", "h"):
            expected = there.values(there.leaves()[leaf], quantity, point).value
            assert model.values(chains, quantity, point).value == expected


def learnt_from(runs):
    return fit_nodes(runs)


@pytest.mark.lengthy
def test_processes_that_are_no_powers_of_two_get_rounded_forms(record):
    def main(bsp, n):
        for _ in range((bsp.nprocs - 1).bit_length()):
            bsp.sync()

    model = learnt(record, main, processes=(2, 3, 5, 8, 9))
    (chains,) = [
        chains for leaf, chains in model.leaves().items() if model.nodes[leaf].sync == "sync"
    ]
    assert model.values(chains, "supersteps", {"n": 64.0, "p": 100.0}).value == 7


@pytest.mark.lengthy
def test_what_two_numbers_of_processes_do_not_tell_apart_is_open_with_the_run_that_would(record):
    def main(bsp, n):
        for _ in range(bsp.nprocs - 1):  # 1 and 3 supersteps: also log2(p) (log2(p) + 1) / 2
            bsp.sync()

    model = learnt(record, main, processes=(2, 4))
    (found,) = (found for found in model.refused().values() if found[0][0] == "supersteps")
    quantity, law = found[0]
    assert quantity == "supersteps"
    assert "(p - 1)" in law.why
    assert "log2(p)*(log2(p) + 1)/2" in law.why
    assert words(law.settle) == "n = 64, p = 8"
    settled = learnt(record, main, processes=(2, 4, 8))
    assert the_law(settled, "supersteps") == "(p - 1)"


@pytest.mark.lengthy
def test_a_form_that_no_run_tests_is_refused_with_runs_that_would(record):
    def main(bsp, n):
        for _ in range({64: 3, 256: 7, 1024: 8}[n]):
            bsp.sync()

    model = learnt(record, main)
    ((leaf, found),) = model.refused().items()
    quantity, law = found[0]
    assert (quantity, law.kind) == ("supersteps", "refused")
    assert {point["n"] for point in law.settle} == {128.0, 512.0}
    value = model.values(model.leaves()[leaf], "supersteps", {"n": 4096.0, "p": 8.0})
    assert not value.is_known
    machine = Machine("here", "made up", g=1e-9, l=1e-6)
    prediction = predict_nodes(model, 8, {"n": 4096}, machine, speed="1x")
    assert set(prediction.refused) == {leaf}
    assert re.search(r"\n *8 +at least ", str(prediction))


@pytest.mark.lengthy
def test_the_runs_that_would_settle_the_levels_of_a_network_do_settle_them(record):
    def main(bsp, n):
        levels = n.bit_length() - 1
        for _ in range(levels * (levels + 1) // 2 - 2):
            bsp.sync()

    few = learnt(record, main, processes=(2, 4, 8))
    ((_, law),) = next(iter(few.refused().values()))
    further = {int(point["n"]) for point in law.settle}
    model = learnt(record, main, sizes=(*SIZES, *further), processes=(2, 4, 8))
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    assert model.values([each], "supersteps", {"n": 4096.0, "p": 64.0}).value == 12 * 13 / 2 - 2


@pytest.mark.lengthy
def test_on_another_machine_a_broadcast_has_the_stages_that_pay_there(record):
    machine = Machine("made up", "by hand", g=1e-9, l=8e-6)
    slow = Machine("slow to sync", "by hand", g=1e-9, l=8e-2)  # two where 8 n (p - 2) > 8e7
    model = learnt(record, chosen, sizes=(16, 64, 256, 1024), machine=machine)
    for there, supersteps in ((machine, 2), (slow, 1)):
        prediction = predict_nodes(model, 64, {"n": 4096}, there, speed="1x")
        assert prediction.total.sync_s == supersteps * there.l
    far = predict_nodes(model, 64, {"n": 2**20}, slow, speed="1x")
    assert far.total.sync_s == 2 * slow.l


PROGRAM = """
def main(bsp, n):
    while True:
        bsp.sync()
        if n * bsp.nprocs < 32768:
            return bsp.allgather(1.0)
        bsp.{missing}(n)
        n //= 2
"""


@pytest.fixture
def program(tmp_path):
    """A main whose loop calls another method of the group where n p is large."""

    def write(missing):
        path = tmp_path / "rounds.py"
        path.write_text(PROGRAM.format(missing=missing), encoding="utf-8")
        names = {}
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
        return names["main"]

    return write


def of_line(model, line):
    (chains,) = (
        chains
        for leaf, chains in model.leaves().items()
        if f"line {line}" in model.nodes[leaf].name
    )
    return chains


@pytest.mark.lengthy
def test_beyond_the_runs_a_loop_in_which_no_run_came_to_some_communication_is_refused(
    record, program, tmp_path
):
    model = learnt(record, program("allreduce"), processes=(2, 4, 8))
    write_model(model, tmp_path / "model.json")
    for known in (model, read_model(tmp_path / "model.json")):
        for line in (4, 6):
            for quantity in ("supersteps", "h"):
                within = known.values(of_line(known, line), quantity, {"n": 512.0, "p": 8.0})
                assert within.is_known
                beyond = known.values(of_line(known, line), quantity, {"n": 4096.0, "p": 16.0})
                assert "rounds.py line 7 communicates in the same loop" in beyond.why
                assert words(beyond.settle) == "n = 4096, p = 32"
        text = " ".join(str(known).split())
        assert "Refused beyond the runs: supersteps of rounds.py line 4: rounds.py line 7" in text


@pytest.mark.lengthy
def test_a_loop_whose_other_calls_do_not_communicate_keeps_its_laws(record, program):
    model = learnt(record, program("charge"), sizes=(64, 256), processes=(2, 4, 8))
    point = {"n": 4096.0, "p": 64.0}
    assert model.values(of_line(model, 4), "supersteps", point).value == 1


def test_a_program_that_has_changed_since_the_runs_says_nothing_of_its_loops(
    record, program, tmp_path
):
    main = program("allreduce")
    runs = [record(main, n, p) for n in (64, 256) for p in (2, 4, 8)]
    with (tmp_path / "rounds.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert not fit_nodes(runs).refused()


def test_between_the_runs_on_both_sides_of_a_bound_both_forms_make_the_band():
    between = ({"n": 128.0, "p": 2.0},)
    bound = [Where("n", 64.0, 256.0, above=above) for above in (False, True)]
    forms = [Form((Fraction(number),), ("n",), rounded=True) for number in (1, 3)]
    pieces = tuple(Piece((f,), (w,)) for f, w in zip(forms, bound, strict=True))
    law = Law(EXACT, pieces, settle=between)
    assert law.at({"n": 64.0, "p": 2.0})[:3] == (64, 64, 64)
    assert law.at({"n": 64.0, "p": 2.0}).settle == ()
    assert law.at({"n": 100.0, "p": 2.0})[:3] == (100, 100, 300)
    assert law.at({"n": 100.0, "p": 2.0}).settle == between
    assert law.at({"n": 256.0, "p": 2.0})[:3] == (768, 768, 768)


@pytest.mark.lengthy
def test_where_processes_do_not_share_a_size_evenly_whole_shares_make_the_band(record):
    model = learnt(record, gather)
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    assert model.values([each], "h", {"n": 4096.0, "p": 32.0})[:3] == (8 * 4096 * 31 / 32,) * 3
    uneven = model.values([each], "h", {"n": 4100.0, "p": 32.0})
    assert (uneven.low, uneven.high) == (8 * 31 * 128, 8 * 31 * 129)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("sizes", "processes"), [((64, 256), (2, 4, 8)), (SIZES, PROCESSES)], ids=["few", "more"]
)
def test_neighbours_in_a_row_exchange_less_where_both_are_at_an_end(record, sizes, processes):
    def main(bsp, n):
        for other in {bsp.pid - 1, bsp.pid + 1} & set(range(bsp.nprocs)):
            bsp.send(other, np.zeros(1))
        bsp.sync()

    model = learnt(record, main, sizes=sizes, processes=processes)
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    assert model.values([each], "h", {"n": 4096.0, "p": 64.0}).value == 16


def test_a_run_that_tells_the_quantities_of_a_bound_apart_is_named():
    values = {"n": np.array([64.0, 256.0, 64.0, 256.0]), "p": np.array([2.0, 2.0, 8.0, 8.0])}
    bounds = [Where("n", 64.0, 256.0, above=True), Where("n*p", 512.0, 513.0, above=True)]
    between, apart = at_a_bound(bounds, values)
    assert between == {"n": 96.0, "p": 2.0}
    assert {where.holds(apart) for where in bounds} == {True, False}


def test_one_number_of_processes_says_nothing_of_others(record):
    model = learnt(record, gather, processes=(4,))
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    assert model.values([each], "h", {"n": 4096.0, "p": 4.0}).value == 8 * 4096 * 3 / 4
    elsewhere = model.values([each], "h", {"n": 4096.0, "p": 8.0})
    assert elsewhere.why == "p is 4 in all runs; what depends on it is not known"


@pytest.mark.lengthy
@pytest.mark.parametrize("processes", [PROCESSES, (1, *PROCESSES)])
def test_data_give_a_form_with_a_band_that_holds_the_truth(record, processes):
    """One process alone sends nothing, which does not hide what several send."""

    def main(bsp, n, seed):
        own = np.random.default_rng([seed, bsp.pid]).integers(0, bsp.nprocs, n // bsp.nprocs)
        for other, count in enumerate(np.bincount(own, minlength=bsp.nprocs)):
            if other != bsp.pid:
                bsp.send(other, np.zeros(count))
        bsp.sync()

    sizes, seeds = (4096, 16384, 65536), (1, 2, 3)
    runs = [record(main, n, p, s, seed=(s,)) for n in sizes for p in processes for s in seeds]
    model = fit_nodes(runs)
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    law = each.law("h")
    assert law.kind == "fitted"
    point = {"n": 262144.0, "p": 32.0}
    value = model.values([each], "h", point)
    there = fit_nodes([record(main, 262144, 32, 7, seed=(7,))])
    (other,) = [each for each in there.chains if there.nodes[each.chain[-1]].sync == "sync"]
    truth = there.values([other], "h", point).value
    assert value.low < truth < value.high
    assert value.value == pytest.approx(truth, rel=0.05)
    if 1 in processes:
        assert model.values([each], "h", {"n": 262144.0, "p": 1.0}).value == 0


@pytest.mark.lengthy
def test_zeros_among_the_runs_of_several_processes_are_not_explained(record):
    def main(bsp, n, seed):
        if not bsp.pid and seed % 2 and n > 64:
            bsp.send(1, np.zeros(n + seed))
        bsp.sync()

    runs = [record(main, n, p, s, seed=(s,)) for n in SIZES for p in (2, 4) for s in (1, 2, 3)]
    model = fit_nodes(runs)
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    assert each.law("h").kind == "refused"


def shares_of(deviation, points, seeds=3):
    """H-relation and shares of processes: normally distributed around n / p, at some points."""
    random = np.random.default_rng(1)
    greatest, mean, width, off = [], [], [], []
    for n, p in points:
        rows = random.normal(0, deviation(n, p), (seeds, p))
        rows += 8 * n / p - rows.mean(axis=1, keepdims=True)
        most = rows.max(axis=1)
        greatest.append(most.mean())
        off.append(most.std(ddof=1) / most.mean())
        mean.append(rows.mean())
        width.append(np.sqrt(rows.var(axis=1, ddof=1).mean()))
    columns = (np.array(column) for column in (greatest, off, mean, width))
    greatest, off, mean, width = columns
    return greatest, off, Shares(mean, width, seeds)


def fitted_shares(deviation):
    points = [(float(n), float(p)) for n in (4096, 16384, 65536) for p in PROCESSES]
    n, p = np.array(points).T
    terms = counted_terms(["n"], with_processes=True)
    found = shares_of(deviation, np.array(points, int))
    return fit_shares({"n": n, "p": p}, *found, terms, added_terms(["n"], with_processes=True))


@pytest.mark.parametrize(
    ("deviation", "term"),
    [
        (lambda n, p: 2 * n / p**1.5, "n/p**1.5*log2(p)**0.75"),
        (lambda n, p: 8 * np.sqrt(n / p), "sqrt(n/p)*log2(p)**0.75"),
        (lambda n, p: 2 * np.sqrt(n), "sqrt(n)*log2(p)**0.75"),
    ],
)
def test_of_data_that_chance_divides_the_greatest_share_follows_from_those_of_all(deviation, term):
    law = fitted_shares(deviation)
    assert law.form.terms == ("n/p", term)
    assert law.form.coefficients[0] == 8
    (truth,), _, _ = shares_of(deviation, [(2**20, 256)], seeds=30)
    there = law.form.at({"n": np.array([2.0**20]), "p": np.array([256.0])})[0]
    assert there == pytest.approx(truth, rel=0.05)


def test_shares_whose_deviation_grows_as_none_of_those_of_chance_have_no_such_law():
    assert fitted_shares(lambda n, p: 3 * n**0.7 / p**0.2) is None


@pytest.mark.lengthy
def test_repeats_count_with_their_median_computation(record):
    def main(bsp, n, slow):
        bsp.charge(3e-3 if slow == bsp.pid else 1e-3 - 1e-4 * slow)
        bsp.sync()

    model = fit_nodes([record(main, n, 2, slow) for n in (1, 2, 3, 4) for slow in (0, 2, 3)])
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    assert model.runs == 12
    assert model.values([each], "comp", {"n": 2.0, "p": 2.0}).value == pytest.approx(8e-4, rel=1e-6)


def test_a_core_lost_in_a_primitive_makes_no_computation_shorter():
    """2 ms of computation, 1 ms in primitives; in each run one of them waits 50 ms for a core."""

    def run(n, spent_ms, calls_ms):
        maker = RunMaker(1)
        maker.step((frame("main", 1, 2),), spent_ms * n / 1e3, calls_ms * n / 1e3)
        made = maker.run()
        made.records["comp_cpu"] = round(3e6 * n)
        return made, {"n": float(n)}, ()

    runs = [run(n, *times) for n in (1, 2, 3, 4) for times in ((2, 51), (2, 51), (52, 1))]
    model = fit_nodes(runs)
    (each,) = [each for each in model.chains if model.nodes[each.chain[-1]].sync == "sync"]
    value = model.values([each], "comp", {"n": 2.0, "p": 1.0}).value
    assert value == pytest.approx(4e-3, rel=1e-3)


@pytest.mark.lengthy
def test_a_probed_machine_prices_each_cost_centre_by_its_pattern_and_processes(record, tmp_path):
    def entry(p):
        curves = {
            pattern: Curve((0, 8192), (1e-5 * p, seconds * p))
            for pattern, seconds in (("all-to-one", 5e-4), ("exchange", 1e-4), ("all-to-all", 3e-4))
        }
        return Measured(p, 1e-5 * p, call=1.0, patterns=curves)

    machine = Machine("probed", "by hand", g=1.0, l=1.0, measured=(entry(2), entry(8)))
    write_model(learnt(record, three), tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    patterns = {model.nodes[each.chain[-2]].name: each.pattern for each in model.chains[:3]}
    assert patterns == {"gather": "all-to-one", "recursion": "exchange", "square": "all-to-all"}
    prediction = predict_nodes(model, 8, {"n": 4096}, machine, speed="1x")
    times = {model.nodes[node].name: each for node, each in prediction.nodes.items()}
    for name, h, pattern, supersteps in (
        ("gather", 8 * 4096 * 7 / 8, "all-to-one", 1),
        ("recursion", 8 * 4096 / 8, "exchange", 3),
        ("square", 8 * 49, "all-to-all", 1),
    ):
        transfer_s, sync_s = machine.parts_of(HRelation(h, 1), pattern, 8)
        assert times[name].comm_s == pytest.approx(supersteps * transfer_s)
        assert times[name].sync_s == pytest.approx(supersteps * sync_s)


@pytest.mark.lengthy
def test_with_runs_too_few_for_a_trial_the_band_widens_with_the_distance_and_says_so(record):
    def main(bsp, n):
        bsp.charge(1e-9 * n * (1.02 if n == 128 else 1))
        bsp.sync()

    model = fit_nodes([record(main, n, 2) for n in (64, 128, 256, 512)])
    machine = Machine("made up", "by hand", g=0.0, l=0.0)
    near, far = (predict_nodes(model, 2, {"n": n}, machine, speed="1x") for n in (512, 4096))
    assert near.high_s < 1.1 * near.total.total_s
    assert far.high_s == pytest.approx(far.total.total_s * np.e, rel=0.05)
    assert "the runs are too few to try this band" in str(far)


@pytest.mark.parametrize(
    ("grown", "term", "is_used"),
    [
        (lambda n: 1e-3 + 1e-9 * n, "n**2", False),
        (lambda n: 1e-3 + 1e-9 * n, "n*log2(n)", True),
        (lambda n: 1e-5 + 1e-12 * n**2, "n**2", True),
        (lambda n: 1e-5 + 1e-12 * n**2, "n**3", False),
        (lambda n: 1e-16 * n**3, "n**3", True),
    ],
)
def test_a_power_is_used_only_where_the_largest_runs_show_it(grown, term, is_used):
    n = np.array([2.0**15, 2.0**16, 2.0**17, 2.0**18])
    terms = supported(library({"n": n}, None), {"n": n}, grown(n))
    assert (term in [each.text for each in terms]) is is_used


def test_a_jump_of_the_times_of_many_runs_is_not_continued_as_a_power():
    """The largest parts outgrow a cache, which costs a third more."""
    places = [(n, p) for n in 20000.0 * 2 ** np.arange(5) for p in (1.0, 2.0, 4.0)]
    n, p = np.array(places).T
    seconds = (1e-3 + 4.5e-8 * n / p) * np.where(n / p > 150000, 1.35, 1)
    values = {"n": n, "p": p}
    law = fit_work(values, seconds, values)
    expected = 1.35 * (1e-3 + 4.5e-8 * 2e6)
    assert law.at({"n": 4e6, "p": 2.0}).value == pytest.approx(expected, rel=0.1)


def test_one_process_alone_may_compute_by_another_formula_than_several():
    places = [(n, p) for n in 20000.0 * 2 ** np.arange(5) for p in (1.0, 2.0, 4.0, 8.0)]
    n, p = np.array(places).T
    values = {"n": n, "p": p}
    law = fit_work(values, np.where(p > 1, 4e-8 * n / p, 1e-11 * n**2), values)
    assert law.at({"n": 1e5, "p": 1.0}).value == pytest.approx(0.1, rel=0.1)
    assert law.at({"n": 1e5, "p": 4.0}).value == pytest.approx(1e-3, rel=0.1)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("recorded_on", "slower"),
    [("shm", {1: 1, 2: 1, 3: 1.5, 6: 3}), ("sim", {1: 1, 2: 1.2, 3: 1.7, 6: 3.3})],
)
def test_on_the_host_of_the_runs_processes_beyond_its_cores_share_them(record, recorded_on, slower):
    """No speed has to be given; one that is given counts alone."""
    model = learnt(record, gather)
    recorded = {**model.meta["machine"], "speed": None}
    model = replace(model, meta={"machine": recorded, "backend": recorded_on, "host": "h"})
    entries = tuple(Measured(p, empty=0.0, slowdown=s) for p, s in ((1, 1.0), (2, 1.2), (4, 2.2)))
    machine = Machine("h", "by hand", g=0.0, l=0.0, measured=entries, host="h", cores=2)
    for p, factor in slower.items():
        alone, there = (
            predict_nodes(model, p, {"n": 4096}, machine, speed=speed) for speed in ("1x", None)
        )
        assert there.total.comp_s == pytest.approx(factor * alone.total.comp_s)
        said = f"computation takes {factor:.3g} times as long as recorded" in str(there)
        assert said == (factor != 1)
        assert (f"assumed: {p} processes share 2 cores: " in str(there)) == (p > 2)


def test_a_model_keeps_the_host_that_all_its_runs_have(record):
    here, there = record(gather, 64, 2), record(gather, 128, 2)
    assert fit_nodes([here, there]).meta["host"] == platform.node()
    run, *at = there
    elsewhere = replace(run, meta={**run.meta, "host": "elsewhere"})
    assert fit_nodes([here, (elsewhere, *at)]).meta["host"] is None


def test_a_prediction_says_where_arrays_get_huge_pages_that_they_had_in_no_run(record):
    model = learnt(record, gather)
    real = replace(model, meta={**model.meta, "backend": "shm"})
    machine = Machine("made up", "by hand", g=1e-9, l=1e-6)
    said = {
        (name, n): "numpy uses huge pages"
        in str(predict_nodes(of, 2, {"n": n}, machine, speed="1x"))
        for name, of in (("real", real), ("simulated", model))
        for n in (2**19, 2**20)  # of which process 1 sends half, 8 bytes each
    }
    assert said == {
        ("real", 2**19): False,
        ("real", 2**20): True,
        ("simulated", 2**19): False,
        ("simulated", 2**20): False,
    }


@pytest.mark.lengthy
def test_a_superstep_that_ends_at_two_places_counts_once_in_the_time(record):
    def main(bsp, n):
        if bsp.pid:
            bsp.sync()
        else:
            bsp.sync()

    model = learnt(record, main)
    machine = Machine("made up", "by hand", g=0.0, l=1.0)
    prediction = predict_nodes(model, 64, {"n": 64}, machine, speed="1x")
    assert prediction.total.sync_s == 1
    shown = [each.law("supersteps").text for each in model.chains]
    assert shown.count("1") == 2


def worker(bsp, n):
    bsp.charge(1e-9 * n / bsp.nprocs)
    bsp.sync()
    collect(bsp)


def collect(bsp):
    if bsp.pid:
        bsp.send(0, np.zeros(8))
    bsp.sync()


@pytest.mark.lengthy
def test_a_prediction_adds_up_and_names_the_cause_of_the_roll_off(record):
    model = learnt(record, worker, sizes=(2**16, 2**18, 2**20))
    machine = Machine("made up", "by hand", g=1e-9, l=1e-6)
    prediction = predict_nodes(model, 128, {"n": 2**24}, machine, speed="1x")
    comp, transfer = 1e-9 * 2**24 / 128, 64 * 127 * 1e-9
    assert prediction.total.total_s == pytest.approx(comp + transfer + 2e-6, rel=1e-6)
    leaves = model.leaves()
    whole = sum(prediction.nodes[leaf].total_s for leaf in leaves)
    assert whole == pytest.approx(prediction.total.total_s, rel=1e-12)
    found = scaling(prediction)
    assert found.roll_off == pytest.approx(np.sqrt(2**24 / 64), rel=0.05)  # where the sum is least
    assert model.nodes[prediction.critical_path[1]].kind == "cost_centre"
    assert found.cause is not None
    caller = next(each.chain[-2] for each in model.chains if each.chain[-1] == found.cause)
    assert model.nodes[caller].name == "collect"
    assert f"more than {found.roll_off} processes no longer help" in str(prediction)


def test_a_machine_without_a_figure_asks_for_it(record):
    model = learnt(record, gather)
    machine = Machine("made up", "by hand", g=1e-9, l=None)
    with pytest.raises(UsageError, match="made up has no l"):
        predict_nodes(model, 64, {"n": 64}, machine, speed="1x")
    with pytest.raises(UsageError, match="n has no value; give one as in --at n="):
        predict_nodes(model, 64)
    with pytest.raises(UsageError, match="there is no variable m; the variables are: n"):
        predict_nodes(model, 64, {"m": 3})


# -- the file -------------------------------------------------------------------------------------


def test_a_model_that_was_written_is_read_again(record, tmp_path):
    model = learnt(record, three)
    write_model(model, tmp_path / "model.json")
    assert read_model(tmp_path / "model.json") == model


PIECE = {"forms": [{"terms": [["1", "1"]], "rounded": True, "weight": 1}], "where": []}
"""A piece of a law, in a file, that holds everywhere."""


@pytest.fixture(scope="module")
def gathered(record):
    """Return the text of the file of a model."""
    return json.dumps(document(learnt(record, gather, processes=(2, 4))))


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (("format",), "other", "its format is not"),
        (("version",), 2, "it has version 2, and this program reads version 1"),
        (("runs",), -1, "runs is no number of runs"),
        (("chains",), [], "it has no chains"),
        (("chains", 0, "nodes"), [0, 99], "a chain has nodes that do not exist"),
        (("chains", 0, "laws", "h", "kind"), "guessed", "a law has no such kind"),
        (("chains", 0, "laws", "h", "reach"), [1], "a reach is not complete"),
        (("chains", 0, "laws", "h", "pieces"), [PIECE, PIECE], "one does not say where it holds"),
        (("variables", "p"), {"values": []}, "the variables have not as many values each"),
        (("variables", "n", "values", 0), 1e999, "is no JSON"),
        (("nodes", 0, 0), "<script>", "an id is wrong"),
        (
            ("chains", 0, "laws", "h", "pieces", 0, "forms", 0, "terms"),
            [["1e999", "n"]],
            "is no fraction",
        ),
        (
            ("chains", 0, "laws", "h", "pieces", 0, "forms", 0, "terms"),
            [["1", "__import__('os')"]],
            "is not allowed",
        ),
        (
            ("chains", 0, "laws", "h", "pieces", 0, "forms", 0, "terms"),
            [["1", "q"]],
            "q has no value",
        ),
    ],
)
def test_a_file_that_is_no_model_gets_a_sentence(gathered, tmp_path, place, value, text):
    found = json.loads(gathered)
    inside = found
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    path = tmp_path / "model.json"
    path.write_text(json.dumps(found))
    with pytest.raises(ModelError, match=text.replace("(", r"\(")) as error:
        read_model(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"\xff\xfe", b"12", b'{"format": 1}'])
def test_a_file_that_is_no_document_gets_a_sentence(tmp_path, content):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="is no node model"):
        read_model(path)


# -- traces ---------------------------------------------------------------------------------------


def traces(tmp_path, main, sizes=SIZES, processes=PROCESSES):
    paths = []
    for n in sizes:
        for p in processes:
            paths.append(tmp_path / f"run-{n}-{p}.bsp")
            bsplib.run(main, n, nprocs=p, backend="sim", profile=paths[-1])
    return paths


@pytest.mark.lengthy
def test_the_arguments_of_main_are_the_variables(tmp_path):
    model = model_of_traces(traces(tmp_path, gather))
    assert model.variables == ["n"]
    assert the_law(model, "h") == "8*n*(p - 1)/p"


@pytest.mark.lengthy
def test_a_variable_may_have_another_name(tmp_path):
    model = model_of_traces(traces(tmp_path, gather), sizes=["m"])
    assert the_law(model, "h") == "8*m*(p - 1)/p"
    assert "m = 64, 256, 1024 (n of the program)" in str(model)


@pytest.mark.lengthy
def test_values_that_traces_do_not_have_can_be_given(tmp_path):
    paths = traces(tmp_path, gather)
    settings = [(f"run-{n}-*", {"words": 2.0 * n}) for n in SIZES]
    model = model_of_traces(paths, sizes=["words"], settings=settings)
    assert the_law(model, "h") == "4*words*(p - 1)/p"


def test_a_variable_without_a_value_is_asked_for(tmp_path):
    with pytest.raises(UsageError, match="not every trace has a number k among its arguments"):
        model_of_traces(traces(tmp_path, gather, (64,)), sizes=["k"])


def test_runs_of_different_programs_are_refused(tmp_path):
    paths = traces(tmp_path, gather, (64,), (2,)) + traces(tmp_path, square, (128,), (2,))
    with pytest.raises(UsageError, match="the runs are of different programs"):
        model_of_traces(paths)


def test_functions_of_one_name_in_different_files_are_different_programs(tmp_path):
    paths = []
    for file in ("heat.py", "words.py"):
        (tmp_path / file).write_text("def main(bsp, n):\n    bsp.sync()\n", encoding="utf-8")
        names = {}
        exec(compile((tmp_path / file).read_text(encoding="utf-8"), tmp_path / file, "exec"), names)
        paths.append(tmp_path / f"{file}.bsp")
        bsplib.run(names["main"], 1, nprocs=2, backend="sim", profile=paths[-1])
    text = "main of heat.py in heat.py.bsp and main of words.py in words.py.bsp"
    with pytest.raises(UsageError, match=text):
        model_of_traces(paths)


def test_values_for_a_name_that_no_trace_has_are_refused(tmp_path):
    text = r"no trace has a name such as sun-\*, .*; the first trace is run-64-2.bsp"
    with pytest.raises(UsageError, match=text):
        model_of_traces(traces(tmp_path, gather, (64,), (2,)), settings=[("sun-*", {"m": 4.0})])


# -- the commands ---------------------------------------------------------------------------------


def bsp(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.mark.lengthy
def test_the_commands_learn_a_model_and_predict_by_it(tmp_path):
    model = tmp_path / "model.json"
    found = bsp("fit", *traces(tmp_path, gather), "--out", model, "--at", "n=4096,p=64")
    assert found.exit_code == 0
    assert "8*n*(p - 1)/p" in found.output
    assert f"{8 * 4096 * 63 // 64:,}" in found.output
    found = bsp("predict", "--fit", model, "-n", 64, "--at", "n=2^20", "--speed", "1x", "--l", 1e-5)
    assert found.exit_code == 0
    assert "n = 2^20, p = 64" in found.output


@pytest.mark.lengthy
def test_files_of_the_wrong_kind_are_named_with_the_command_for_them(tmp_path):
    paths = traces(tmp_path, gather, (64, 256), (2, 4))
    assert bsp("fit", *paths, "--out", tmp_path / "model.json").exit_code == 0
    assert "it is a trace; make a model" in bsp("predict", "--fit", paths[0], "-n", 4).output
    assert "is a model that bsp fit wrote" in bsp("fit", tmp_path / "model.json").output
    point = bsp("fit", *paths, "--at", "n=2^20").output
    assert "--at needs a value of p, too, as in --at n=512,p=8" in point
    free = bsp("predict", "--fit", tmp_path / "model.json", "-n", 4, "--at", "n=512").output
    assert "communication takes no time on this Machine; --machine names another one" in free


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["fit", "one.bsp", "--formula", "f[0]"], "--formula is for tables of times"),
        (["fit", "one.csv", "two.csv"], "several files and --set are for traces"),
        (["predict"], "name a trace, or a model by --fit"),
        (["predict", "one.bsp", "-n", "4"], "--nprocs, --at, --plot and --force need --fit"),
        (["predict", "--fit", "m.json"], "--fit needs the number of processes"),
        (["predict", "one.bsp", "--fit", "m.json", "-n", "4"], "--fit takes no trace"),
        (["predict", "--fit", "m.json", "-n", "4"], "m.json cannot be read: No such file"),
    ],
)
def test_options_that_do_not_go_together_get_a_sentence(options, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = bsp(*options)
    assert found.exit_code != 0
    assert text in found.output
