"""What the targets of the Makefile install on a new machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.processes import run_command

ROOT = Path(__file__).parents[2]


@pytest.fixture
def commands(tmp_path):
    """Return the commands of a target in a copy without a virtual environment.

    ``uv`` is the path of the command; empty where it is not installed.
    """
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)

    def commands(target, uv=""):
        done = run_command(
            "make", "--dry-run", "--directory", tmp_path, f"UV={uv}", target, check=True
        )
        return done.stdout

    return commands


def test_the_demo_installs_no_extras(commands):
    demo = commands("demo")
    assert "--no-deps --editable ." in demo
    assert "[dev" not in demo


def test_the_demo_compiles_nothing_and_what_compiles_the_core_needs_a_compiler(commands):
    assert "build_ext" not in commands("demo")
    assert "gcc" not in commands("demo")
    core = commands("core")
    assert core.index("gcc") < core.index("build_ext")


def test_uv_installs_what_the_demo_needs_where_it_is_there(commands):
    lines = commands("demo", uv="/somewhere/uv").splitlines()
    installed = [line for line in lines if "pip install" in line]
    assert len(installed) == 2
    assert all("/somewhere/uv pip install" in line for line in installed)
    assert any("/somewhere/uv venv --quiet --seed --python python3 .venv" in line for line in lines)
    assert "python3 -m venv .venv" in commands("demo")
    assert "/uv " not in commands("demo")


def test_lint_checks_the_types_of_the_scripts_with_a_node_of_its_own(commands):
    lint = commands("lint")
    assert "npm-cli.js install" in lint
    assert "--project tests/typing/page/jsconfig.json" in lint
    assert "npm-cli.js" not in commands("demo")
