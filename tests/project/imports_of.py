"""The import statements of a file, for the tests of the rooms."""

from __future__ import annotations

import ast
import functools


def types_only(path):
    """The import statements of a file that only a checker of types performs."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        node.lineno
        for block in blocks
        for each in block.body
        for node in ast.walk(each)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }


@functools.cache  # several tests ask for all files
def import_statements(path):
    """(statement, whether inside a function) of every import, types-only ones included."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    found = []
    for node in ast.walk(tree):
        assert getattr(node, "level", 0) == 0, f"{path}: a relative import"
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, id(node) in inside))
    return found
