"""The kinds of losses and the sentences about them, on runs that are defined by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.mends import STAGES
from bsplib.profiler.rates import FITTED, Rates
from bsplib.profiler.verdict import MOST_SENTENCES, MOST_WORDS
from bsplib.recording.records import Lifetime
from bsplib.sync_kinds import Kind
from tests.drawn import examples

from .test_properties import programs

FREE = Rates(g=0.0, l=0.0)


def first(program, rates=FREE):
    """The first sentence of the verdict."""
    return book_graph(program.reading().callgraph, rates).verdict().sentences[0]


def test_an_exchange_that_is_uneven_in_both_directions_is_no_fan(script):
    program = script(4)
    for _ in range(10):
        program.step("main gather", puts=[(2, 3, 900), (3, 2, 900)])
    sentence = first(program, Rates(g=1e-6, l=0.0))
    assert sentence.kind == "uneven exchange"
    assert "by transfers to and from process 2 in 10 supersteps (uneven exchange)" in sentence.text


@pytest.mark.parametrize(("rule", "stages"), [("max", 2), ("sum", 3)])
def test_one_process_that_sends_all_is_told_what_two_stages_would_take(script, rule, stages):
    program = script(4)
    for _ in range(10):
        program.step("main gather", transfer=2800, puts=[(0, pid, 900) for pid in (1, 2, 3)])
    clustered = book_graph(program.reading().callgraph, Rates(1e-9, 1e-7, rule)).losses[0]
    # Of 2800 ns, 2700 ns are g h. In stages of 2700 / 4 bytes, with another l, that is less.
    assert clustered.mended_ns[STAGES] == 10 * (2700 - stages * 675 - 100)
    sentence = first(program, Rates(1e-9, 1e-7, rule))
    assert sentence.text.endswith(
        f", in two stages (if all get the same, or what comes is added) "
        f"{28 - (2700 - stages * 675 - 100) / 100:.1f} µs."
    )


def test_a_run_bound_by_communication_is_told_what_an_even_distribution_would_take(script):
    program = script(4)
    for number in range(40):
        sizes = [900 if pid == number % 4 else 300 for pid in range(4)]
        puts = [(pid, (pid + 1) % 4, size) for pid, size in enumerate(sizes)]
        program.step("main turn", transfer=1000, puts=puts)
    told = book_graph(program.reading().callgraph, Rates(1e-9, 1e-7)).verdict().sentences
    (sentence,) = (each for each in told if each.kind == "communication-bound")
    # h is 900 bytes at most, and 600 on average over the processes.
    assert sentence.text.endswith(
        "with half as many bytes the run would take 22.0 µs, with the bytes evenly distributed "
        "28.0 µs."
    )


def test_who_is_late_since_its_transfers_took_long_is_named_where_these_were(script):
    program = script(2)
    for _ in range(10):
        program.step("main collect", w=10, puts=[(0, 1, 9000)], transfer=10)
        program.step("main smooth", w=[10, 10])
    run = program.run()
    records = run.records.reshape(-1, 2)  # by superstep
    for name in ("start", "arrive", "released", "end"):
        records[name] += (np.arange(len(records)) // 2 * 100)[:, None]
        records[name][1::2] += 100  # process 1 needs 100 ns more to take in the bytes
    records["end"][0::2, 1] += 100
    records["start"][1::2, 0] -= 100
    records["arrive"][1::2, 0] -= 100
    verdict = book_graph(build(run), Rates(12e-12, 0.0, source=FITTED)).verdict()
    assert verdict.sentences[0].kind == "fan-in"
    assert "are lost in collect" in verdict.sentences[0].text


def test_a_run_that_ends_before_its_first_superstep_is_not_said_to_lose_something(script):
    program = script(2)
    program.step("main", w=0, kind=Kind.END)
    life = Lifetime(-60_000, (-60_000,) * 2, (0, 0), (0, 0), 0, 0)
    verdict = book_graph(build(replace(program.run(), lifetime=life)), FREE).verdict()
    assert str(verdict).startswith(
        "The run is too short to judge: 0 s of 60.0 µs are in main.\n"
        "No time was recorded in supersteps, and so nothing is lost in them."
    )


def test_a_verdict_has_at_most_five_sentences_the_greatest_loss_first(script):
    program = script(2)
    for number in range(9):
        program.step(f"main place{number}", w=[100 + 10 * number, 0])
    verdict = book_graph(program.reading().callgraph, FREE).verdict()
    assert len(verdict.sentences) == MOST_SENTENCES
    seconds = [sentence.seconds for sentence in verdict.sentences]
    assert seconds == sorted(seconds, reverse=True)
    assert "place8" in verdict.sentences[0].text


def measured(program, **fields):
    """A run of two processes whose system measured what the arguments name, by process."""
    run = program.run()
    for name, values in fields.items():
        run.records[name] = np.tile(values, len(run.records) // 2)
    return book_graph(build(run), FREE)


def test_where_nearly_all_time_is_without_a_core_the_rest_has_no_sentence_of_its_own(script):
    program = script(2)
    for _ in range(10):
        program.step("main work", w=[2000, 1995])
    book = measured(program, comp_cpu=[20, 15], comp_ready=[1980, 1980])
    assert [each.part for each in book.verdict().sentences] == ["core"]


def test_to_sleep_in_a_call_is_not_saved_by_fewer_bytes(script):
    program = script(2)
    for _ in range(10):
        program.step("main send", w=100, calls=[0, 200], puts=[(1, 0, 9)])
    asleep = {"comp_cpu": [100, 100], "comm_cpu": [200, 50]}
    book = measured(program, **asleep, comp_ready=[0, 0], comm_ready=[0, 0])
    blocked, calls = book.verdict().sentences
    assert (blocked.kind, blocked.pids, blocked.seconds) == ("blocked", (1,), 10 * 150e-9)
    assert blocked.without_s == pytest.approx(10 * 150e-9)
    assert (calls.part, calls.pids) == ("transfer_imbalance", (1,))
    assert calls.as_others_s == pytest.approx(10 * 250e-9)


@pytest.mark.parametrize(("size", "kind"), [(9000, "communication-bound"), (9, "balanced")])
def test_calls_that_move_many_bytes_are_a_part_of_their_transfers(script, size, kind):
    program = script(2)
    for _ in range(10):
        puts = [(0, 1, size), (1, 0, size)]
        program.step("main swap", w=100, puts=puts, calls=[800, 800], transfer=100)
    sentence = first(program, Rates(1e-11, 0.0, source=FITTED))
    assert sentence.kind == kind
    if kind == "communication-bound":  # of g h 90 ns
        assert sentence.seconds == pytest.approx(10 * 400e-9)
        assert sentence.without_s == pytest.approx(10 * 600e-9)


def test_one_guilty_line_is_one_sentence_whoever_calls_it(script):
    program = script(2)
    for number in range(12):
        program.step(f"main caller{number} guilty:99", w=[100, 10])
    verdict = book_graph(program.reading().callgraph, FREE).verdict()
    (sentence,) = verdict.sentences
    assert sentence.seconds == pytest.approx(12 * 45e-9)
    assert "called by caller0 at line 12 and 11 other lines, by process 0 (" in sentence.text


@pytest.mark.parametrize(
    "stacks",
    [
        ("main alpha work exchange", "main beta work exchange"),
        ("main:5 exchange", "main:6 exchange"),
        ("main:5 bsplib/collectives.py/allreduce:7", "main:6 bsplib/collectives.py/allreduce:7"),
    ],
)
def test_two_callers_with_different_stragglers_have_a_sentence_each(script, stacks):
    program = script(4)
    for _ in range(10):
        program.step(stacks[0], w=[10, 10, 10, 100])
        program.step(stacks[1], w=[60, 10, 10, 10])
    sentences = book_graph(program.reading().callgraph, FREE).verdict().sentences
    assert [sentence.kind for sentence in sentences] == ["fixed", "fixed"]
    assert [sentence.seconds for sentence in sentences] == pytest.approx([675e-9, 375e-9])
    assert ["process 3" in sentences[0].text, "process 0" in sentences[1].text] == [True, True]


def test_a_sentence_with_all_its_parts_is_short(script):
    """A branch of few of many processes of several hosts, which is entered in a sub-group."""
    program = script(12)
    late = [pid for pid in range(12) if pid % 2]
    for number in range(10):
        with program.partition(12) as (every,):
            places = ["main outer deep:7" if pid in late else "main outer:9" for pid in range(12)]
            puts = [(pid, 0, 90) for pid in late if number == 5]
            program.step(places, w=[100 * (pid in late) + 10 for pid in range(12)], group=every)
            program.step(places, w=10, puts=puts, group=every, transfer=90 * (number == 5))
    run = program.run(meta={"hosts": [f"host{pid}" for pid in range(12)]})
    for loss in book_graph(build(run), Rates(g=1e-10, l=0.0)).losses:
        assert len(loss.text.partition("; ")[0].split()) <= MOST_WORDS, loss.text


@examples(16)
@given(st.data())
def test_sentences_about_any_run_are_short_and_what_is_lost_adds_up(script, data):
    book = book_graph(data.draw(programs(script, one_stack=False)).reading().callgraph)
    for loss in (*book.losses, *book.verdict().sentences):
        before, _, _ = loss.text.partition("; ")
        assert len(before.split()) <= MOST_WORDS
    lost = sum(loss.ns for loss in book.losses if loss.is_lost)
    assert lost == book.main.loss_ns
