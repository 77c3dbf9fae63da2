"""README and CONTRIBUTING are true: the first program runs, folders and commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest

from tests.processes import run_python

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FIRST_FORTY = "\n".join(README.splitlines()[:40])


BLOCKS = dict(re.findall(r"^```(\w*)\n(.*?)^```$", FIRST_FORTY, re.DOTALL | re.MULTILINE))
"""What stands in the first forty lines, by language; output has none."""


@pytest.mark.lengthy
def test_the_program_prints_what_the_readme_says(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(BLOCKS["python"], encoding="utf-8")
    done = run_python(script)
    assert (done.stdout, done.stderr) == (BLOCKS[""], "")


def commands():
    """Every command that the README shows to be typed, in order, without its comment."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


@pytest.fixture
def bsp(tmp_path):
    """Begins a command of ``bsp`` in a folder that has the program of the README."""
    (tmp_path / "ring.py").write_text(BLOCKS["python"], encoding="utf-8")
    begun = []

    def begin(words):
        process = subprocess.Popen(
            [sys.executable, "-m", "bsplib", *words],
            cwd=tmp_path,
            env=os.environ | {"BROWSER": "true"},  # a program that shows nothing
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_every_command_works(bsp):
    shown = [words for words in commands() if words[0] == "bsp"]
    assert [words[1] for words in shown][:3] == ["run", "report", "view"]
    for words in shown:
        process = bsp(words[1:])
        if words[1] == "view":  # serves until it is interrupted
            address = next(
                filter(None, (re.search(r"http://\S+", line) for line in process.stdout))
            )
            with urllib.request.urlopen(address.group(), timeout=30) as page:
                assert b"<html" in page.read()
        else:
            output, _ = process.communicate(timeout=60)
            assert process.returncode == 0, output
            assert output


def test_commands_are_those_of_bsp_and_pip_with_extras_that_exist():
    assert {words[0] for words in commands()} == {"bsp", "pip"}
    assert [words for words in commands() if words[0] == "pip"] == [["pip", "install", "."]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(re.findall(r"'\.\[(\w+)\]'", README))
    assert named
    assert named <= set(project["optional-dependencies"])


def test_the_first_forty_lines_show_a_picture_that_exists():
    picture = re.search(r"!\[[^]]+\]\(([^)]+)\)", FIRST_FORTY)
    assert picture
    assert (ROOT / picture.group(1)).stat().st_size > 10_000


@pytest.mark.parametrize(
    "command", sorted(set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)?)[`\n ]", README + CONTRIBUTING)))
)
def test_every_make_command_has_a_recipe_or_what_it_makes(command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command}:(?: +\S|.*\n\t)", makefile, re.MULTILINE)


def test_continuous_integration_calls_what_the_readme_shows():
    calls = [
        line
        for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
        if line.startswith("make")
    ]
    assert calls == ["make test"]
    assert "`make test`" in FIRST_FORTY


def test_the_head_of_a_report_is_that_of_the_page_about_reports():
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```console\n(\$ bsp report .*?)^```$", README, re.S | re.M)
    assert len(shown.splitlines()) > 5
    assert f"\n{shown}" in page  # whose outputs are compared with those of the commands
