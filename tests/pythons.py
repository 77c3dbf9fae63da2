"""Run the quick tests on the versions of Python that pyproject.toml names.

    python tests/pythons.py           on every version
    python tests/pythons.py 3.14      on these, whether or not pyproject.toml names them
    python tests/pythons.py --ends    on the oldest and the newest that this computer has, but for
                                      that of this environment, whose tests make test runs

uv, which pip installs where it is not there, downloads those that this computer does not have. A
version that cannot be had is named, and left out. Each version gets an environment of its own in
``build/pythons/``, which stays for the next time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / "build" / "pythons"
EXTRAS = ("dev", "sql", "predict", "notebook", "mpi")
NOT_FOR_QUICK_TESTS = ("basedpyright", "bsplib", "mypy", "ruff")
"""Packages of the extras that no quick test imports; some of them are large."""
PATTERNS = (".pyenv/versions/{}.*/bin/python", ".local/share/uv/python/cpython-{}.*/bin/python")
"""Where pyenv and uv keep the Pythons that they install, by version."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def claimed() -> list[str]:
    """Return the versions that the classifiers name, oldest first."""
    names = "\n".join(PROJECT["project"]["classifiers"])
    found = re.findall(r"Python :: (3\.\d+)$", names, re.MULTILINE)
    return sorted(found, key=lambda version: int(version.partition(".")[2]))


def ends() -> list[str]:
    """Return the oldest and the newest version that is here, without that of this environment."""
    here = [version for version in claimed() if interpreter(version)]
    this = ".".join(map(str, sys.version_info[:2]))
    return [version for version in dict.fromkeys([*here[:1], *here[-1:]]) if version != this]


def interpreter(version: str) -> str | None:
    """Return a Python of this version on this computer, of pyenv, of uv or on the PATH."""
    for pattern in PATTERNS:
        for path in Path.home().glob(pattern.format(version)):
            return str(path)
    return shutil.which(f"python{version}")


def requirements() -> list[str]:
    """Return what builds bsplib, what it needs, and what quick tests need."""
    extras = PROJECT["project"]["optional-dependencies"]
    names = [name for extra in EXTRAS for name in extras[extra]]
    kept = [name for name in names if not name.startswith(NOT_FOR_QUICK_TESTS)]
    return [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"], *kept]


def run(*command: str | Path) -> bool:
    """Run a command in the repository; return whether it succeeded."""
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return not subprocess.run(command, check=False, cwd=ROOT, env=variables).returncode


def outcome(version: str) -> str:
    """Run the quick tests on a version; return what went wrong, or an empty text."""
    folder = ENVIRONMENTS / version
    own = folder / "bin" / "python"
    install = ("uv", "pip", "install", "--quiet", "--python", own)
    python = interpreter(version) or version  # which uv downloads
    if not own.exists() and not run("uv", "venv", "--quiet", "--python", python, folder):
        return "could not be had"
    if not run(*install, *requirements()):
        return "the packages that tests need cannot be installed"
    if not run(*install, "--no-build-isolation", "--no-deps", "--editable", ROOT):
        return "bsplib cannot be built"
    return "" if run(own, "-m", "pytest", "-m", "quick", "-q") else "tests failed"


def main(versions: list[str]) -> bool:
    """Run the quick tests on some versions; return whether they failed on one that is there."""
    os.environ["PATH"] += os.pathsep + str(Path(sys.executable).parent)
    if shutil.which("uv") is None:
        run(sys.executable, "-m", "pip", "install", "--quiet", "uv")
    wrong = {version: outcome(version) for version in versions}
    for version, why in wrong.items():
        print(f"Python {version}: {why or 'the quick tests pass'}", flush=True)
    return any(why not in ("", "could not be had") for why in wrong.values())


if __name__ == "__main__":
    named = sys.argv[1:]
    sys.exit(main(ends() if named == ["--ends"] else named or claimed()))
