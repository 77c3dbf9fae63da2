"""Run the quick tests on the versions of Python that pyproject.toml names.

    python tests/pythons.py           on every version
    python tests/pythons.py 3.14      on these, whether or not pyproject.toml names them
    python tests/pythons.py --ends    on the oldest and the newest that this computer has

uv downloads a version that is not on this computer, and is installed if it is not there. A version
that cannot be had is named, and left out. Each version gets an environment of its own in
``build/pythons/``, which stays for the next time.

With ``--ends`` no Python is downloaded, the version of the environment of ``make test`` is not run
again, and a version for which packages cannot be installed is no failure.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
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
QUICK = ("-m", "pytest", "-m", "quick", "-q")


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


def downloaded(versions: list[str]) -> dict[str, str]:
    """Let uv download Pythons; return those that can be had, and name the others in a sentence."""
    if not versions:
        return {}
    uv, reason = installed_uv(), "uv is not installed, and pip cannot install it"
    if uv is not None:
        for version in versions:
            done = quietly(uv, "python", "install", version)
            reason = f"uv says {(done.stderr.splitlines() or [''])[-1].strip()!r}"
    found = {version: interpreter(version) for version in versions}
    if missing := [version for version, python in found.items() if python is None]:
        print(f"Python {', '.join(missing)} could not be had: {reason}.", flush=True)
    return {version: python for version, python in found.items() if python is not None}


def installed_uv() -> str | None:
    """Return the command uv, which is installed beside this Python where there is none."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    if shutil.which("uv", path=path) is None:
        quietly(sys.executable, "-m", "pip", "install", "--quiet", "uv")
    return shutil.which("uv", path=path)


def quietly(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command, and keep what it prints."""
    return subprocess.run(command, check=False, capture_output=True, text=True)


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
    parser.add_argument("versions", nargs="*", help="default: those that pyproject.toml names")
    options = parser.parse_args()
    ends = options.ends
    pythons = {version: interpreter(version) for version in options.versions or claimed()}
    missing = [version for version, python in pythons.items() if python is None]
    if not ends:
        pythons |= downloaded(missing)
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
