"""The rooms import only this way: webui -> profiler -> bsplib, apps -> profiler, bsplib."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from .imports_of import import_statements

ROOT = Path(__file__).parents[2]

MAY_IMPORT = {
    "bsplib": set(),
    "profiler": {"bsplib"},
    "webui": {"profiler", "bsplib"},
    "apps": {"profiler", "bsplib"},
}

COMMANDS = {path: {"profiler", "webui"} for path in (ROOT / "bsplib" / "cli").glob("*.py")}
COMMANDS[ROOT / "bsplib" / "cli" / "papers.py"] = {"apps"}
LAZY = COMMANDS | {
    ROOT / "bsplib" / "pytest_plugin.py": {"profiler"},
    ROOT / "bsplib" / "notebook" / "magic.py": {"profiler"},
}
"""Which files may import which rooms inside functions: those of ``bsp``, ``pytest``, notebooks."""


def files(room):
    found = sorted((ROOT / room).rglob("*.py"))
    assert found
    return found


def imports(path):
    """(module, whether inside a function) of every import, types-only ones included."""
    for statement, lazily in import_statements(path):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.name, lazily
        else:
            yield statement.module, lazily


def rooms_imported(path):
    return {
        (module.partition(".")[0], lazily)
        for module, lazily in imports(path)
        if module.partition(".")[0] in MAY_IMPORT
    }


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_lies_below_it(room):
    wrong = []
    for path in files(room):
        for other, lazily in rooms_imported(path):
            allowed = {room} | MAY_IMPORT[room] | (LAZY.get(path, set()) if lazily else set())
            if other not in allowed:
                wrong.append(f"{path.relative_to(ROOT)} imports {other}")
    assert wrong == []


@pytest.mark.lengthy
def test_the_arrows_are_drawn_and_not_only_allowed():
    for room, below in MAY_IMPORT.items():
        used = {other for path in files(room) for other, _ in rooms_imported(path)}
        assert (
            used - {room} - {"profiler", "webui", *({"apps"} if room == "bsplib" else ())} <= below
        )
    assert any(("bsplib", False) in rooms_imported(path) for path in files("profiler"))
    assert any(("profiler", False) in rooms_imported(path) for path in files("webui"))
    assert any(("bsplib", False) in rooms_imported(path) for path in files("apps"))


def test_the_command_loads_the_other_rooms_lazily():
    imported = set().union(*map(rooms_imported, COMMANDS))
    assert imported >= {("profiler", True), ("webui", True)}


@pytest.mark.lengthy
def test_names_of_one_room_s_own_are_imported_there_only():
    wrong = []
    for room in MAY_IMPORT:
        for path in files(room):
            for module, _ in imports(path):
                first, *inner = module.split(".")
                if first in MAY_IMPORT and first != room:
                    wrong += [f"{path}: {module}" for part in inner if part.startswith("_")]
    assert wrong == []


HEAVY = {"multiprocessing", "mpi4py", "flask"}

PURE = [
    *(f"bsplib/{name}.py" for name in ("errors", "group")),
    *(f"bsplib/recording/{name}.py" for name in ("records", "trace", "trace_document")),
    *(f"bsplib/transfers/{name}.py" for name in ("delivery", "messages", "place", "registry")),
    *(f"bsplib/{name}.py" for name in ("primitives/superstep", "transfers/target")),
    *(f"profiler/{name}.py" for name in ("costs", "callgraph", "summary", "critical", "format")),
    "webui/services.py",
]


@pytest.mark.parametrize("name", PURE)
def test_the_pure_parts_know_no_processes_and_no_server(name):
    modules = {module.partition(".")[0] for module, _ in imports(ROOT / name)}
    assert modules & HEAVY == set()


def test_a_program_that_runs_loads_no_room_but_the_runtime():
    code = "import sys, bsplib; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = set(done.stdout.split())
    assert "bsplib" in loaded
    assert loaded & {"profiler", "webui", "apps", "flask", "networkx", "pandas", "click"} == set()
