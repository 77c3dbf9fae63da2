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
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    found = [*_imports(tree.body, in_function=False, for_types=False)]
    for statement, _, _ in found:
        assert getattr(statement, "level", 0) == 0, f"{path}: a relative import"
    lines = {statement.lineno for statement, _, for_types in found if for_types}
    return [(statement, in_function) for statement, in_function, _ in found], lines


def _imports(block, *, in_function, for_types):
    """Yield (import, whether in a function, whether for types only); expressions have none."""
    for statement in block:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement, in_function, for_types
        inside = in_function or isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        typed = for_types or (
            isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
        )
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            skipped = typed if name == "body" else for_types
            yield from _imports(getattr(statement, name, ()), in_function=inside, for_types=skipped)
