"""The file of results and the table of goals say the same."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as driver
from benchmarks import results
from benchmarks.goals import GOALS, MORE, SECONDS, Goal
from benchmarks.measure import Case, Finding, Section, Study
from benchmarks.results import duration, merged, number, read, rows, table, tally, write

WHERE = {
    "date": "2026-11-28T16:00:00+00:00",
    "commit": "c09d13775a0d+",
    "versions": {"python": "3.11.7", "bsplib": "0.1.0"},
    "machine": {"cpu": "A", "cores": 2, "memory_bytes": 2**30, "system": "Linux"},
    "load_average": 1.5,
}
NOTHING = {"circumstances": [], "sections": {}}


def puts(monkeypatch):
    """Results in which one goal is met, one is not, one is unknown."""
    wanted = (
        Goal("Puts", "x[i:i+1]", 1.0, "put"),
        Goal("Puts", "x[i:i+1]", 1e-6, kind=SECONDS),
        Goal("Puts", "x[i:i+1]", 1e-6, "Fence", MORE),
    )
    monkeypatch.setattr("benchmarks.goals.GOALS", {"who puts": wanted})
    monkeypatch.setattr(results, "GOALS", {"who puts": wanted})

    def prepare(_):
        return [Case("put", lambda: 4e-6), Case("x[i:i+1]", lambda: 3e-6)]

    section = Section("Puts", "put", prepare, repeats=2, warm_up=0)
    study = Study("who asks", lambda _: [Finding("answers", "3 of 4", "all", False)])
    found = {each.title: each.measured(quick=False) for each in (section, study)}
    return merged(NOTHING, WHERE, found)


def test_the_table_of_the_readme_is_up_to_date():
    outcome = CliRunner().invoke(results.main, ["--check"])
    assert outcome.exit_code == 0, outcome.output


def test_every_goal_was_measured_and_no_section_is_kept_for_nothing():
    found = read()
    assert {row.what for row in rows(found) if row.measured is None} == set()
    used = {section["measured"] for section in found["sections"].values()}
    assert used == set(range(len(found["circumstances"])))


def test_a_row_has_what_was_measured_and_where(monkeypatch):
    text = table(puts(monkeypatch))
    assert text.startswith("1 of 4 goals are met, 1 not measured.")
    row = "| who puts | Puts: x[i:i+1] |"
    assert f"{row} 1.00 times put | 3.00 µs, 0.750 (0.750 to 0.750) | yes | [1] |" in text
    assert f"{row} 1.00 µs | 3.00 µs (3.00 µs to 3.00 µs) | **no** | [1] |" in text
    assert f"{row} 1.00 µs more than Fence |  | **not measured** |  |" in text
    assert "| who asks | answers | all | 3 of 4 | **no** | [1] |" in text
    assert "- [1] 2026-11-28, 2 cores of A, 1 GiB, Linux; python 3.11.7, bsplib 0.1.0" in text
    assert "at commit c09d13775a with changes; load average 1.5" in text


def test_what_is_measured_again_replaces_what_was_and_keeps_its_own_circumstances():
    later = WHERE | {"date": "2026-11-29T16:00:00+00:00"}
    before = merged(NOTHING, WHERE, {"A": {"cases": {}}, "B": {"cases": {}}})
    after = merged(before, later, {"B": {"cases": {}}, "C": {"cases": {}}})
    assert [section["measured"] for section in after["sections"].values()] == [0, 1, 1]
    assert list(after["sections"]) == ["A", "B", "C"]
    assert after["circumstances"] == [WHERE, later]
    assert merged(after, later, {"A": {}})["circumstances"] == [later, later]


def test_what_is_written_is_read_back_and_has_a_line_for_each_section(monkeypatch, tmp_path):
    found = puts(monkeypatch)
    path = tmp_path / "results.json"
    write(found, path)
    assert read(path) == json.loads(path.read_text("utf-8")) == found
    assert sum('"measured"' in line for line in path.read_text("utf-8").splitlines()) == 2


def test_the_table_replaces_the_one_before_and_leaves_the_prose():
    text = f"Before.\n{results.BEGIN}\n\nold\n{results.END}\nAfter.\n"
    new = results.with_table(text, "new")
    assert new == f"Before.\n{results.BEGIN}\n\nnew\n\n{results.END}\nAfter.\n"
    assert results.with_table(new, "new") == new


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5, "1.50 s"),
        (0.0123, "12.3 ms"),
        (999e-6, "999 µs"),
        (-2e-6, "−2.00 µs"),  # noqa: RUF001  # a minus sign
        (3e-10, "0.30 ns"),
        (0.0, "0 s"),
    ],
)
def test_durations_have_three_digits(seconds, text):
    assert duration(seconds) == text


def test_a_number_is_never_a_power_of_ten():
    assert [number(value) for value in (0.0001234, 12345.0)] == ["0.000123", "12345"]


# -- the command ----------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Run the command with two sections, and files of its own; return its outcome and results."""
    file, readme = tmp_path / "results.json", tmp_path / "README.md"
    write(NOTHING, file)
    readme.write_text(f"{results.BEGIN}\n{results.END}\n", encoding="utf-8")
    monkeypatch.setattr(results.read, "__defaults__", (file,))
    monkeypatch.setattr(results.write, "__defaults__", (file,))
    monkeypatch.setattr(results, "README", readme)
    monkeypatch.setattr(driver.mpi, "absence", lambda: "")

    def prepare(_):
        return [Case("nothing[0]", time.perf_counter)]

    both = [Section(title, "call", prepare) for title in ("First", "Second")]
    monkeypatch.setattr(driver, "sections_of", lambda name: both if name == "start" else ())

    def run(*options):
        return CliRunner().invoke(driver.main, ["--quick", *options]), read(file)

    return run


def test_figures_are_shown_and_kept_only_where_that_is_wanted(command):
    outcome, kept = command()
    assert outcome.exit_code == 0, outcome.output
    assert "nothing[0]" in outcome.output
    assert kept == NOTHING
    outcome, kept = command("--keep", "start", "--only", "second")
    assert outcome.exit_code == 0, outcome.output
    assert list(kept["sections"]) == ["Second"]
    assert tally(rows(kept)) in results.README.read_text("utf-8")


def test_a_section_that_is_not_there_is_answered_with_those_that_are(command):
    outcome, _ = command("--only", "sort")
    assert outcome.exit_code == 2
    assert "no section has 'sort' in its title" in outcome.output
    assert "Second" in outcome.output


def test_a_module_whose_packages_are_missing_is_left_out(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.delitem(__import__("sys").modules, "benchmarks.cases.queries", raising=False)
    assert driver.sections_of("queries") == ()
    assert "without queries, which needs pyarrow" in capsys.readouterr().err


@pytest.mark.slow
def test_titles_differ_and_every_goal_is_that_of_a_section():
    titles = [section.title for name in driver.NAMES for section in driver.sections_of(name)]
    assert len(set(titles)) == len(titles)
    absent = {goal.section for goals in GOALS.values() for goal in goals} - set(titles)
    assert {title for title in absent if "mpi4py" not in title} == set()
