"""Source lines cut into pieces by what they are to Python, for the page to colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

if TYPE_CHECKING:
    from collections.abc import Sequence


Piece = str | tuple[str, str]
"""Plain text, or a role and its text."""

_ROLES = (
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Name.Decorator, "decorator"),
    (Name.Function, "function"),
    (Name.Class, "function"),
    (Name.Builtin, "builtin"),
    (String, "string"),
    (Number, "number"),
    (Comment, "comment"),
)


def highlight(lines: Sequence[str]) -> list[list[Piece]]:
    """Return the pieces of each line; joined, their texts are the lines."""
    lexer = PythonLexer(stripnl=False)
    pieces: list[list[Piece]] = [[]]
    for token, text in lexer.get_tokens("\n".join(lines)):
        role = next((role for kind, role in _ROLES if token in kind), "")
        first, *others = text.split("\n")
        _append(pieces[-1], role, first)
        for part in others:
            pieces.append([])
            _append(pieces[-1], role, part)
    return pieces[: len(lines)]


def _append(line: list[Piece], role: str, text: str) -> None:
    """Add a text to a line: to its last piece, if that has the same role."""
    before = line.pop() if line else ""
    old_role, old_text = ("", before) if isinstance(before, str) else before
    if old_role != role and old_text:
        line.append(before)
        old_text = ""
    if old_text or text:
        line.append((role, old_text + text) if role else old_text + text)
