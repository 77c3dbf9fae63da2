"""What extras install is needed by few commands only, and these say so in one sentence."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from pathlib import Path

import pytest

import bsplib
from bsplib.extras import EXTRAS
from tests.processes import run_python

from .imports_of import import_statements, types_only

pytestmark = pytest.mark.lengthy  # each test starts an interpreter

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
RANKS = ROOT / "bsplib" / "backends" / "mpi"
"""Whose modules are imported in ranks; what starts these has asked for mpi4py before."""
FOR_DEVELOPERS = {"dev", "bench", "docs"}

HIDING = """
import os, sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package in os.environ["HIDDEN_PACKAGES"].split(","):
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)

sys.meta_path.insert(0, Hiding())
"""


def names(requirements):
    return {re.match(r"[\w-]+", requirement).group() for requirement in requirements}


@pytest.fixture
def without(tmp_path):
    """Runs a Python command line as where some packages are not installed."""
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "sitecustomize.py").write_text(HIDING, encoding="utf-8")

    def run(packages, *line):
        environment = os.environ | {
            "PYTHONPATH": str(tmp_path / "hiding"),
            "HIDDEN_PACKAGES": ",".join(packages),
        }
        return run_python(*line, cwd=tmp_path, env=environment)

    return run


# -- pyproject.toml --------------------------------------------------------------------------


def test_the_table_of_extras_is_that_of_the_project():
    extras = {extra: names(OPTIONAL[extra]) for extra in set(EXTRAS.values())}
    table = {package.lower(): extra for package, extra in EXTRAS.items()}  # imported as IPython
    assert {package: extra for extra in extras for package in extras[extra]} == table


def test_all_has_every_extra_for_users():
    (combined,) = OPTIONAL["all"]
    members = re.fullmatch(r"bsplib\[([\w,]+)\]", combined).group(1).split(",")
    assert set(members) == set(OPTIONAL) - FOR_DEVELOPERS - {"all"}


def test_the_supported_versions_of_python_are_stated():
    stated = [line for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert stated == [f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)]
    assert PROJECT["requires-python"] == ">=3.11"


# -- imports -----------------------------------------------------------------------------------


def imported(path):
    """Packages that a module imports, but for type checkers."""
    skipped = types_only(path)
    for node, _ in import_statements(path):
        if node.lineno not in skipped:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            yield from (name.partition(".")[0] for name in names or [node.module])


def is_for_ranks(path):
    """Tell whether a module is for ranks of an MPI only."""
    return path.parent == RANKS or path.stem.endswith("_mpi4py")


@pytest.mark.parametrize("room", ["bsplib", "profiler", "webui", "apps"])
def test_packages_of_extras_are_imported_by_the_one_helper_only(room):
    wrong = [
        f"{path.relative_to(ROOT)}: {package}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for package in imported(path)
        if package in EXTRAS and not (package == "mpi4py" and is_for_ranks(path))
    ]
    assert wrong == []


# -- commands where an extra is missing --------------------------------------------------------

SQL = ("-m", "bsplib.apps.sql")
SWEEP = ("-m", "bsplib", "sweep", "-n", "2", "--set")
NEEDING = [
    ("pyarrow", (*SQL, "generate", "tables", "--size", "10")),
    ("pyarrow", (*SQL, "run", "--size", "10", "-n", "2")),
    ("pyarrow", (*SQL, "story", "--size", "100")),
    ("duckdb", (*SQL, "run", "--size", "10", "-n", "2")),
    ("scipy", ("-m", "bsplib.apps.prediction")),
    ("matplotlib", ("-m", "bsplib.apps.broadcast", "-n", "3", "--crossover", "--plot", "x.png")),
    ("matplotlib", (*SWEEP, "size=1:2", "--plot", "x.png", "-m", "bsplib.apps.broadcast")),
]


@pytest.mark.parametrize(
    ("package", "line"), NEEDING, ids=[" ".join(line[1:3]) for _, line in NEEDING]
)
def test_a_command_names_the_extra_that_it_lacks(without, tmp_path, package, line):
    done = without([package], *line)
    extra = EXTRAS[package]
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"Error: this needs {package}, which is not installed; it is in the extra {extra!r}: "
        f"pip install {package}\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["hiding"]


HELP = """
import importlib, sys
import click
from bsplib.tools.cli import main
from click.testing import CliRunner

def parts(command, name):
    yield command, name
    for part, inner in getattr(command, "commands", {}).items():
        yield from parts(inner, f"{name} {part}")

commands = list(parts(main, "bsp"))
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    commands += parts(getattr(module, "cli", None) or module.command, name)
for command, name in commands:
    done = CliRunner().invoke(command, ["--help"])
    print(name, done.exit_code, "Usage:" in done.output)
"""


def test_every_command_shows_its_help_without_any_extra(without):
    apps = [
        ".".join(("bsplib", *path.relative_to(ROOT).with_suffix("").parts))
        for path in sorted((ROOT / "apps").rglob("*.py"))
        if re.search(r"^@click\.(command|group)|^command = ", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert {
        "bsplib.apps.sql.cli",
        "bsplib.apps.broadcast.broadcast",
        "bsplib.apps.fourier.fft",
    } <= set(apps)
    done = without(EXTRAS, "-c", HELP, *apps)
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.splitlines()
    assert len(shown) > len(apps) + 8  # the commands of bsp, and those of bsplib.apps.sql
    assert [line for line in shown if not line.endswith(" 0 True")] == []


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """The trace of a run."""
    path = tmp_path_factory.mktemp("trace") / "run.bsp"
    bsplib.run(lambda bsp: bsp.sync(), nprocs=2, profile=path)
    return path


def test_a_program_runs_and_is_recorded_without_any_extra(without):
    line = ("-n", "2", "--onestage", "1", "--twostage", "1", "--profile", "run.bsp")
    done = without(EXTRAS, "-m", "bsplib.apps.broadcast", *line)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        ("report",),
        ("predict",),
        ("view", "--html", "page.html"),
    ],
    ids=lambda line: line[0],
)
def test_a_run_is_shown_and_predicted_without_any_extra(without, trace, line):
    done = without(EXTRAS, "-m", "bsplib", *line, trace)
    assert (done.returncode, done.stderr.strip()) == (0, "")  # a progress bar ends a line
