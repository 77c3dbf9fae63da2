"""Run the quick tests on the versions of Python that pyproject.toml names.

    python tests/pythons.py           on every version that this computer has
    python tests/pythons.py --ends    on the oldest and the newest of them

With ``--ends`` the version of the environment of ``make test`` is not run again, and a version for
which packages cannot be installed is no failure. Each version gets an environment of its own in
``build/pythons/``, which stays for the next time. A version that is not on this computer is named,
and left out: nothing but packages is downloaded.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / "build" / "pythons"
EXTRAS = ("dev", "sql", "predict", "notebook", "mpi")
NOT_FOR_QUICK_TESTS = ("basedpyright", "bsplib", "mypy", "ruff")
"""Packages of the extras that no quick test imports; some of them are large."""
PATTERNS = ("~/.pyenv/versions/{}.*/bin/python", "~/.local/share/uv/python/cpython-{}.*/bin/python")
"""Where pyenv and uv keep the Pythons that they install, by version."""
NOT_INSTALLED = "the packages that tests need cannot be installed"
QUICK = ("-m", "pytest", "--quick", "-q")


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def claimed() -> list[str]:
    """Return the versions that the classifiers name, oldest first."""
    names = "\n".join(project()["project"]["classifiers"])
    found = re.findall(r"Python :: (3\.\d+)$", names, re.MULTILINE)
    return sorted(found, key=lambda version: int(version.partition(".")[2]))


def candidates(version: str) -> Iterable[str]:
    """Yield what may be an interpreter of this version."""
    yield f"python{version}"
    for pattern in PATTERNS:
        path = Path(pattern.format(version)).expanduser()
        first, rest = Path(path.anchor), path.relative_to(path.anchor)
        yield from map(str, sorted(first.glob(str(rest))))


def interpreter(version: str) -> str | None:
    """Return an interpreter of this version that can make an environment; None if there is none."""
    return next(filter(partial(is_of, version), candidates(version)), None)


def is_of(version: str, command: str) -> bool:
    ask = [command, "-c", "import ensurepip, sys, venv; print(*sys.version_info[:2], sep='.')"]
    try:
        done = subprocess.run(ask, check=True, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.stdout.strip() == version


def requirements() -> list[str]:
    """Return what builds bsplib, what it needs, and what quick tests need."""
    told = project()
    extras = told["project"]["optional-dependencies"]
    names = [name for extra in EXTRAS for name in extras[extra]]
    kept = [name for name in names if not name.startswith(NOT_FOR_QUICK_TESTS)]
    every = [*told["build-system"]["requires"], *told["project"]["dependencies"], *kept]
    return list(dict.fromkeys(every))


def run(*command: str | Path) -> bool:
    """Run a command in the repository; return whether it succeeded."""
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return not subprocess.run(command, check=False, cwd=ROOT, env=variables).returncode


def outcome(version: str, python: str) -> str:
    """Run the quick tests on a version; return what went wrong, or an empty text."""
    own = ENVIRONMENTS / version / "bin" / "python"
    install = [own, "-m", "pip", "install", "--quiet"]
    made = own.exists() or run(python, "-m", "venv", ENVIRONMENTS / version)
    if not (made and run(*install, "--no-compile", *requirements())):
        return NOT_INSTALLED
    if not run(*install, "--no-build-isolation", "--no-deps", "--editable", ROOT):
        return "bsplib cannot be built"
    return "" if run(own, *QUICK) else "tests failed"


def without_one_that_is_tested(found: list[str]) -> list[str]:
    """Return the oldest and the newest version, but for that of the environment of make test."""
    this = ".".join(map(str, sys.version_info[:2]))
    return [version for version in dict.fromkeys([found[0], found[-1]]) if version != this]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ends", action="store_true", help="only the oldest and the newest")
    ends = parser.parse_args().ends
    pythons = {version: interpreter(version) for version in claimed()}
    found = {version: python for version, python in pythons.items() if python is not None}
    missing = [version for version in pythons if version not in found]
    versions = without_one_that_is_tested(list(found)) if ends and found else list(found)
    print(
        f"Python here: {', '.join(found) or 'none'}; not here: {', '.join(missing) or 'none'};",
        f"running the quick tests on: {', '.join(versions) or 'no further one'}",
        flush=True,
    )
    failed = False
    for version in versions:
        print(f"-- Python {version} ({found[version]})", flush=True)
        if wrong := outcome(version, found[version]):
            print(f"Python {version}: {wrong}", flush=True)
            failed |= not (ends and wrong == NOT_INSTALLED)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
