"""What the pages show is true: programs run, commands print what stands below them."""

from __future__ import annotations

import ast
import re
import shlex
from contextlib import suppress
from itertools import chain

import click
import pytest

from bsplib.tools.cli import main as bsp

from .pages import (
    Command,
    Program,
    blocks,
    name_of,
    outputs,
    pages,
    sessions,
    steps,
    texts_of_picture,
)

TAUGHT = pages(".", "tutorial", "howto", "reference", "maintaining", "gallery")
ELSEWHERE = {"export", "mistakes"}
"""Pages whose programs other tests run."""
OF_OTHERS = {"python", "pip", "make", "mpiexec", "salloc", "srun"}
"""Commands in pages that are not those of bsplib."""
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`]+)`")
RUN = [page for page in TAUGHT if name_of(page) not in ELSEWHERE]
WITH_COMMANDS = [page for page in RUN if any(isinstance(step, Command) for step in steps(page))]
WITH_COMMANDS.sort(key=lambda page: page.stem != "report")  # of all, make test runs the first
WITH_SESSIONS = [page for page in RUN if sessions(page)]


@pytest.mark.lengthy
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_every_command_of_a_page_prints_what_the_page_shows(page, server, tmp_path):
    for command, printed in outputs(page, tmp_path, server):
        assert printed == command.output, command.line
    for picture in tmp_path.glob("*.svg"):
        drawn, shown = (
            texts_of_picture(each.read_text(encoding="utf-8"))
            for each in (picture, page.with_name(picture.name))
        )
        assert drawn == shown


@pytest.mark.lengthy(values="all")
@pytest.mark.parametrize("page", WITH_SESSIONS, ids=name_of)
def test_every_session_of_a_page_answers_as_the_page_says(page, server, tmp_path):
    for step in steps(page):
        if isinstance(step, Program):
            (tmp_path / step.name).write_text(step.text, encoding="utf-8")
    (tmp_path / "sessions.txt").write_text(sessions(page), encoding="utf-8")
    status, printed = server.run("python -m doctest sessions.txt", tmp_path)
    assert printed == ""
    assert status == 0


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_every_program_of_a_page_is_a_file_with_a_command_or_a_part_of_one(page):
    run = "".join(step.line for step in steps(page) if isinstance(step, Command))
    for language, text in blocks(page):
        if language == "python" and ">>> " not in text:
            ast.parse(text)
    files = [step.name for step in steps(page) if isinstance(step, Program)]
    imported = "".join(step.text for step in steps(page) if isinstance(step, Program))
    unused = [
        name for name in files if name not in run and f"import {name[:-3]}" not in imported + run
    ]
    assert unused == [] or not run


CITED = re.compile(r"(?:(\w+)\.py|…\w*\.?py)(?: line |:)(\d+)(?: · (\w+))?")
"""A line of a program: file, number, and the primitive that is called there."""
ENDS = re.compile(r"bsp\.\w+\(|^def |#cll|^\w.*\(|@\w")


def lines_cited(page):
    """(file, line, primitive, programs of that name) for each line of a program that is cited."""
    programs = {}
    for step in steps(page):
        if isinstance(step, Program):
            programs.setdefault(step.name, []).append(step.text.splitlines())
    for name, number, primitive in CITED.findall(page.read_text(encoding="utf-8")):
        shown = programs.get(f"{name}.py", []) if name else [*chain(*programs.values())]
        if shown:
            yield name, int(number), primitive, shown


@pytest.mark.parametrize("page", pages(".", "tutorial", "howto"), ids=name_of)
def test_a_program_that_is_copied_whole_has_the_lines_that_are_cited(page):
    for name, number, primitive, shown in lines_cited(page):
        found = [lines[number - 1].strip() for lines in shown if number <= len(lines)]
        assert any(primitive in line if primitive else ENDS.search(line) for line in found), (
            f"{name}.py line {number} {primitive}",
            found,
        )


def commands(page):
    """The commands of a page that are shown without what they print, as words.

    Without whole scripts, such as those for a batch system.
    """
    shown = [text for language, text in blocks(page) if language == "sh" and text[:2] != "#!"]
    text = "\n".join(shown).replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    inline = [" ".join(found.split()) for found in INLINE.findall(prose)]
    lines += [line for line in inline if line.startswith("bsp ") and line[4].islower()]
    return [shlex.split(line, comments=True) for line in lines if line and line[0] != "#"]


def command_of(words):
    """The command that words ask for, and the words that follow its name."""
    command = bsp
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        assert words[0] in command.commands, words
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("page", TAUGHT, ids=name_of)
def test_every_command_that_a_page_shows_exists_with_its_options(page):
    for program, *words in commands(page):
        assert program in OF_OTHERS | {"bsp"}, words
        if program == "bsp":
            command, arguments = command_of(words)
            context = click.Context(command, **command.context_settings)
            with suppress(click.BadOptionUsage):  # prose names options without a value
                command.make_parser(context).parse_args(arguments)  # raises NoSuchOption
