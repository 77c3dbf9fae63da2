"""No code is repeated: no six logical lines in a row appear twice in a room.

A *logical line* is a simple statement, however many lines of the file it takes, or the head
of a compound statement, such as ``if done:`` or ``def put(self, pid: int) -> None:``. Blank
lines, comments, docstrings, imports, decorators and overloads, which only declare types, are
left out; indentation and layout have no effect. The head of a function is one line, and its
name is not compared: equal parameters alone are no repetition, but they count as one of the six
lines.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LENGTH = 6


class Line(NamedTuple):
    """A logical line: its number in the file, and its text in a normal form."""

    number: int
    text: str


class Start(NamedTuple):
    """The first line of a passage."""

    file: Path
    position: int
    """How many logical lines of the file are before it."""
    number: int

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.number}"


def logical_lines(statements: Sequence[ast.AST]) -> Iterator[Line]:
    """Yield the logical lines of statements, with those of the blocks inside them."""
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom) or is_docstring(statement):
            continue
        if is_overload(statement):
            continue
        head = copy.copy(statement)
        blocks = []
        for field, value in ast.iter_fields(statement):
            if isinstance(value, list) and value and isinstance(value[0], _BLOCK):
                setattr(head, field, [])
                blocks.append(value)
        if isinstance(head, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            head.decorator_list = []
        if isinstance(head, ast.FunctionDef | ast.AsyncFunctionDef):
            head.name = "_"
        first = statement.pattern if isinstance(statement, ast.match_case) else statement
        yield Line(first.lineno, ast.unparse(head))
        for block in blocks:
            yield from logical_lines(block)


_BLOCK = ast.stmt | ast.ExceptHandler | ast.match_case
"""What the blocks of compound statements consist of."""


def is_docstring(statement: ast.AST) -> bool:
    """Tell whether a statement is a string: the docstring of a function or of a variable."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def is_overload(statement: ast.AST) -> bool:
    """Tell whether a statement only declares the types of a function that follows."""
    return isinstance(statement, ast.FunctionDef) and any(
        isinstance(decorator, ast.Name) and decorator.id == "overload"
        for decorator in statement.decorator_list
    )


def repetitions(files: Sequence[Path]) -> list[str]:
    """Return a sentence for each passage that appears again; longer ones count once."""
    passages: defaultdict[tuple[str, ...], list[Start]] = defaultdict(list)
    for file in files:
        lines = list(logical_lines(ast.parse(file.read_text(encoding="utf-8")).body))
        for position in range(len(lines) - LENGTH + 1):
            passage = tuple(line.text for line in lines[position : position + LENGTH])
            passages[passage].append(Start(file, position, lines[position].number))
    pairs = [
        (first, other)
        for first, *others in passages.values()
        for other in others
        if first.file != other.file or other.position - first.position >= LENGTH
    ]
    known = {(first.file, first.position, other.file, other.position) for first, other in pairs}
    return [
        f"{other} repeats {first}"
        for first, other in pairs
        if (first.file, first.position - 1, other.file, other.position - 1) not in known
    ]


@pytest.mark.lengthy
@pytest.mark.parametrize("room", ["bsplib", "profiler", "webui", "apps", "benchmarks"])
def test_no_six_lines_appear_twice_in_a_room(room):
    files = sorted((ROOT / room).rglob("*.py"))
    # a program in mpi4py beside one of the gallery computes the same, in a file of its own
    assert repetitions([file for file in files if not file.stem.endswith("_mpi4py")]) == []
