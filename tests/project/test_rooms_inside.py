"""The rooms inside bsplib import only what lies below them, and no modules import each other.

The arrows run ``cli -> running -> recording -> group -> primitives -> transfers ->
backends/base``. An import inside a function is an arrow too, and so is one for types only.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .imports_of import import_statements

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bsplib"

BELOW_ALL = {"errors", "call_site", "sync_kinds", "visible", "version", "extras", "output_file"}
"""Modules that any other one may import, as far as they are there."""

PORTS = {"backends.base", "backends.members", "backends.parcels", "backends.whereabouts"}
"""What a backend offers to those above it: the port, and words for its processes."""

SHARED = PORTS | {
    "backends.asking",
    "backends.launching",
    "backends.outcomes",
    "backends.mismatch",
    "backends.oblivious",
    "backends.system",
}
"""What the backends have in common."""

PROCESSES = {"backends.signals", "backends.blas", "backends.hashes", "backends.stacks"}
"""What backends with real processes have in common."""

BACKENDS = (
    SHARED
    | PROCESSES
    | {
        "backends.mpi",
        "backends.shm",
        "backends.sim",
        "backends.table",
    }
)

MAY_IMPORT = {
    **dict.fromkeys(BELOW_ALL, BELOW_ALL),
    "machine": set(),
    "core": set(),
    **dict.fromkeys(SHARED, SHARED | {"core"}),
    "backends": set(),
    **{name: set() for name in PROCESSES},
    "backends.mpi": SHARED | PROCESSES | {"core", "backends.shm.joining"},
    "backends.shm": SHARED | PROCESSES | {"core"},
    "backends.shm.joining": SHARED | PROCESSES | {"core", "backends.shm"},
    "backends.sim": SHARED | {"core"},
    "backends.table": BACKENDS,
    "transfers": PORTS | {"core"},
    "primitives": PORTS | {"experiments", "transfers", "machine", "core"},
    "experiments": set(),
    "experiments.recorded": {"experiments", "recording"},
    "experiments.runs": {"experiments", "experiments.recorded", "running"},
    "group": PORTS | {"experiments", "primitives", "transfers", "machine", "core"},
    "recording": PORTS | {"group", "primitives", "transfers", "machine", "core"},
    "running": BACKENDS - {"backends.mpi", "backends.shm", "backends.sim"}
    | {"recording", "group", "experiments", "primitives", "transfers", "machine", "core"},
    "own_packages": set(),
    "sentences": set(),
    "output_option": set(),
    "cli": {"own_packages", "sentences", "output_option", "experiments", "experiments.runs"}
    | {"running", "recording", "machine", "core"}
    | {"backends.table", "backends.launching"},
    "pytest_plugin": {"running", "recording"},
    "notebook": {"running", "backends.table"},
    "__main__": {"cli"},
    "__init__": {"running", "recording", "group", "machine", "notebook"},
}
"""What each room may import beside itself and what stands below all; a name with a dot is a
part of a room."""


def modules():
    """Path of every module of bsplib by its name inside the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts)] = path
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


MODULES = modules()


def room_of(name):
    """Return the longest name in the table that a module belongs to."""
    parts = name.split(".")
    known = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((room for room in known if room in MAY_IMPORT), name)


def imports(name):
    """(module, whether inside a function) for every import of another module of bsplib."""
    for statement, lazily in import_statements(MODULES[name]):
        for module in imported(statement):
            yield module, lazily


def imported(node):
    """Names of the modules of bsplib that a statement imports."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        package, _, module = name.partition(".")
        if package == "bsplib":
            yield module_named(module)


def module_named(name):
    """Return the module that a dotted name means, or in which what it means is defined."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name or "__init__"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_imports_only_what_lies_below_its_room(name):
    room = room_of(name)
    allowed = MAY_IMPORT[room] | BELOW_ALL | {room}
    wrong = {other for other, _ in imports(name) if room_of(other) not in allowed}
    assert wrong == set()


def test_no_modules_import_each_other_in_a_circle():
    arrows = {
        name: {other for other, lazily in imports(name) if not lazily} - {name} for name in MODULES
    }
    while leaves := {name for name, others in arrows.items() if not others}:
        arrows = {name: others - leaves for name, others in arrows.items() if name not in leaves}
    assert in_circles(arrows) == {}


def in_circles(arrows):
    """Return what is left once all are gone that lead, or are led to, nowhere."""
    while leaves := set(arrows) - {other for others in arrows.values() for other in others}:
        arrows = {name: others for name, others in arrows.items() if name not in leaves}
    return arrows


def test_bsplib_has_at_most_ten_rooms():
    rooms = {name.partition(".")[0] for name, path in MODULES.items() if path.name == "__init__.py"}
    assert len(rooms - {"__init__"}) <= 10


def test_what_stands_below_all_imports_nothing_above_itself():
    for name in BELOW_ALL & MODULES.keys():
        assert {room_of(other) for other, _ in imports(name)} <= BELOW_ALL
