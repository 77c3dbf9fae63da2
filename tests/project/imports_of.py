"""The import statements of a file, for the tests of the rooms."""

from __future__ import annotations

import ast
import functools


def types_only(path):
    """The lines of import statements that only a checker of types performs."""
    return _read(path)[1]


def import_statements(path):
    """(statement, whether inside a function) of every import, types-only ones included."""
    return _read(path)[0]


@functools.cache  # several tests ask for all files, and parsing all takes seconds
def _read(path):
    """Return what the two functions above return."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))))
    statements = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in statements:
        assert getattr(node, "level", 0) == 0, f"{path}: a relative import"
    inside = _below(nodes, lambda node: isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for_types = _below(nodes, _is_for_types)
    lines = {node.lineno for node in statements if id(node) in for_types}
    return [(node, id(node) in inside) for node in statements], lines


def _is_for_types(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _below(nodes, is_block):
    """Return the import statements, as their ids, in the bodies of some nodes."""
    return {
        id(node)
        for block in nodes
        if is_block(block)
        for statement in block.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
