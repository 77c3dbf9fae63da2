"""A sentence names the line, or the lines, between which its seconds are lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import FITTED, Rates
from bsplib.recording.records import Doing, Frame, Lifetime
from tests.scripted import sampled

FREE = Rates(g=0.0, l=0.0)
AS_MEASURED = replace(FREE, source=FITTED)
MAIN = Frame("/home/app.py", "main", 1, 5)
PREPARE = Frame("/home/app.py", "prepare", 20, 21)
BUSY = Frame("/home/tools.py", "busy", 3, 4)
ALIKE = Frame("/home/app.py", "main", 1, 9)


def first(run):
    return book_graph(build(run), FREE).verdict().sentences[0].text


def uneven(script):
    """Ten supersteps in which process 0 computes long."""
    program = script(2)
    for _ in range(10):
        program.step("main exchange", w=[100, 10])
    return program.run()


def test_a_function_that_never_syncs_is_named_with_its_line_by_samples(script):
    slow = [(0, number, (MAIN, PREPARE, BUSY), Doing.COMPUTING) for number in range(10)]
    assert (
        "in exchange (app.py line 12), computed at line 4 of busy (tools.py), by process 0 in 10 "
        "supersteps (fixed straggler); shared evenly"
    ) in first(sampled(uneven(script), *slow))


def test_what_all_processes_compute_alike_is_no_cause(script):
    alike = [
        (pid, number, (ALIKE,), Doing.COMPUTING)
        for pid in range(2)
        for number in range(10)
        for _ in range(5)
    ]
    slow = [(0, number, (MAIN, PREPARE), Doing.COMPUTING) for number in range(10)]
    text = first(sampled(uneven(script), *alike, *slow))
    assert "computed at line 21 of prepare (app.py), by process 0" in text


def test_a_line_that_others_execute_as_well_is_told_by_the_one_that_calls_it(script):
    """Both processes call ``busy``, and process 0 does so at another line, for longer."""
    alike = [
        (pid, number, (ALIKE, BUSY), Doing.COMPUTING)
        for pid in range(2)
        for number in range(10)
        for _ in range(2)
    ]
    slow = [(0, number, (MAIN, BUSY), Doing.COMPUTING) for number in range(10) for _ in range(5)]
    text = first(sampled(uneven(script), *alike, *slow))
    assert "computed at line 5 of main (app.py), by process 0" in text


def test_frames_of_packages_count_for_the_line_that_called_them(script):
    package = Frame("/usr/lib/python3/dist-packages/lib.py", "inner", 1, 2)
    slow = [(0, number, (MAIN, package), Doing.COMPUTING) for number in range(10)]
    assert "computed at line 5 of main (app.py), by" in first(sampled(uneven(script), *slow))


def test_a_program_that_is_installed_has_lines_of_its_package_only(script):
    site = "/usr/lib/python3.11/site-packages"
    main = Frame(f"{site}/flow/app.py", "main", 1, 5)
    busy = Frame(f"{site}/flow/steps/busy.py", "busy", 3, 4)
    other = Frame(f"{site}/flowers/lib.py", "inner", 1, 2)
    slow = [(0, number, (main, busy, other), Doing.COMPUTING) for number in range(10)]
    text = first(sampled(uneven(script), *slow))
    assert "computed at line 4 of busy (busy.py), by process 0" in text


def test_time_in_the_system_could_be_saved_at_its_line(script):
    program = script(2)
    for _ in range(10):
        program.step("main exchange", w=[100, 100])
    both = [
        (pid, number, (MAIN, PREPARE), Doing.COMPUTING) for pid in range(2) for number in range(10)
    ]
    (sentence,) = book_graph(build(sampled(program.run(), *both, system_ns=60)), FREE).verdict()[1]
    assert (sentence.kind, sentence.ns, sentence.is_lost) == ("time in the system", 1200, False)
    assert sentence.text == (
        "600 ns of 1.00 µs (60%) could be saved in exchange (app.py line 12), computed at line 21 "
        "of prepare (app.py) in 10 supersteps (time in the system); without that time the run "
        "would take 400 ns."
    )


@pytest.mark.parametrize(
    ("faults", "why"),
    [
        ([300] * 10, "(for 6000 page faults: memory that is new each time)"),
        ([3000] + [0] * 9, "(time in the system)"),  # pages that a forked process writes to first
    ],
)
def test_page_faults_explain_time_in_the_system_if_they_come_again(script, faults, why):
    program = script(2)
    for _ in range(10):
        program.step("main exchange", w=[10**7, 10**7])
    run = program.run()
    records = run.records.copy()
    for name in ("comp_minor", "comm_minor"):
        records[name] = 0
    for pid in range(2):
        records["comp_minor"][np.flatnonzero(records["pid"] == pid)[:10]] = faults
    both = [
        (pid, number, (MAIN, PREPARE), Doing.COMPUTING) for pid in range(2) for number in range(10)
    ]
    made = sampled(replace(run, records=records), *both, system_ns=6 * 10**6)
    (sentence,) = book_graph(build(made), FREE).verdict()[1]
    assert why in sentence.text


def pickling(script, calls):
    """Ten supersteps, half of whose calls makes and reads pickles."""
    program = script(2)
    for _ in range(10):
        program.step("main exchange", w=100, calls=calls, puts=[(0, 1, 10**4), (1, 0, 10**4)])
    run = program.run()
    records = run.records.copy()
    records["pickling"], records["pickled_bytes"] = calls // 2, 1000
    return replace(run, records=records)


def test_pickles_could_be_saved_at_the_line_that_sends(script):
    run = pickling(script, calls=100)
    calls = [(pid, number, (MAIN, PREPARE), Doing.CALL) for pid in range(2) for number in range(10)]
    sentence, _ = book_graph(build(sampled(run, *calls)), AS_MEASURED).verdict()[1]
    assert (sentence.kind, sentence.ns, sentence.is_lost) == ("pickling of objects", 1000, False)
    assert sentence.text == (
        "500 ns of 2.00 µs (25%) could be saved in exchange (app.py line 12), sent at line 21 of "
        "prepare (app.py) (20.0 kB of objects pickled: send arrays); without pickles the run would "
        "take 1.50 µs."
    )


def returning(script, nbytes):
    """Ten supersteps, after which it takes 600 ns until the results are with the caller."""
    life = Lifetime(0, (0, 0), (0, 0), (1000, 1000), collected=1600, returned=1600)
    return replace(uneven(script), lifetime=life, meta={"result_bytes": nbytes})


def test_large_results_could_be_saved_after_main(script):
    first, *_ = book_graph(build(returning(script, 5 * 10**6)), FREE).verdict().sentences
    assert (first.kind, first.part, first.is_lost) == ("pickling of objects", "ends", False)
    assert first.text == (
        "600 ns could be saved after main (5.00 MB of results pickled: let each process write its "
        "own to a file); without pickles the run would take 1.00 µs instead of 1.60 µs."
    )


def test_few_samples_name_no_line(script):
    slow = [(0, number, (MAIN, PREPARE), Doing.COMPUTING) for number in range(4)]
    assert "computed" not in first(sampled(uneven(script), *slow))


def three_phases(script):
    """Thirty supersteps that end in three functions, in which process 0 computes long."""
    program = script(2)
    for number in range(30):
        program.step(f"main phase{number % 3}", w=[100, 10])
    return program.run()


def test_one_line_that_is_late_in_several_functions_has_one_sentence(script):
    slow = [(0, number, (MAIN, PREPARE, BUSY), Doing.COMPUTING) for number in range(30)]
    verdict = book_graph(build(sampled(three_phases(script), *slow)), FREE).verdict()
    (sentence,) = verdict.sentences
    assert sentence.seconds == pytest.approx(30 * 45e-9)
    assert sentence.without_s == pytest.approx(30 * 55e-9)
    assert len(sentence.nodes) == 3
    assert "in phase0 (app.py line 12), computed at line 4 of busy (tools.py), by process 0" in (
        sentence.text
    )


def test_one_line_that_loses_little_for_each_of_many_callers_has_one_sentence(script):
    program = script(2)
    callers = [(MAIN, PREPARE._replace(function=f"f{number}"), BUSY) for number in range(30)]
    slow = []
    for number in range(300):
        program.step(f"main phase{number % 30}", w=[100, 10])
        slow.append((0, number, callers[number % 30], Doing.COMPUTING))
    (sentence,) = book_graph(build(sampled(program.run(), *slow)), FREE).verdict().sentences
    assert sentence.seconds == pytest.approx(300 * 45e-9)
    assert "computed at line 4 of busy (tools.py), by process 0" in sentence.text


@pytest.mark.parametrize("names", [True, False])
def test_time_blocked_is_named_by_its_line(script, names):
    program = script(2)
    for _ in range(10):
        program.step("main load:40", w=[100, 100])
    run = program.run()
    run.records["comp_cpu"] = np.tile([100, 20], 10)
    run.records["comp_ready"] = 0
    blocked = [(1, number, (MAIN, PREPARE), Doing.BLOCKED) for number in range(10)]
    computing = [(1, number, (MAIN,), Doing.COMPUTING) for number in range(10)]
    text = first(sampled(run, *computing, *(blocked if names else [])))
    where = "in load (app.py line 40), "
    if names:
        assert (
            f"{where}blocked at line 21 of prepare (app.py), by process 1 in 10 supersteps "
            "(blocked)"
        ) in text
    else:
        assert f"{where}by process 1 in 10 supersteps (blocked: asleep" in text


def test_without_samples_the_lines_of_the_syncs_around_it_are_named(script):
    program = script(2)
    for _ in range(10):
        program.step("main:7", w=10)
        program.step("main:14", w=[10, 90])
    text = first(program.run())
    assert (
        "in main (app.py line 14), computed from line 7 on, by process 1 in 10 supersteps" in text
    )
