"""The programs and commands of the how-to pages run, and print what the pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "docs/compare.md",
    "docs/maintaining/call.md",
]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def steps(text):
    """(file, its content) and (command, what it prints) of a page, in order."""
    for language, block in BLOCK.findall(text):
        if language == "python":
            yield block.partition("\n")[0].removeprefix("# "), block
        else:
            for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, output = command.partition("\n")
                yield f"$ {line}", output


def lines(text):
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_prints_what_it_shows(page, tmp_path):
    binaries = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": os.pathsep.join([binaries, os.environ["PATH"]]),
        "COLUMNS": "100",
        "PYTHONPATH": str(tmp_path),
    }
    commands = 0
    for name, content in steps((ROOT / page).read_text(encoding="utf-8")):
        if not name.startswith("$ "):
            (tmp_path / name).write_text(content, encoding="utf-8")
            continue
        done = subprocess.run(
            ["bash", "-c", name.removeprefix("$ ")],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        commands += 1
        assert lines(done.stdout) == lines(content), name
    assert commands
