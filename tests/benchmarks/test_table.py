"""The tables say what the JSON files say."""

from __future__ import annotations

import io

import pytest
from click.testing import CliRunner
from rich.console import Console

from benchmarks import (
    bench_faults,
    bench_mpi,
    bench_primitives,
    bench_programs,
    bench_recording,
    bench_start,
    bench_virtual,
    command,
    report,
    table,
    terminal,
)
from benchmarks.bench_mpi4py_tests import outcomes
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section, measure, measure_again
from benchmarks.report import documents, duration, goals, number, tally

BENCHMARKS = [
    module.BENCHMARK
    for module in (
        *(bench_primitives, bench_recording, bench_start, bench_programs),
        *(bench_virtual, bench_faults, bench_mpi),
    )
]


@pytest.fixture
def folder(tmp_path):
    """Results of a benchmark in which one goal is met, one is not, one is unknown."""
    wanted = (Goal.times(1, "put"), Goal.seconds(1e-6), Goal.more_than("Fence", by_s=1e-6))

    def prepare(_):
        ours = Case("x[i:i+1]", iter([3e-6] * 2).__next__, goals=wanted)
        return [Case("put", iter([4e-6] * 2).__next__), ours]

    measure("trial", [Section("Puts", "put", prepare, repeats=2, warm_up=0)], tmp_path)
    return tmp_path


def test_the_tables_of_the_readme_are_up_to_date():
    outcome = CliRunner().invoke(table.main, ["--check"])
    assert outcome.exit_code == 0, outcome.output


def test_goals_come_first_with_what_was_measured(folder):
    text = table.tables(folder)
    assert text.index("## Goals") < text.index("## trial")
    assert "1 of 3 goals are met, 1 not measured." in text
    row = "| Puts: x[i:i+1] | 3.00 µs |"
    assert f"{row} at most put | 0.750 times | 0.750 to 0.750 | 0.750 times | yes |" in text
    assert f"{row} at most 1.00 µs | 3.00 µs | 3.00 µs to 3.00 µs | 3.00 µs | **no** |" in text
    assert f"{row} at most 1.00 µs over Fence |  |  |  | not measured |" in text


def test_a_section_that_was_measured_again_tells_when_and_where(folder):
    def prepare(_):
        return [Case("put", iter([1.0] * 2).__next__)]

    assert table.tables(folder).count("Measured ") == 1
    again = [Section("Gets", "get", prepare, repeats=2, warm_up=0)]
    measure_again("trial", again, ["Puts", "Gets"], folder)
    text = table.tables(folder)
    assert text.count("Measured ") == 2
    assert text.index("### Gets\n\nMeasured ") > text.index("### Puts\n\n|")
    measure_again("trial", again[:0], ["Gets"], folder)
    assert table.tables(folder).count("Measured ") == 1


def test_chosen_sections_are_kept_in_the_results_where_that_is_wanted(monkeypatch, tmp_path):
    def prepare(_):
        return [Case("nothing", lambda: 1.0)]

    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command.table, "write", lambda: None)
    both = [Section(title, "call", prepare) for title in ("First", "Second")]
    options = ["--keep", "--quick", "--only", "second"]
    outcome = CliRunner().invoke(command._command([command.Benchmark("trial", both)]), options)
    assert outcome.exit_code == 0, outcome.output
    (found,) = documents(tmp_path)
    assert [each["title"] for each in found["sections"]] == ["Second"]


@pytest.mark.parametrize(("samples", "met"), [([1.0, 1.05, 1.1], "yes"), ([1.0, 1.5, 2.0], "no")])
def test_a_goal_may_be_that_the_quartiles_are_near_the_median(tmp_path, samples, met):
    def prepare(_):
        return [Case("sort", iter(samples).__next__, goals=(Goal.spread(0.1),))]

    measure("trial", [Section("Sorts", "run", prepare, repeats=3, warm_up=0)], tmp_path)
    (row,) = goals(documents(tmp_path))
    assert (row.goal, row.verdict) == ("quartiles within 10.0% of the median", met)
    assert row.median == {"yes": "2.38%", "no": "16.7%"}[met]


def test_every_benchmark_has_its_place_in_the_tables():
    assert [each.name for each in BENCHMARKS] == list(report._ORDER)


def test_tables_replace_those_before_and_leave_the_prose():
    text = f"Before.\n{table.BEGIN}\n\nold\n{table.END}\nAfter.\n"
    new = table.with_tables(text, "new")
    assert new == f"Before.\n{table.BEGIN}\n\nnew\n{table.END}\nAfter.\n"
    assert table.with_tables(new, "new") == new


def test_the_terminal_shows_the_same_brackets_included(folder):
    out = io.StringIO()
    console = Console(file=out, width=150)
    found = documents(folder)
    terminal.show_figures(found, console)
    terminal.show_goals(goals(found), console)
    shown = out.getvalue()
    assert tally(goals(found)) in shown
    assert "0.750 (0.750 to 0.750) times put" in shown
    assert [word in shown for word in ("x[i:i+1]", "yes", "no", "not measured")] == [True] * 4


def test_titles_differ_and_so_do_names_of_files():
    titles = [section.title for each in BENCHMARKS for section in each.sections]
    assert len(set(titles)) == len(titles)
    assert len({each.name for each in BENCHMARKS}) == len(BENCHMARKS)


def test_sections_are_chosen_by_a_part_of_their_titles():
    (primitives, *_) = BENCHMARKS
    chosen = primitives.only("P = 16").sections
    assert [section.title for section in chosen] == [
        "Empty superstep, p = 16",
        "Put of 8 B, p = 16",
    ]


def test_a_section_that_is_not_there_is_answered_with_those_that_are():
    outcome = CliRunner().invoke(command._command([bench_start.BENCHMARK]), ["--only", "sort"])
    assert outcome.exit_code == 2
    assert "no section has 'sort' in its title" in outcome.output
    assert "Empty program in a pool, p = 4" in outcome.output


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5, "1.50 s"),
        (0.0123, "12.3 ms"),
        (999e-6, "999 µs"),
        (-2e-6, "−2.00 µs"),  # noqa: RUF001  # a minus sign
        (3e-10, "0.300 ns"),
        (0.0, "0 ns"),
    ],
)
def test_durations_have_three_digits(seconds, text):
    assert duration(seconds) == text


def test_a_number_is_never_a_power_of_ten():
    assert [number(value) for value in (0.0001234, 12345.0)] == ["0.000123", "12345"]


def test_results_that_differ_are_counted_by_their_goal():
    seconds = dict.fromkeys(("median", "lower_quartile", "upper_quartile", "least"), 2.0)
    for different, met in ((0, True), (3, False)):
        case = {"name": "recorded", "seconds": seconds, "different": different}
        case["goals"] = [Goal.different(0, "bare").judge(case)]
        (row,) = goals([{"sections": [{"title": "Tests", "cases": [case]}]}])
        assert (row.goal, row.median) == (
            "at most 0 results other than bare",
            f"{different} results",
        )
        assert row.met is met


def test_how_tests_of_mpi4py_end_is_read_from_what_unittest_prints():
    text = (
        "testA (test_x.TestX.testA) ... ok\n"
        "testB (test_x.TestX.testB) ... skipped 'mpi-win'\n"
        "testC (test_x.TestX.testC) ... a warning\nFAIL\n"
        "testD (test_x.TestX.testD) ... ok\n"
        "======\nERROR: testD (test_x.TestX.testD)\n"
        "testE (test_x.TestX.testE) ... "
    )
    assert outcomes(text) == {
        "testA (test_x.TestX.testA)": "ok",
        "testB (test_x.TestX.testB)": "skipped",
        "testC (test_x.TestX.testC)": "FAIL",
        "testD (test_x.TestX.testD)": "failed",
    }
