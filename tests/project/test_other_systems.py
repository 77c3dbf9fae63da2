"""What needs no real processes works where Python lacks what it lacks on macOS and Windows.

Both are imitated: names of the system are taken away, and the core is the interpreted one, as in
the wheel for every system. Nothing here has run on macOS or Windows.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.processes import run_python

FOLDER = Path(__file__).parent
SYSTEMS = {"macos": {}, "windows": {"PYTHONIOENCODING": "cp1252"}}
"""What is set in the environment, beside where sitecustomize.py is; Windows has no UTF-8 there."""


def there(system, *words):
    """Run Python as on another system."""
    path = os.pathsep.join((str(FOLDER / system), os.environ.get("PYTHONPATH", "")))
    environment = os.environ | {"PYTHONPATH": path, "BSPLIB_CORE": "python"} | SYSTEMS[system]
    # On Windows what is printed is not UTF-8.
    done = run_python(*words, env=environment, errors="replace", timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_first_steps_of_a_user_work(system):
    assert len(there(system, str(FOLDER / "first_steps.py")).splitlines()) == 4


PROGRAMS = sorted(
    path.stem
    for path in (FOLDER.parents[1] / "apps" / "gallery").glob("*.py")
    if not path.stem.endswith(("_mpi4py", "_multiprocessing", "references", "__"))
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_programs_of_the_gallery_run_on_virtual_processors(system, program, tmp_path):
    trace = str(tmp_path / "gallery.bsp")
    words = ("-m", "bsplib", "run", "--backend", "sim", "-n", "4", "--profile", trace, "-m")
    folder = [str(FOLDER)] if program == "map_files" else []
    there(system, *words, f"bsplib.apps.gallery.{program}", *folder)
    assert "4 processes, backend sim" in there(system, "-m", "bsplib", "report", trace)
