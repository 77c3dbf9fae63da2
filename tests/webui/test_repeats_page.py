"""A page of a program that was recorded several times: which run it shows, and the intervals."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from bsplib.profiler.repeats import shown_run
from bsplib.recording.records import Trace
from bsplib.webui.traces import Traces

EXCESSES = (120, 100, 90, 110, 80)


@pytest.fixture(scope="module")
def repeated(script):
    """Five runs of one program: process 1 computes longer, each time by another amount."""
    runs = []
    for number, excess in enumerate(EXCESSES):
        program = script(2)
        for _ in range(10):
            program.step("main relax", w=[100_000, 100_000 + 1000 * excess])
        if number == 3:  # once, another program takes the core of process 0
            program.step("main other", w=[400_000, 0])
        runs.append(program.run(meta={"repeat": [number, len(EXCESSES)], "program": "app.py"}))
    return Trace(tuple(runs))


def test_a_trace_of_repeats_opens_with_the_run_of_median_time(repeated):
    assert shown_run(repeated.runs) == 1
    (about,) = Traces(repeated).overview()
    assert about["opening"] == 1
    assert [run["repeat"] for run in about["runs"]] == [(n, 5) for n in range(5)]


@pytest.mark.lengthy
def test_sentences_have_their_intervals_whichever_run_is_shown(repeated):
    traces = Traces(repeated)
    for number in (1, 3):
        told = traces.answer("0", number, "repeats", {})
        assert (told["median"], told["runs"]) == (1, [0, 1, 2, 3, 4])
        assert told["least_s"] == pytest.approx(1.8e-3)
        first, *others = told["intervals"]
        assert (first["found"], first["is_sure"]) == (5, True)
        assert (first["least_s"], first["greatest_s"]) == pytest.approx((0.4e-3, 0.6e-3))
        sentences = traces.answer("0", number, "run", {})["verdict"]["sentences"]
        text = sentences[first["sentence"]]["text"]
        assert "are lost in relax" in text
        assert "by process 1" in text
        assert [each["is_sure"] for each in others] == [False] * (number == 3)


@pytest.mark.browser
def test_a_page_shows_the_run_of_median_time_with_intervals_and_any_other_by_choice(
    tab, repeated, served, show
):
    with served(repeated) as url:
        show(tab, url)
        verdict = tab.locator("#verdict li")
        expect(verdict.first).to_contain_text("(400 µs to 600 µs, in 5 of 5 runs; ")
        expect(verdict.first).to_contain_text("9 of 10 mended runs would take 1.15 ms to 2.13 ms)")
        tab.locator('#account .part[data-part="imbalance"]').click()
        expect(tab.locator(".account-places b")).to_contain_text("; 400 µs to 750 µs in 5 runs")
        tab.go_back()
        facts = tab.locator(".facts")
        expect(facts).to_contain_text("the run of median time of 5: 1.80 ms to 2.50 ms")
        assert "run=" not in tab.url
        tab.get_by_role("combobox", name="Run", exact=True).select_option("3")
        expect(facts).to_contain_text("not the run of median time of 5")
        expect(tab.locator("#verdict li.unsure")).to_contain_text("only in 1 of 5 runs")
        show(tab, *tab.url.split("#"))
        expect(tab.locator("#verdict li.unsure")).to_be_attached()
        tab.get_by_role("combobox", name="Run", exact=True).select_option("0")
        tab.wait_for_url(lambda address: "run=0" in address)
        show(tab, f"{url}#run=0&brush=0,4")
        expect(tab.locator("#brushed")).to_contain_text("Only supersteps 0 to 4")
        expect(tab.locator("#verdict .interval")).to_have_count(0)
