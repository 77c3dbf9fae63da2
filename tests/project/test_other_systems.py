"""What needs no real processes works where Python lacks what it lacks on macOS and Windows.

Both are imitated: names of the system are taken away, and the core is the interpreted one, as in
the wheel for every system. Nothing here has run on macOS or Windows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
SYSTEMS = {"macos": {}, "windows": {"PYTHONIOENCODING": "cp1252"}}
"""What is set in the environment, beside where sitecustomize.py is; Windows has no UTF-8 there."""


def there(system, *words):
    """Run Python as on another system."""
    path = os.pathsep.join((str(FOLDER / system), os.environ.get("PYTHONPATH", "")))
    environment = os.environ | {"PYTHONPATH": path, "BSPLIB_CORE": "python"} | SYSTEMS[system]
    done = subprocess.run(
        [sys.executable, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_first_steps_of_a_user_work(system):
    assert len(there(system, str(FOLDER / "first_steps.py")).splitlines()) == 4
