"""While a command reads a long trace, a person at a terminal sees that it is at work."""

from __future__ import annotations

import pytest

import bsplib
from bsplib.tools.cli import traces
from tests.commands import run_bsp


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace whose name is markup for rich, with an escape sequence."""
    path = tmp_path_factory.mktemp("traces") / "[red]a\x1b[2J.bsp"
    bsplib.run(lambda bsp: bsp.sync(), nprocs=2, backend="sim", profile=path)
    return path


@pytest.fixture
def terminal(monkeypatch):
    """Let rich take any output for a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def long(monkeypatch):
    """Let all files be long."""
    monkeypatch.setattr(traces, "LONG_BYTES", 0)


@pytest.mark.usefixtures("terminal", "long")
def test_of_a_long_trace_the_terminal_says_that_it_is_read(trace, capsys):
    assert len(traces.read(trace).runs) == 1
    shown = capsys.readouterr()
    assert "reading [red]a\\x1b[2J.bsp" in shown.err
    assert "\x1b[2J" not in shown.err
    assert not shown.out


@pytest.mark.usefixtures("terminal", "long")
def test_the_table_of_a_long_trace_is_alone_on_standard_output(trace):
    result = run_bsp("report", trace)
    assert result.exit_code == 0
    assert "summing up the records" in result.stderr
    assert "summing up" not in result.stdout
    assert "reading" not in result.stdout


@pytest.mark.usefixtures("terminal")
def test_a_short_trace_is_read_without_a_word(trace, capsys):
    traces.read(trace)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("long")
def test_a_long_trace_is_read_without_a_word_where_nobody_looks(trace, capsys):
    traces.read(trace)
    with traces.summing_up(trace):
        pass
    assert capsys.readouterr() == ("", "")
