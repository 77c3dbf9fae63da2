"""The table of formats, and the command that writes them."""

import json
import os
import re
from pathlib import Path

import pytest

from bsplib.errors import UsageError
from bsplib.machine import load_machine
from bsplib.profiler import limits
from bsplib.profiler.export.table import FORMATS, check_options, find
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import rates_on
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from tests.commands import run_bsp


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory, broadcast, hostile):
    """A trace of two runs."""
    path = tmp_path_factory.mktemp("trace") / "two.bsp"
    write_trace(path, Trace((hostile.run, broadcast.run)))
    return path


@pytest.fixture
def export(trace_file, tmp_path, monkeypatch):
    """Runs ``bsp export`` in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*line):
        return run_bsp("export", trace_file, *line)

    return run


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_ending_of_a_file_names_its_format(form):
    assert find(Path(f"a.b{form.ending}"), None) is form
    assert find(Path(f"a.b{form.ending}".upper()), None) is form
    assert find(Path("x.unknown"), form.name) is form


def test_an_unknown_ending_names_those_that_are_known():
    with pytest.raises(UsageError, match=r"ending of x\.doc names no format: use one of \.svg, "):
        find(Path("x.doc"), None)


def test_an_option_without_effect_is_refused():
    with pytest.raises(UsageError, match="--top has no effect on the format csv: leave it out"):
        check_options(find(Path("x.csv"), None), ["table", "top"])


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_command_writes_what_the_format_writes_of_the_last_run(
    form, export, broadcast, dot_of_graphviz, monkeypatch
):
    if form.name == "pdf":
        monkeypatch.setenv("PATH", dot_of_graphviz, prepend=os.pathsep)
    done = export("--out", f"x{form.ending}")
    assert done.exit_code == 0, done.output
    assert done.output == f"wrote x{form.ending}, run 2 of 2: open it with {form.opened_by}\n"
    written = Path(f"x{form.ending}").read_bytes()
    if form.name not in {"png", "pdf"}:  # which hold the time at which they were made
        expected = broadcast.bytes(form.name)
        assert written == expected.replace(b'"run": 1,', b'"run": 2,')
    assert len(written) > 100


def test_losses_can_be_priced_on_another_machine(export, broadcast):
    machine = ("--machine", "cray-t3e-mpi:l=1e-3", "--speed", "2x")
    assert export("--out", "x.json", *machine).exit_code == 0
    (run,) = json.loads(Path("x.json").read_bytes())["runs"]
    rates = rates_on(load_machine("cray-t3e-mpi:l=1e-3"), broadcast.run, speed="2x")
    assert run["rates"]["l_s_per_superstep"] == rates.l == 1e-3
    assert run["loss_s"] == book_graph(broadcast.callgraph, rates).main.loss_s


def test_some_supersteps_can_be_chosen(export, broadcast):
    assert export("--out", "x.csv", "--supersteps", "3:7").exit_code == 0
    assert Path("x.csv").read_bytes() == broadcast.bytes("csv", supersteps=(3, 7))


def test_supersteps_beyond_the_last_one_are_an_error_that_names_those_there_are(export):
    done = export("--out", "x.csv", "--supersteps", "5000:6000")
    assert done.exit_code != 0
    assert "there are no supersteps from 5000 to 6000: those of the run are 0 to " in done.output
    assert not Path("x.csv").exists()


@pytest.mark.parametrize(
    ("name", "most", "words"),
    [
        ("chrome", 50_000, "more than 100: choose a part with --supersteps A:B"),
        ("pprof", 500, "more than 10: choose a part with --supersteps A:B"),
        ("speedscope", 3000, "more than 100: choose a part with --supersteps A:B"),
        ("json", 80 * 100, "144 nodes times processes are more than 100"),
    ],
)
def test_what_is_too_large_is_refused_with_the_way_out(broadcast, monkeypatch, name, most, words):
    monkeypatch.setattr(limits, "MOST_BYTES", most)
    with pytest.raises(limits.TooLargeError, match=words):
        broadcast.bytes(name, top=1)


def test_a_file_that_cannot_be_written_is_named(export):
    done = export("--out", "nowhere/x.csv")
    assert done.exit_code == 1
    assert re.fullmatch(r"Error: out: there is no folder .*nowhere\n", done.output)


def test_the_help_lists_every_format_with_what_opens_it(export):
    help_text = " ".join(export("--help").output.split())
    for form in FORMATS:
        assert f"{form.name} ({form.ending}) {form.holds}; for {form.opened_by}" in help_text
    assert "html (.html)" in help_text
