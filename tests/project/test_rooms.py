"""The rooms import only this way, imports inside functions and for types only included.

``tools -> webui -> profiler -> runtime`` and ``apps -> profiler -> runtime``; inside the runtime
``running -> recording -> group -> primitives -> transfers -> backends/base``; what records
programs of mpi4py imports none of them, and what joins its records stands above recording. All
are parts of the package ``bsplib``: the folders ``profiler``, ``webui`` and ``apps`` stand at the
top, and are linked from inside it.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from pathlib import Path

import pytest

from tests.processes import run_python

from .imports_of import import_statements, types_only

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bsplib"
LINKED = ("profiler", "webui", "apps")
"""Rooms whose folders stand at the top."""

BELOW_ALL = {
    *("errors", "call_site", "sync_kinds", "directions", "visible", "console", "version", "extras"),
    "output_file",
}
"""Modules that any other one may import, as far as they are there."""

PORTS = {"backends.base", "backends.members"}
"""What a backend offers to those above it: the port, and words for its processes."""

SHARED = PORTS | {
    "backends.blas",
    "backends.signals",
    "backends.launching",
    "backends.outcomes",
    "backends.oblivious",
    "backends.sent",
    "backends.proc_visibility",
}
"""What the backends have in common."""

PROCESSES = {
    "backends.hash_seed",
    "backends.stacks",
}
"""What backends with real processes have in common."""

BACKENDS = (
    SHARED
    | PROCESSES
    | {
        "backends.mpi",
        "backends.shm",
        "backends.sim",
        "backends.stream",
        "backends.table",
    }
)

RUNTIME = BACKENDS | {
    "core",
    "machine",
    "machine.probing",
    "transfers",
    "primitives",
    "experiments",
    "group",
    "record",
    "record.join",
    "record.joining",
    "recording",
    "running",
    "command_options",
}
"""What a program needs to run, and more."""

_COUNTED = RUNTIME | {"profiler"}
PROFILER = _COUNTED | {
    "profiler.compare",
    "profiler.drawing",
    "profiler.export",
    "profiler.models",
    "profiler.profile",
    "profiler.report",
    "profiler.predict",
    "profiler.sweep",
}
"""What the profiler is, and what it stands on."""

_PROGRAMS = PROFILER | {"apps", "__init__"}
"""What a program of the applications may use; the package itself is a program's to import."""

MAY_IMPORT = {
    **dict.fromkeys(BELOW_ALL, BELOW_ALL),
    "machine": set(),
    "machine.probing": (BACKENDS - {"backends.mpi", "backends.shm", "backends.sim"})
    | {"machine", "running", "group", "transfers"},
    "core": set(),
    **dict.fromkeys(SHARED, SHARED | {"core"}),
    "backends": set(),
    **{name: set() for name in PROCESSES},
    "backends.mpi": SHARED | PROCESSES | {"core", "backends.shm.joining"},
    "backends.shm": SHARED | PROCESSES | {"core"},
    "backends.shm.joining": SHARED | PROCESSES | {"core", "backends.shm"},
    "backends.sim": SHARED | {"core"},
    "backends.stream": SHARED | {"core"},
    "backends.table": BACKENDS,
    "transfers": PORTS | {"core"},
    "primitives": PORTS | {"experiments", "transfers", "machine", "core"},
    "experiments": set(),
    "group": PORTS | {"experiments", "primitives", "transfers", "machine", "core"},
    "record": set(),
    "record.join": {"record", "record.joining", "recording"},
    "record.joining": {"record", "recording", "backends.members", "core"},
    "recording": PORTS | {"group", "primitives", "transfers", "machine", "core"},
    "running": BACKENDS - {"backends.mpi", "backends.shm", "backends.sim"}
    | {"recording", "group", "experiments", "primitives", "transfers", "machine", "core"},
    "command_options": set(),
    "profiler": RUNTIME | {"profiler.profile"},  # for types only
    "profiler.drawing": _COUNTED,
    "profiler.models": _COUNTED,
    "profiler.compare": _COUNTED | {"profiler.profile", "profiler.report"},
    "profiler.report": _COUNTED | {"profiler.profile"},
    "profiler.profile": _COUNTED | {"profiler.drawing"},
    "profiler.predict": _COUNTED,
    "profiler.sweep": _COUNTED | {"profiler.models", "profiler.profile"},
    "profiler.export": PROFILER,
    "webui": PROFILER,
    "apps": PROFILER | {"__init__"},
    "apps.broadcast": _PROGRAMS,
    "apps.fourier": _PROGRAMS,
    "apps.gallery": _PROGRAMS,
    "apps.paradigms": _PROGRAMS,
    "apps.sorting": _PROGRAMS,
    "apps.sql": _PROGRAMS | {"apps.sorting"},
    "apps.prediction": _PROGRAMS | {"apps.fourier", "apps.sorting"},
    "apps.papers.call": _PROGRAMS,
    "apps.papers": _PROGRAMS | {"apps.fourier", "apps.sorting", "apps.sql"},
    "tools": PROFILER | {"webui", "loading"},
    "tools.cli": PROFILER | {"webui"},
    "tools.cli.papers": RUNTIME | {"tools.cli", "apps.papers", "apps.papers.call"},
    "__main__": {"tools.cli"},
    "loading": {"profiler.profile", "recording"},
    "__init__": {"running", "recording", "group", "machine", "loading", "tools"},
}
"""What each room may import beside itself and what stands below all; a name with a dot is a
part of a room that stands above or below the rest of it. The package itself, ``__init__``, gives
programs their names, and is a program's to import."""

LOADED_LATE = {"profiler", "webui", "tools", "apps"}
"""Rooms that ``bsplib`` and the ``bsp`` command import inside functions only."""


def modules():
    """Path of every module by its name inside the package; each file once."""
    folders = [(PACKAGE, ()), *((ROOT / room, (room,)) for room in LINKED)]
    found = {}
    for folder, above in folders:
        for path in sorted(folder.rglob("*.py")):
            parts = (*above, *path.relative_to(folder).with_suffix("").parts)
            if folder != PACKAGE or parts[0] not in LINKED:
                found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


@functools.cache
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


@pytest.mark.lengthy
def test_a_module_imports_only_what_lies_below_its_room():
    wrong = {}
    for name in sorted(MODULES):
        room = room_of(name)
        allowed = MAY_IMPORT[room] | BELOW_ALL | {room}
        if above := {other for other, _ in imports(name) if room_of(other) not in allowed}:
            wrong[name] = above
    assert wrong == {}


@pytest.mark.lengthy
def test_no_rooms_import_each_other_in_a_circle():
    """A room and its parts that are named in the table are rooms of their own here. Imports inside
    functions count, as above."""
    rooms = {room_of(name) for name in MODULES} - {"__init__"}
    arrows = {
        room: {
            room_of(other) for name in MODULES if room_of(name) == room for other in performed(name)
        }
        & rooms - {room}
        for room in rooms
    }
    while leaves := {room for room, others in arrows.items() if not others}:
        arrows = {room: others - leaves for room, others in arrows.items() if room not in leaves}
    assert in_circles(arrows) == {}


@pytest.mark.lengthy
def test_nothing_that_is_installed_imports_what_is_not():
    wrong = {}
    for name, path in MODULES.items():
        for statement, _ in import_statements(path):
            roots = {alias.name.partition(".")[0] for alias in statement.names}
            if isinstance(statement, ast.ImportFrom):
                roots = {statement.module.partition(".")[0]}
            if found := roots & {"benchmarks", "docs", "setup", "tests"}:
                wrong[name] = found
    assert wrong == {}


@functools.cache
def performed(name):
    """Return the modules that a module imports when it runs."""
    path = MODULES[name]
    skipped = types_only(path)
    statements = [node for node, _ in import_statements(path) if node.lineno not in skipped]
    return {module for node in statements for module in imported(node)}


def in_circles(arrows):
    """Return what is left once all are gone that lead, or are led to, nowhere."""
    while leaves := set(arrows) - {other for others in arrows.values() for other in others}:
        arrows = {name: others for name, others in arrows.items() if name not in leaves}
    return arrows


@pytest.mark.lengthy
def test_the_package_and_the_command_load_other_rooms_late():
    """``bsp run`` and ``import bsplib`` start faster without them."""
    names = [name for name in MODULES if name.startswith(("__init__", "loading", "tools.cli"))]
    at_once = {
        (name, other)
        for name in names
        for other, lazily in imports(name)
        if not lazily and other.partition(".")[0] in LOADED_LATE - {"tools"}
    }
    types_only = {("loading", "profiler.profile")}
    assert at_once <= types_only


@pytest.mark.lengthy
def test_names_of_one_room_s_own_are_imported_there_only():
    wrong = []
    kernels = [name for name in MODULES if name.startswith("apps.kernels.")]  # built as the core is
    for name in MODULES:
        for other, _ in imports(name):
            if name in kernels and other == "core._no_cython":
                continue
            if other.partition(".")[0] != name.partition(".")[0]:
                wrong += [f"{name}: {other}" for part in other.split(".") if part.startswith("_")]
    assert [each for each in wrong if not each.endswith("__init__")] == []


# -- one import name ------------------------------------------------------------------------------


@pytest.mark.parametrize("room", LINKED)
def test_a_room_at_the_top_is_linked_from_inside_the_package(room):
    assert os.readlink(PACKAGE / room) == f"../{room}"


@pytest.mark.lengthy
def test_no_file_imports_a_room_by_the_name_of_its_folder():
    """From the root of the repository this would work, and would load a second copy."""
    wrong = []
    named = re.compile(rf"^\s*(import|from)\b.*(?<![.\w])({'|'.join(LINKED)})\b", re.MULTILINE)
    for folder in ("bsplib", *LINKED, "benchmarks", "tests", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if named.search(text) is None:  # most files: parsing all of them takes seconds
                continue
            for node in ast.walk(ast.parse(text)):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                if not getattr(node, "level", 0):
                    wrong += [f"{path}: {name}" for name in names if name.split(".")[0] in LINKED]
    assert wrong == []


# -- what the pure parts do without ---------------------------------------------------------------

HEAVY = {"multiprocessing", "mpi4py", "flask", "waitress", "werkzeug"}

PURE = [
    *(f"bsplib/{name}.py" for name in ("errors", "group")),
    *(f"bsplib/recording/{name}.py" for name in ("records", "trace", "trace_document")),
    *(f"bsplib/transfers/{name}.py" for name in ("delivery", "messages", "place", "registry")),
    *(
        f"bsplib/{name}.py"
        for name in ("primitives/oblivious", "primitives/superstep", "transfers/target")
    ),
    *(f"profiler/{name}.py" for name in ("costs", "callgraph", "critical", "format")),
    *(f"webui/{name}.py" for name in ("services", "layout", "page", "traces", "answers")),
    "webui/opened_runs.py",
]


@pytest.mark.parametrize("name", PURE)
def test_the_pure_parts_know_no_processes_and_no_server(name):
    modules = set()
    for node, _ in import_statements(ROOT / name):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules |= {each.split(".")[0] for each in names or [getattr(node, "module", "")]}
    assert modules & HEAVY == set()


@pytest.mark.lengthy
def test_a_program_that_runs_loads_no_room_but_the_runtime():
    code = "import sys, bsplib; bsplib.run; print(*sorted(sys.modules))"
    done = run_python("-c", code, check=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert "bsplib.running.launch" in loaded
    assert loaded & {"flask", "networkx", "pandas", "click"} == set()
    assert loaded & {f"bsplib.{room}" for room in LOADED_LATE} == set()


FOR_FEW_PROGRAMS = {
    *("bsplib.recording.recording", "bsplib.running.machine_prices"),
    *("cloudpickle", "difflib", "hashlib", "logging", "multiprocessing", "secrets", "ssl"),
    *("sysconfig", "tempfile", "tomllib", "zipfile"),
    *("dataclasses", "greenlet", "traceback", "zlib", "bsplib.machine"),
    *("bsplib.transfers.checker", "bsplib.transfers.watch"),
    *(f"bsplib.core.{name}" for name in ("sampling", "virtual")),
    *(f"bsplib.apps.kernels.{name}" for name in ("numbering", "sums")),
}
"""What a program loads when it does what only some programs do, or starts processes."""


@pytest.mark.lengthy
def test_the_names_of_the_package_load_only_what_every_program_needs():
    code = (
        "import sys, numpy; before = set(sys.modules); import bsplib; bsplib.run, bsplib.Group; "
        "print(*set(sys.modules) - before)"
    )
    done = run_python("-c", code, check=True, cwd=ROOT)
    assert set(done.stdout.split()) & FOR_FEW_PROGRAMS == set()
