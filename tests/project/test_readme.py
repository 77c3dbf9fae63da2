"""README and CONTRIBUTING are true: the first program runs, folders and commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FIRST_FORTY = "\n".join(README.splitlines()[:40])


BLOCKS = dict(re.findall(r"^```(\w*)\n(.*?)^```$", FIRST_FORTY, re.DOTALL | re.MULTILINE))
"""What stands in the first forty lines, by language; output has none."""


def test_the_program_prints_what_the_readme_says(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(BLOCKS["python"], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (BLOCKS[""], "")


def test_the_first_forty_lines_show_a_picture_that_exists():
    picture = re.search(r"!\[[^]]+\]\(([^)]+)\)", FIRST_FORTY)
    assert picture
    assert (ROOT / picture.group(1)).stat().st_size > 10_000


@pytest.mark.parametrize(
    "command", sorted(set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)?)[`\n ]", README + CONTRIBUTING)))
)
def test_every_make_command_has_a_recipe(command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command}:.*\n\t", makefile, re.MULTILINE)


MADE = ("build/", "dist/", "out/")
"""Folders that commands make."""


@pytest.mark.parametrize(
    "path", re.findall(r"`((?:[\w.]+/)+[\w.]*|\w+\.toml|\.[\w./-]+\.yaml)`", CONTRIBUTING)
)
def test_every_path_in_contributing_exists_or_is_made(path):
    if path.startswith(MADE):
        return
    assert (ROOT / path).exists()


def test_the_hooks_call_tools_of_the_virtual_environment():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"^ +entry: (\S+)", hooks, re.MULTILINE)
    assert len(entries) == hooks.count("- id: ") == hooks.count("language: system")
    assert all(entry.startswith(".venv/bin/") for entry in entries)
    assert re.findall(r"- repo: (\S+)", hooks) == ["local"]


def test_the_table_of_folders_names_every_room():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {"tests"}
    assert rooms <= set(re.findall(r"^\| `(\w+)/` \|", README, re.MULTILINE))


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
