"""Text from an untrusted trace cannot control the terminal."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from click.testing import CliRunner
from rich.console import Console

import bsplib
from bsplib.machine import Machine, load_machine
from bsplib.machine.probing.probe import Probed
from bsplib.machine.probing.table import table
from bsplib.recording.records import Trace
from bsplib.recording.trace import read_trace, write_trace
from bsplib.tools.cli import main as bsp
from bsplib.visible import visible, visible_lines

HOSTILE = "\x1b]0;owned\x07\x1b[31m\r[red]x[/nothing] $a$\n"


def main(bsp):
    bsp.sync()


@pytest.fixture
def trace(tmp_path):
    """Write a trace whose Machine, with these figures, has a hostile name and source."""

    def write(**figures):
        path = tmp_path / "hostile.bsp"
        bsplib.run(main, nprocs=2, backend="sim", profile=path)
        (run,) = read_trace(path).runs
        machine = asdict(replace(load_machine("shared-memory"), name=HOSTILE, **figures))
        texts = {"program": HOSTILE, "backend": HOSTILE, "error": HOSTILE}
        meta = run.meta | texts | {"machine": machine}
        write_trace(path, Trace((replace(run, meta=meta, complete=False),)))
        return path

    return write


def shown(*line, code):
    result = CliRunner().invoke(bsp, [*map(str, line)])
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


def test_text_is_made_visible_on_one_line_or_on_its_own():
    assert visible("größe\x1b[0m\nx\u202e\udc80") == r"größe\x1b[0m\nx\u202e\udc80"
    assert visible_lines("a\x07b\nc\td") == "a\\x07b\nc\\td"
    assert Machine("m\x07", "source", g=1.0, l=0.0).label == r"m\x07"
