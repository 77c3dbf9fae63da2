"""A user's modules may have any name but bsplib: no room of bsplib is imported by its folder's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.processes import run_command, run_python

pytestmark = pytest.mark.lengthy  # each test starts an interpreter

BSP = Path(sys.executable).parent / "bsp"
LINES = {"bsp": (BSP,), "-m": (sys.executable, "-m", "bsplib")}
NAMES = ("apps", "profiler", "webui", "tools", "core", "recording", "errors", "visible")

PROGRAM = """
import apps, profiler, webui
import bsplib

def main(bsp):
    bsp.sync()
    return bsp.pid

if __name__ == "__main__":
    print(bsplib.run(main, nprocs=2, profile="own.bsp"), apps.OWN, profiler.OWN, webui.OWN)
    print(bsplib.load("own.bsp").runs[0].nprocs)
"""


@pytest.fixture(params=["module", pytest.param("package", marks=pytest.mark.slow)])
def folder(request, tmp_path):
    """A folder in which a user has modules, or packages, with names of rooms of bsplib."""
    for name in NAMES:
        if request.param == "module":
            (tmp_path / f"{name}.py").write_text("OWN = True\n", encoding="utf-8")
        else:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text("OWN = True\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def output(folder, *line, errors="", **environment):
    """Run a command line in the folder; return its output, and check its standard error."""
    done = run_command(*line, cwd=folder, env=os.environ | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == errors
    return done.stdout


def test_a_script_imports_its_own_modules_and_reads_its_trace(folder):
    assert output(folder, sys.executable, "program.py") == "[0, 1] True True True\n2\n"


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        pytest.param("module", LINES["bsp"], id="module-bsp"),
        pytest.param("package", LINES["-m"], id="package--m", marks=pytest.mark.slow),
        pytest.param("module", LINES["-m"], id="module--m", marks=pytest.mark.slow),
        pytest.param("package", LINES["bsp"], id="package-bsp", marks=pytest.mark.slow),
    ],
    indirect=["folder"],
)
def test_every_command_uses_the_rooms_of_bsplib(folder, line):
    assert "True True True" in output(folder, *line, "run", "program.py")
    assert "run 1: program.py" in output(folder, *line, "report", "own.bsp")
    output(folder, *line, "view", "--html", "page.html", "own.bsp")
    assert "<html" in (folder / "page.html").read_text(encoding="utf-8")
    path = str(folder)
    assert "run 1: program.py" in output(folder, *line, "report", "own.bsp", PYTHONPATH=path)


@pytest.mark.slow
def test_a_program_of_bsplib_runs_beside_modules_of_its_names(folder):
    line = ("run", "-n", "2", "-m", "bsplib.apps.gallery.heat")
    assert output(folder, BSP, *line)


def test_the_name_of_a_folder_imports_nothing_elsewhere(tmp_path):
    code = "import profiler"
    done = run_python("-c", code, cwd=tmp_path)
    assert "No module named 'profiler'" in done.stderr
