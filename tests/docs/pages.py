"""Programs, commands and sessions in the pages of the documentation.

A block of Python whose first line is ``# name.py`` is a file. A block ``console`` has commands,
each after ``$``, and what they print. A block of Python with ``>>>`` is a session. A block
``sh`` has commands that are not run here. ``python -m tests.docs.pages PAGE...`` runs pages and
writes into them what their commands print.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .command_server import CommandServer

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ ([^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)
CIRCUMSTANCES = re.compile(r", host [^<]*")
"""Of a run, in a picture of it: they differ from run to run."""
FILE = re.compile(r"# ([\w/]+\.\w+)\n")


class Program(NamedTuple):
    """A file that a page shows."""

    name: str
    text: str


class Command(NamedTuple):
    """A command with what it prints."""

    line: str
    output: str


def pages(*folders: str) -> list[Path]:
    """Return the pages in folders of the documentation, by name."""
    return [page for folder in folders for page in sorted((DOCS / folder).glob("*.md"))]


def name_of(page: Path) -> str:
    """Return what a page is called in the name of a test."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return (language, text) of each block of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def steps(page: Path) -> Iterator[Program | Command]:
    """Return the files and the commands of a page, in order."""
    for language, text in blocks(page):
        if language == "console":
            yield from (Command(line, output) for line, output in COMMAND.findall(text))
        elif named := FILE.match(text):
            yield Program(named[1], text)


def sessions(page: Path) -> str:
    """Return the sessions of a page as one text."""
    return "\n".join(text for language, text in blocks(page) if ">>> " in text)


def outputs(page: Path, folder: Path, server: CommandServer) -> Iterator[tuple[Command, str]]:
    """Write the files of a page into a folder, and run its commands there.

    Yields:
        Each command, and what it prints now.
    """
    for step in steps(page):
        if isinstance(step, Program):
            (folder / step.name).write_text(step.text, encoding="utf-8")
        else:
            status, printed = server.run(step.line, folder)
            failed = "" if status in (0, 1) else f"[exit status {status}]\n"
            yield step, as_shown(printed, folder) + failed


def texts_of_picture(drawn: str) -> list[str]:
    """Return what is written in a picture; where Graphviz puts it depends on its version."""
    return re.findall(r"<text [^>]*>([^<]*)<", CIRCUMSTANCES.sub("", drawn))


def as_shown(printed: str, folder: Path) -> str:
    """Return what a command prints as pages show it.

    Without spaces at ends of lines, the name of the folder, and how long pytest took.
    """
    lines = re.sub(
        r" in \d+\.\d+s$", "", printed.replace(f"{folder}/", ""), flags=re.M
    ).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def update(page: Path) -> None:
    """Write into a page what its commands print, and beside it the pictures they make."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, CommandServer() as server:
        for command, printed in outputs(page, Path(folder).resolve(), server):
            shown = f"$ {command.line}\n"
            text = text.replace(shown + command.output, shown + printed)
        for picture in Path(folder).glob("*.svg"):
            drawn = CIRCUMSTANCES.sub("", picture.read_text(encoding="utf-8"))
            page.with_name(picture.name).write_text(drawn, encoding="utf-8")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        update(Path(argument).resolve())
