"""``docs/report.md``: its outputs are those of the commands above them, and all is explained."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import bsplib
from bsplib.profiler.kinds import KINDS
from bsplib.profiler.rows import SORTS
from tests.commands import run_bsp
from tests.processes import run_python

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "traces.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [
    (line, output)
    for language, text in BLOCKS
    if language == "console"
    for line, output in re.findall(r"^\$ ([^\n]+)\n((?:(?!\$ )[^\n]*\n)*)", text, re.MULTILINE)
]
REPORTS = [(line, output) for line, output in COMMANDS if line.startswith("bsp report")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The program of the page, and the traces of its runs."""
    folder = tmp_path_factory.mktemp("page")
    for language, text in BLOCKS:
        if language == "python" and text.startswith("# "):
            name = text.partition("\n")[0].removeprefix("# ")
            (folder / name).write_text(text, encoding="utf-8")
    for line, _ in COMMANDS:
        if line.startswith("bsp run"):
            run_python("-m", "bsplib", *shlex.split(line)[1:], cwd=folder, check=True)
    return folder


@pytest.mark.lengthy
@pytest.mark.parametrize(("line", "output"), REPORTS, ids=[line for line, _ in REPORTS])
def test_a_report_is_as_the_page_shows_it(folder, monkeypatch, line, output):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    done = run_bsp(*shlex.split(line)[1:])
    assert done.output == output


def test_the_page_names_every_kind_of_loss_and_every_order():
    rows = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)
    named = {row.removesuffix(" straggler").removesuffix(" straggler in a branch") for row in rows}
    assert set(KINDS) <= named
    assert [
        order for order in SORTS if f"`{order}`" not in PAGE and order not in {"loss", "time"}
    ] == []


def unnamed(names):
    """Names that the reference does not have; of the metrics it has those of computation."""
    others = {name for name in names if f"`{name}`" not in REFERENCE}
    return {name for name in others if not re.match(r"(comm|idle|h)_(max|avg|min|by)_", name)}


@pytest.mark.lengthy
def test_the_reference_names_everything_in_the_document(folder):
    done = run_bsp("report", "--json", folder / "heat.bsp")
    assert unnamed(re.findall(r'"(\w+)":', done.stdout)) == set()


@pytest.mark.lengthy
def test_the_reference_names_every_column_of_the_tables(folder):
    (run,) = bsplib.load(folder / "heat.bsp").runs
    assert unnamed(run.nodes().columns) == unnamed(run.supersteps().columns) == set()
