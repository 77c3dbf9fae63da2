"""No function rebinds a name of its module: what a function needs is passed to it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.processes import run_command

ROOT = Path(__file__).parents[2]

_HANDLER = "handlers of signals belong to the process, and are given no argument"
_JOB = "a process belongs to one job of MPI from its start to its end"
EXCEPTIONS = {
    "bsplib/backends/signals.py": _HANDLER,
    "bsplib/backends/mpi/ranks.py": _JOB,
    "bsplib/backends/table.py": "standard output belongs to the process, and is dropped once",
}
"""Files that may have the statement ``global``, with the reason."""


def sources():
    """Return the Python files of the repository, without what is shown or run as an example."""
    listed = run_command("git", "ls-files", "*.py", cwd=ROOT, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def with_global(source):
    """Tell whether a source has the statement ``global``."""
    if "global " not in source:  # most files: parsing all of them takes seconds
        return False
    return any(isinstance(node, ast.Global) for node in ast.walk(ast.parse(source)))


def test_the_statement_is_found_in_a_function_only_where_it_is_one():
    assert with_global("def f():\n    global x\n    x = 1\n")
    assert not with_global("text = 'global x'\n")


@pytest.mark.lengthy
def test_only_what_belongs_to_the_process_is_global():
    found = {name for name in sources() if with_global((ROOT / name).read_text("utf-8"))}
    assert found == set(EXCEPTIONS)
