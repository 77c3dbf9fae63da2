"""The pages of the documentation are true: what they name exists, and their programs run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bsplib.profiler.export.table import FORMATS
from tests.commands import run_bsp

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "bsplib/**/*.md", "benchmarks/*.md")
    for path in sorted(ROOT.glob(pattern))
]
LINKED_NAME = re.compile(r"\[`([\w.]+)`\]\(([^)#]+\.py)\)")
NAMED = re.compile(r"`((?:bsplib|profiler|webui|apps|tests|benchmarks|docs)/[\w./-]*[\w/])`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(page):
    names = NAMED.findall(page.read_text(encoding="utf-8"))
    if page.name != "CHANGELOG.md":  # which names files as they were
        assert [name for name in names if not (ROOT / name).exists()] == []


def test_the_architecture_page_names_every_room_of_the_runtime():
    text = (ROOT / "docs/maintaining/architecture.md").read_text(encoding="utf-8")
    rooms = [path.parent.name for path in (ROOT / "bsplib").glob("*/__init__.py")]
    rooms = [room for room in rooms if not (ROOT / "bsplib" / room).is_symlink()]
    assert rooms
    assert [room for room in rooms if f"bsplib/{room}" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_function_and_class_that_a_page_links_is_defined_in_that_file(page):
    missing = []
    for name, link in LINKED_NAME.findall(page.read_text(encoding="utf-8")):
        code = (page.parent / link).read_text(encoding="utf-8")
        parts = [] if name.endswith(".py") else name.split(".")
        missing += [name for part in parts if not re.search(rf"(?:def|class) {part}\b", code)]
    assert missing == []


def blocks(page, language):
    """The programs or commands in a page, each a block of text."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run_command(line):
    """Run a command of a page in the current folder, and return what it prints."""
    words = shlex.split(line)[1:]
    if words[0] == "run":  # it starts processes and replaces sys.argv
        return subprocess.check_output([sys.executable, "-m", "bsplib", *words], text=True)
    done = run_bsp(*words, catch_exceptions=False)
    assert done.exit_code == 0, f"{line}: {done.output}"
    return done.output


@pytest.mark.lengthy
def test_the_programs_and_commands_of_the_page_of_exports_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program, reading = blocks("export.md", "python")
    name = re.match(r"# (\w+\.py)\n", program).group(1)
    Path(name).write_text(program, encoding="utf-8")
    commands = "".join(blocks("export.md", "sh")).splitlines()
    for command in commands:
        run_command(command)
        written = re.search(r"--(?:out|profile) (\S+)", command).group(1)
        assert Path(written).stat().st_size > 0
    subprocess.run([sys.executable, "-c", reading], check=True)


def test_the_page_of_exports_lists_every_format():
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    listed = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|")
    ][2:]
    *known, html = listed
    assert known == [[form.name, form.ending, form.holds, form.opened_by] for form in FORMATS]
    assert html[:2] == ["html", ".html"]
    used = set(re.findall(r"--out \S+?(\.\S+)", page))
    assert used == {row[1] for row in listed}
