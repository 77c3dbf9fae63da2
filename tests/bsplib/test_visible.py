"""Text from an untrusted trace cannot control the terminal."""

from __future__ import annotations

import io
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

import bsplib
from bsplib.console import Console
from bsplib.machine import Machine, load_machine
from bsplib.machine.probing.probe import Probed
from bsplib.machine.probing.table import table
from bsplib.profiler.callgraph import Node
from bsplib.profiler.format import label
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from bsplib.visible import visible, visible_lines
from tests.commands import run_bsp
from tests.recordings import record_run

HOSTILE = "\x1b]0;owned\x07\x1b[31m\r[red]x[/nothing] $a$\n"


def main(bsp):
    bsp.sync()


@pytest.fixture
def trace(tmp_path):
    """Write a trace whose Machine, with these figures, has a hostile name and source."""

    def write(**figures):
        path = tmp_path / "hostile.bsp"
        run = record_run(path, main, nprocs=2, backend="sim")
        machine = asdict(replace(load_machine("shared-memory"), name=HOSTILE, **figures))
        texts = {"program": HOSTILE, "backend": HOSTILE, "error": HOSTILE}
        meta = run.meta | texts | {"machine": machine}
        write_trace(path, Trace((replace(run, meta=meta, complete=False),)))
        return path

    return write


def shown(*line, code):
    result = run_bsp(*line)
    assert result.exit_code == code, result.output
    output = result.output.replace("\n", "")
    assert output.isprintable()
    assert r"\x1b" in output
    return output


def test_a_hostile_machine_is_shown_by_predict(trace):
    assert r"on \x1b]0;owned\x07\x1b[31m\r[red]x[/nothing] $a$\n" in shown(
        "predict", trace(speed=1e9), code=0
    )


@pytest.mark.parametrize(
    ("figures", "line", "words"),
    [
        ({"l": None, "source": HOSTILE}, [], "has no l"),
        ({"speed": None}, ["--machine", "ibm-sp2-pvm"], "does not have the speed"),
        ({"patterns": {}}, ["--pattern", "exchange"], "has no g and L of exchange"),
    ],
)
def test_a_hostile_machine_is_named_in_an_error(trace, figures, line, words):
    assert words in shown("predict", *line, trace(**figures), code=1)


def test_hostile_metadata_are_shown_by_report(trace):
    shown("report", trace(), code=0)


def test_a_hostile_path_is_named_in_an_error(tmp_path):
    shown("report", tmp_path / "\x1b[31m.bsp", code=1)


def test_a_machine_is_probed_under_any_name():
    machine = replace(load_machine("shared-memory"), name=HOSTILE, speed=1e9)
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table(Probed(machine, {})))
    assert "\x1b]" not in capture.get()
    assert r"\x1b]0;owned" in capture.get()


def test_a_console_shows_no_control_character_whatever_is_printed():
    table = Table(HOSTILE)
    table.add_row(Text(HOSTILE))
    file = io.StringIO()
    Console(file=file, width=200).print(HOSTILE, Text(HOSTILE), table)
    shown = file.getvalue()
    assert shown.replace("\n", "").isprintable()
    assert shown.count(r"\x1b]0;owned") == 4


def test_a_console_on_a_terminal_has_its_own_colours():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard", _environ={})
    console.print(Text("\x1b[31m", style="green"))
    assert file.getvalue() == "\x1b[32m\\x1b[31m\x1b[0m\n"


@pytest.mark.parametrize("room", ["bsplib", "profiler", "webui"])
def test_every_command_prints_on_that_console(room):
    for path in (Path(bsplib.__file__).parents[1] / room).rglob("*.py"):
        text = path.read_text()
        others = "rich.console" in text and re.search(r"\bConsole\((?!rich)", text)
        assert not others or "bsplib.console" in text, path


def test_a_hostile_name_of_a_sync_is_no_part_of_a_label():
    node = Node("n0", "cost_centre", "main", "a.py", 1, "\x1b[31m\u202e")
    assert label(node) == r"main (\x1b[31m\u202e)"


def test_text_is_made_visible_on_one_line_or_on_its_own():
    assert visible("größe\x1b[0m\nx\u202e\udc80") == r"größe\x1b[0m\nx\u202e\udc80"
    assert visible_lines("a\x07b\nc\td") == "a\\x07b\nc\\td"
    assert Machine("m\x07", "source", g=1.0, l=0.0).label == r"m\x07"
