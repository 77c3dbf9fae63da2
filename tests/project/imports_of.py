"""The import statements of a file, for the tests of the rooms."""

from __future__ import annotations

import ast
import functools


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
