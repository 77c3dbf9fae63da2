"""The pytest plugin: runs recorded by a fixture, and baselines of h and supersteps."""

from __future__ import annotations

import json

import pytest

import bsplib
from bsplib.profiler.compare import baseline as _baseline  # noqa: F401  # see below
from bsplib.profiler.compare import comparison as _comparison  # noqa: F401
from bsplib.recording.trace import read_trace
from bsplib.running.options import current
from tests.processes import run_python

pytestmark = pytest.mark.lengthy(values="all")  # each test runs pytest

# pytester forgets the modules that a run of pytest imported, and each would import them anew.
pytest_plugins = ["pytester"]

PROGRAM = """
import bsplib
import pytest

def relax(bsp, rounds):
    x = bsp.zeros(8)
    for _ in range(rounds):
        bsp.put(0, [1.0, 2.0], x[:2])
        bsp.sync()

def main(bsp, rounds):
    relax(bsp, rounds)
    return bsp.pid
"""

ALONE = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Hypothesis takes a second to import."""


@pytest.fixture
def suite(pytester):
    """Write the program with some tests, and run pytest with the plugin on it."""

    def suite(tests, *options):
        pytester.makepyfile(test_relax=f"{PROGRAM}\n{tests}")
        return pytester.runpytest_inprocess(*ALONE, *options)

    return suite


# -- the fixture -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_runs_are_recorded_without_being_asked_for(suite, kind):
    result = suite(f"""
def test_it(bsp_trace):
    bsplib.run(main, 3, nprocs=2, backend="{kind}")
    assert bsp_trace.run(main, 5, nprocs=2, backend="{kind}") == [0, 1]
    assert [run.nprocs for run in bsp_trace.runs] == [2, 2]
    assert bsp_trace.figures().supersteps == 5
    assert bsp_trace.figures("relax", run=0).supersteps == 3
    assert bsp_trace.figures("relax").h == 5 * 16
    assert bsp_trace.figures("test_relax.py:8").h_mean == 5 * 16
    assert bsp_trace.compare().whole.change("supersteps") == 2
""")
    result.assert_outcomes(passed=1)


def test_a_test_without_runs_has_none(suite):
    result = suite("""
def test_it(bsp_trace):
    assert bsp_trace.runs == ()
    with pytest.raises(LookupError, match="there is no run -1: the test has made 0"):
        bsp_trace.figures()
""")
    result.assert_outcomes(passed=1)


def test_a_name_that_is_not_there_is_an_error_that_lists_the_others(suite):
    result = suite("""
def test_it(bsp_trace):
    bsp_trace.run(main, 1, nprocs=1, backend="sim")
    with pytest.raises(LookupError, match="no node is called 'relay'; there are main, relax"):
        bsp_trace.figures("relay")
""")
    result.assert_outcomes(passed=1)


def test_each_test_has_a_trace_of_its_own_and_others_record_nothing(suite):
    result = suite("""
files = []

def test_one(bsp_trace):
    bsp_trace.run(main, 1, nprocs=1, backend="sim")
    files.append(bsp_trace.file)

def test_without():
    size = files[0].stat().st_size
    bsplib.run(main, 1, nprocs=1, backend="sim")
    assert files[0].stat().st_size == size

def test_two(bsp_trace):
    bsp_trace.run(main, 2, nprocs=1, backend="sim")
    assert len(bsp_trace.runs) == 1
""")
    result.assert_outcomes(passed=3)
    assert current().profile_else is None


def test_a_file_that_the_test_names_is_written_instead(suite):
    result = suite("""
def test_it(bsp_trace, tmp_path):
    bsplib.run(main, 1, nprocs=1, backend="sim", profile=tmp_path / "own.bsp")
    assert (tmp_path / "own.bsp").exists()
    assert bsp_trace.runs == ()
""")
    result.assert_outcomes(passed=1)


def test_the_trace_stays_for_bsp_view(suite, tmp_path):
    suite(
        """
def test_it(bsp_trace):
    bsp_trace.run(main, 4, nprocs=1, backend="sim")
""",
        f"--basetemp={tmp_path / 'base'}",
    )
    (file,) = (tmp_path / "base").rglob("*.bsp")
    assert len(read_trace(file).runs) == 1


# -- the baseline ------------------------------------------------------------------------------

ONE = """
@pytest.mark.parametrize("backend", ["shm", "sim"])
def test_relax(bsp_trace, backend):
    bsp_trace.run(main, {rounds}, nprocs={nprocs}, backend=backend)

def test_other():
    pass
"""


def told(result):
    return "\n".join(result.outlines + result.errlines)


@pytest.fixture(scope="module")
def written():
    """Hold the baseline once a test has written it."""
    return {}


@pytest.fixture
def baseline(suite, pytester, written):
    """Write a baseline of three rounds on two processes."""
    file = pytester.path / "kept.json"
    if "text" not in written:
        suite(ONE.format(rounds=3, nprocs=2), "--bsp-baseline=kept.json", "--bsp-update")
        written["text"] = file.read_text()
    file.write_text(written["text"])
    return file


@pytest.mark.lengthy
def test_equal_runs_agree_with_the_baseline(suite, baseline):
    result = suite(ONE.format(rounds=3, nprocs=2), "--bsp-baseline=kept.json")
    result.assert_outcomes(passed=3)


def test_the_baseline_has_one_line_a_figure_and_figures_of_every_test(baseline):
    text = baseline.read_text()
    tests = json.loads(text)["tests"]
    assert sorted(tests) == ["test_relax.py::test_relax[shm]", "test_relax.py::test_relax[sim]"]
    assert tests["test_relax.py::test_relax[shm]"] == tests["test_relax.py::test_relax[sim]"]
    (run,) = tests["test_relax.py::test_relax[sim]"]
    figures = {"supersteps": 3, "h": 48, "h_mean": 48}
    names = ["main", "relax", "relax > sync"]
    assert run == {"nprocs": 2, "nodes": {f"test_relax.py: {name}": figures for name in names}}
    assert [line.strip() for line in text.splitlines()].count('"h_mean": 48,') == 2 * len(names)


def test_a_test_that_does_more_supersteps_fails_and_names_the_node(suite, baseline):
    result = suite(ONE.format(rounds=4, nprocs=2), "--bsp-baseline=kept.json", "-k", "sim")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "h or supersteps are not those of kept.json:",
            "  test_relax.py: relax: supersteps 4 instead of 3, h 64 instead of 48 bytes, *",
            "  test_relax.py: relax > sync: supersteps 4 instead of 3, *",
            "See the runs by: bsp view *trace.bsp",
        ]
    )
    assert "Traceback" not in told(result)


def test_another_number_of_processes_is_named_alone(suite, baseline):
    result = suite(ONE.format(rounds=3, nprocs=3), "--bsp-baseline=kept.json", "-k", "sim")
    result.stdout.fnmatch_lines(["  3 processes instead of 2"])
    assert "relax:" not in told(result)


def test_an_edit_that_moves_lines_changes_nothing(suite, baseline, monkeypatch):
    moved = PROGRAM.replace("def relax", "# a comment\n\n\ndef relax")
    monkeypatch.setitem(globals(), "PROGRAM", moved)
    result = suite(ONE.format(rounds=3, nprocs=2), "--bsp-baseline=kept.json", "-k", "sim")
    result.assert_outcomes(passed=1)


def test_nodes_that_came_and_went_are_named(suite, baseline, monkeypatch):
    monkeypatch.setitem(globals(), "PROGRAM", PROGRAM.replace("relax(bsp", "smooth(bsp"))
    result = suite(ONE.format(rounds=3, nprocs=2), "--bsp-baseline=kept.json", "-k", "sim")
    result.stdout.fnmatch_lines(
        [
            "  test_relax.py: relax: is gone, which had 3 supersteps and an h of 48 bytes",
            "  test_relax.py: smooth: is new, with 3 supersteps and an h of 48 bytes",
        ]
    )


def test_a_test_without_figures_in_the_file_fails(suite, baseline):
    tests = ONE.format(rounds=3, nprocs=2).replace("test_relax", "test_renamed")
    result = suite(tests, "--bsp-baseline=kept.json", "-k", "sim")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["kept.json has no figures of this test: *--bsp-update*"])


def test_an_update_keeps_the_figures_of_tests_that_were_not_run(suite, baseline):
    before = json.loads(baseline.read_text())["tests"]
    options = "--bsp-baseline=kept.json", "--bsp-update", "-k", "sim"
    result = suite(ONE.format(rounds=5, nprocs=2), *options)
    result.stdout.fnmatch_lines(["*kept.json: figures of 1 test written, 1 of them changed"])
    after = json.loads(baseline.read_text())["tests"]
    name = "test_relax.py::test_relax[{}]"
    assert after[name.format("shm")] == before[name.format("shm")]
    assert after[name.format("sim")][0]["nodes"]["test_relax.py: relax"]["supersteps"] == 5


def test_a_test_that_fails_is_not_held_against_the_baseline_nor_written(suite, pytester):
    tests = (
        ONE.format(rounds=3, nprocs=2)
        + "\n"
        + """
def test_broken(bsp_trace):
    bsp_trace.run(main, 1, nprocs=1, backend="sim")
    assert 1 == 2
"""
    )
    result = suite(tests, "--bsp-baseline=kept.json", "--bsp-update", "-k", "sim or broken")
    result.assert_outcomes(passed=1, failed=1)
    assert "test_broken" not in (pytester.path / "kept.json").read_text()


def test_a_run_that_ends_in_an_error_has_no_figures(suite, pytester):
    tests = """
def test_error(bsp_trace):
    with pytest.raises(TypeError):
        bsp_trace.run(main, "three", nprocs=2, backend="sim")
"""
    suite(tests, "--bsp-baseline=kept.json", "--bsp-update")
    kept = json.loads((pytester.path / "kept.json").read_text())
    assert kept["tests"] == {"test_relax.py::test_error": []}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "there is no file *kept.json; --bsp-update writes it"),
        ("{", "kept.json: it is no baseline of bsplib: *"),
        ("[]", "kept.json: it is no baseline of bsplib: *"),
        ('{"format": "bsplib baseline", "version": 2, "tests": {}}', "*of version 1"),
        ('{"format": "bsplib baseline", "version": 1, "tests": {"a": [{}]}}', "*no baseline*"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(suite, pytester, content, error):
    if content is not None:
        (pytester.path / "kept.json").write_text(content)
    result = suite(ONE.format(rounds=1, nprocs=1), "--bsp-baseline=kept.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --bsp-baseline: *{error}"])


def test_an_update_needs_a_file(suite):
    result = suite(ONE.format(rounds=1, nprocs=1), "--bsp-update")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --bsp-update needs --bsp-baseline FILE, *"])


# -- without it --------------------------------------------------------------------------------


@pytest.mark.lengthy
def test_a_suite_that_does_not_use_the_plugin_loads_neither_numpy_nor_the_runtime(pytester):
    pytester.makepyfile(
        """
        import sys

        def test_it():
            heavy = {"numpy", "greenlet", "bsplib.core", "bsplib.running", "bsplib.recording",
                     "profiler", "webui", "networkx", "click", "rich", "flask", "apps"}
            assert "bsplib.tools.pytest_plugin" in sys.modules
            assert heavy & set(sys.modules) == set()
        """
    )
    done = run_python("-m", "pytest", "-q", *ALONE, cwd=pytester.path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_the_fixture_is_described_by_pytest(pytester):
    result = pytester.runpytest_inprocess("--fixtures", *ALONE)
    result.stdout.fnmatch_lines(["bsp_trace*", "*Record every bsplib.run of the test*"])


def test_without_the_fixture_nothing_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert bsplib.run(lambda bsp: bsp.pid, nprocs=1, backend="sim") == [0]
    assert list(tmp_path.iterdir()) == []
