"""The bsp command finds its own packages where a user's module has the name of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bsplib
from bsplib.own_packages import NAMES

pytestmark = pytest.mark.lengthy  # each test starts an interpreter

BSP = (sys.executable, "-m", "bsplib")
SCRIPT = Path(sys.executable).parent / "bsp"

PROGRAM = """
import bsplib
{imports}

def main(bsp):
    bsp.sync()
    print({prints})

if __name__ == "__main__":
    bsplib.run(main, nprocs=2)
"""

APP = """
import bsplib, click

def main(bsp, size):
    for _ in range(size):
        bsp.sync()

@click.command()
@click.option("--size", type=int)
@click.option("--nprocs", type=int)
@click.option("--backend", default="shm")
@click.option("--profile")
def command(size, **place):
    bsplib.run(main, size, **place)
"""


@pytest.fixture
def run(tmp_path):
    """Runs a command line in a folder of its own, and returns its output and its errors."""

    def go(*line, path=None):
        environment = os.environ | ({} if path is None else {"PYTHONPATH": str(path)})
        done = subprocess.run(
            [*map(str, line)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return go


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """The trace of a run."""
    path = tmp_path_factory.mktemp("trace") / "run.bsp"
    bsplib.run(lambda bsp: bsp.sync(), nprocs=2, profile=path)
    return path


@pytest.fixture
def hidden(tmp_path):
    """Modules of a user that have the names of packages of bsplib, and raise."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('of the user')", encoding="utf-8")


def sentence(folder, name):
    return (
        f"bsplib: {folder / name}.py hides the package {name} that comes with bsplib; the one of "
        f"bsplib is used here\n"
    )


COMMANDS = [("report",), ("view", "--html", "page.html")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_bsp_does_not_see_the_modules_of_the_working_directory(run, trace, hidden, command):
    _, errors = run(SCRIPT, *command, trace)
    assert errors == ""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_python_m_bsplib_finds_its_own_packages_and_says_what_hides_them(
    run, trace, hidden, tmp_path, command
):
    _, errors = run(*BSP, *command, trace)
    names = ("profiler", "webui") if command[0] == "view" else ("profiler",)
    assert sorted(errors.splitlines(keepends=True)) == [sentence(tmp_path, name) for name in names]


def test_bsp_finds_its_own_packages_behind_a_python_path(run, trace, hidden, tmp_path):
    _, errors = run(SCRIPT, "view", "--html", "page.html", trace, path=tmp_path)
    assert sorted(errors.splitlines(keepends=True)) == [
        sentence(tmp_path, name) for name in ("profiler", "webui")
    ]


def test_a_folder_that_hides_a_package_is_named(run, trace, tmp_path):
    (tmp_path / "profiler").mkdir()
    (tmp_path / "profiler" / "__init__.py").write_text("raise RuntimeError", encoding="utf-8")
    _, errors = run(*BSP, "report", trace)
    assert errors.startswith(f"bsplib: {tmp_path / 'profiler'} hides the package profiler ")


def test_the_graph_is_laid_out_beside_a_module_that_the_layout_would_import(run, trace, tmp_path):
    for name in ("resource", "pygraphviz"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('of the user')", encoding="utf-8")
    output, errors = run(SCRIPT, "view", "--html", "page.html", trace)
    assert (output, errors) == ("wrote page.html: open it in a browser\n", "")


@pytest.mark.parametrize("bsp", [(SCRIPT,), BSP], ids=["bsp", "python -m bsplib"])
def test_a_script_imports_its_own_modules(run, tmp_path, bsp):
    (tmp_path / "inner").mkdir()
    program = PROGRAM.format(
        imports=f"import {', '.join(NAMES)}", prints=", ".join(f"{name}.MINE" for name in NAMES)
    )
    (tmp_path / "inner" / "script.py").write_text(program, encoding="utf-8")
    for name in NAMES:
        (tmp_path / "inner" / f"{name}.py").write_text(f"MINE = 'my {name}'", encoding="utf-8")
        (tmp_path / f"{name}.py").write_text("raise RuntimeError", encoding="utf-8")
    output, errors = run(*bsp, "run", "inner/script.py")
    assert sorted(output.splitlines()) == [
        f"[{pid}] my profiler my webui my apps" for pid in (0, 1)
    ]
    assert errors == ""


def test_a_script_imports_its_own_modules_where_the_path_is_safe(run, tmp_path):
    (tmp_path / "profiler.py").write_text("MINE = 'mine'", encoding="utf-8")
    (tmp_path / "rest").mkdir()
    (tmp_path / "rest" / "more.py").write_text("MINE = 'more'", encoding="utf-8")
    program = PROGRAM.format(imports="import profiler, more", prints="profiler.MINE, more.MINE")
    (tmp_path / "script.py").write_text(program, encoding="utf-8")
    line = (sys.executable, "-P", "-m", "bsplib", "run", "script.py")
    output, _ = run(*line, path=tmp_path / "rest")
    assert sorted(output.splitlines()) == ["[0] mine more", "[1] mine more"]


TUNE = ("tune", "-n", "2", "--repeats", "1", "--parameter", "size=1:2")


def test_an_application_of_bsplib_is_tuned_where_a_user_has_a_module_apps(run, hidden, tmp_path):
    line = ("apps.broadcast", "--", "--onestage", "1", "--twostage", "1")
    output, errors = run(SCRIPT, *TUNE, *line)
    assert "Best on" in output
    # bsp tune puts the working directory first, as python -m does.
    assert errors == sentence(tmp_path, "apps")


def test_an_application_in_a_package_of_the_user_named_apps_is_tuned(run, tmp_path):
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "apps" / "mine.py").write_text(APP, encoding="utf-8")
    output, errors = run(SCRIPT, *TUNE, "apps.mine")
    assert "Best on" in output
    assert errors == ""


def test_tune_says_which_module_an_application_cannot_import(run, hidden, tmp_path):
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    output, errors = run(SCRIPT, *TUNE, "app.py")
    assert "Best on" in output
    assert errors.splitlines() == [
        f"tune: app.py cannot import {name}.py, since bsplib has a package of this name; rename "
        f"the file if app.py needs it"
        for name in NAMES
    ]


def test_an_application_that_is_a_program_finds_the_profiler_of_bsplib(run, tmp_path):
    (tmp_path / "profiler.py").write_text("raise RuntimeError", encoding="utf-8")
    _, errors = run(sys.executable, "-m", "apps.sql", "schema")
    assert errors == sentence(tmp_path, "profiler")
