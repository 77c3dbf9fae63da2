"""What needs no real processes works where Python lacks what it lacks on macOS.

macOS is imitated: names of the system are taken away, and the core is the interpreted one, as in
the wheel for any system. Nothing here has run on a computer from Apple.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
(RING,) = re.findall(r"^```python\n(# ring.py.*?)^```$", README, re.DOTALL | re.MULTILINE)
SWEPT = """
import bsplib

def main(bsp, block):
    bsp.charge(1e-6 * block)
    for _ in range(0, 64, block):
        bsp.sync()

if __name__ == "__main__":
    bsplib.run(main, 8, nprocs=4, backend="sim", machine="shared-memory")
"""


@pytest.fixture
def there(tmp_path):
    """Run Python as on macOS, in a folder with two programs."""
    (tmp_path / "ring.py").write_text(RING, encoding="utf-8")
    (tmp_path / "steps.py").write_text(SWEPT, encoding="utf-8")
    path = os.pathsep.join(
        (str(ROOT / "tests" / "project" / "macos"), os.environ.get("PYTHONPATH", ""))
    )
    environment = os.environ | {"PYTHONPATH": path, "BSPLIB_CORE": "python"}

    def run(*words, status=0):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_a_program_runs_on_virtual_processors_and_is_looked_at(there, tmp_path):
    bsp = ("-m", "bsplib")
    ran = there(*bsp, "run", "--backend", "sim", "-n", "4", "--profile", "ring.bsp", "ring.py")
    assert "[12.0, 0.0, 4.0, 8.0]" in ran
    assert "ring.py line" in there(*bsp, "report", "ring.bsp")
    assert "OBSP*" in there(*bsp, "predict", "ring.bsp", "--machine", "ideal:g=1e-9,l=1e-6")
    there(*bsp, "export", "ring.bsp", "--out", "ring.svg")
    there(*bsp, "view", "--html", "ring.html", "ring.bsp")
    assert "ring.py" in (tmp_path / "ring.html").read_text(encoding="utf-8")


def test_real_processes_are_refused_in_a_sentence_that_names_virtual_ones(there):
    said = there("ring.py", status=1)
    assert said.splitlines()[-1] == (
        "bsplib.errors.StartError: run: the processes of backend 'shm' need Linux, and this is "
        'darwin; backend="sim" runs the same program in one process'
    )
