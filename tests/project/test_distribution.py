"""Distributions can be built and installed, with a C compiler and without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import bsplib
from bsplib.backends.mpi.installations import OPEN_MPI, WHEELS
from bsplib.core import _build
from bsplib.record.build import name_in_wheel
from tests.processes import run_command, run_python

ROOT = Path(__file__).parents[2]
LINKED = ("profiler", "webui", "apps")
"""Folders at the top that are linked from inside the package."""
DIST_INFO = f"bsplib-{bsplib.__version__}.dist-info"
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
PROGRAM = """
import bsplib
from bsplib import core

def main(bsp):
    x = bsp.zeros(3)
    bsp.put((bsp.pid + 1) % bsp.nprocs, [float(bsp.pid)] * 3, x)
    bsp.sync()
    return float(x.sum())

if __name__ == "__main__":
    for backend in ("shm", "sim"):
        print(bsplib.run(main, nprocs=2, backend=backend))
    print(core.BUILD, core.__file__)
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def without_choice():
    """The environment without a choice of the core."""
    return {name: value for name, value in os.environ.items() if name != "BSPLIB_CORE"}


def build(what, source, folder, **variables):
    """Build a distribution as pip does, with the packages that are installed here."""
    folder.mkdir()
    call = f"from setuptools import build_meta; build_meta.build_{what}({str(folder)!r})"
    done = run_python("-c", call, cwd=source, env=without_choice() | variables, timeout=500)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Warning" not in done.stderr
    (path,) = folder.iterdir()
    return path


def outcome(wheel, folder):
    """Install a wheel where there is no compiler, and run a program: which core it used."""
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target"]
    done = run_command(*install, folder, wheel, env=os.environ | {"PATH": "", "CC": "/bin/false"})
    assert done.returncode == 0, done.stderr
    (folder / "program.py").write_text(PROGRAM)
    done = run_python("-W", "error", "program.py", cwd=folder, env=without_choice())
    assert done.returncode == 0, done.stderr
    *results, core = done.stdout.splitlines()
    assert results == ["[3.0, 0.0]", "[3.0, 0.0]"]
    used, _, file = core.partition(" ")
    assert Path(file) == folder / "bsplib" / "core" / "__init__.py"
    return used


def files_of(names):
    return {name for name in names if not name.endswith("/") and ".dist-info/" not in name}


def there():
    """The files of all packages, as they stand in a checkout."""
    folders = [ROOT / "bsplib", *(ROOT / "bsplib" / room for room in LINKED)]
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    generated = {".pyc", ".so"}
    return {
        str(path.relative_to(ROOT))
        for path in paths
        if path.suffix not in generated and not path.name.startswith("_built")
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    checkout = tmp_path_factory.mktemp("checkout")
    leave = shutil.ignore_patterns("*.so", "_built*", "__pycache__")
    for room in ("bsplib", *LINKED):
        shutil.copytree(ROOT / room, checkout / room, ignore=leave, symlinks=True)
    for file in FILES:
        shutil.copy(ROOT / file, checkout)
    return checkout


@pytest.fixture(scope="module")
def sdist(checkout, tmp_path_factory):
    return build("sdist", checkout, tmp_path_factory.mktemp("sdist") / "dist")


@pytest.fixture
def source(sdist, tmp_path):
    """The folder into which the source distribution was unpacked."""
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path], check=True, timeout=60)
    (folder,) = tmp_path.iterdir()
    return folder


def test_a_source_distribution_has_all_that_a_build_needs(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert there() | set(FILES) <= names
    built = [name for name in names if name.endswith((".c", ".so"))]
    assert [name for name in built if not name.startswith("bsplib/record/shim/")] == []


def test_without_a_compiler_the_wheel_has_the_sources_and_runs_interpreted(source, tmp_path):
    wheel = build("wheel", source, tmp_path / "wheels", CC="/bin/false")
    assert files_of(zipfile.ZipFile(wheel).namelist()) == there()
    assert {path.name for path in zipfile.Path(wheel).iterdir()} == {"bsplib", DIST_INFO}
    assert outcome(wheel, tmp_path / "unpacked") == "python"


@pytest.fixture
def small_source(source):
    """The same with one module to compile, which is all that some tests need."""
    for types in source.rglob("*.pxd"):
        if types.stem not in {"atomics", "clock"}:
            types.unlink()
    return source


def test_a_wheel_has_nothing_that_only_an_earlier_build_had(small_source, tmp_path):
    source = small_source
    module = source / "bsplib" / "removed.py"
    module.write_text("")
    first = build("wheel", source, tmp_path / "first", CC="/bin/false")
    module.unlink()
    for place in (source / "build").glob("lib*/bsplib"):
        Path(_build.extension_path("core.engine", place)).write_text("of an earlier build")
    second = build("wheel", source, tmp_path / "second", CC="/bin/false")
    before, after = (files_of(zipfile.ZipFile(wheel).namelist()) for wheel in (first, second))
    assert before - after == {"bsplib/removed.py"}
    assert after <= there()


def test_an_installation_without_a_compiler_leaves_nothing_compiled(small_source, tmp_path):
    source = small_source
    names = _build.extension_names(source / "bsplib")
    modules = [Path(_build.extension_path(name, source / "bsplib")) for name in names]
    for module in modules:
        module.write_text("compiled from other sources")
    _build.write_note(source / "bsplib", "a digest of them")
    build("editable", source, tmp_path / "wheels", CC="/bin/false")
    assert [module.name for module in modules if module.exists()] == []
    assert _build.read_note(source / "bsplib") is None


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_with_a_compiler_the_wheel_has_core_and_recorders_and_runs_compiled(source, tmp_path):
    wheel = build("wheel", source, tmp_path / "wheels", BSPLIB_CORE="compiled")
    new = files_of(zipfile.ZipFile(wheel).namelist()) - there()
    modules = [_build.extension_path(name, "bsplib") for name in _build.extension_names()]
    assert modules
    shims = [name_in_wheel(is_open_mpi=mpi is OPEN_MPI) for mpi in WHEELS if mpi.is_here()]
    assert new == {
        *modules,
        f"bsplib/core/_built{_build.SUFFIX}.txt",
        *(f"bsplib/record/shim/{shim}" for shim in shims),
    }
    assert outcome(wheel, tmp_path / "unpacked") == "compiled"


def test_a_wheel_for_every_system_has_the_sources_alone_and_runs_interpreted(source, tmp_path):
    wheel = build("wheel", source, tmp_path / "wheels", BSPLIB_CORE="python")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert files_of(zipfile.ZipFile(wheel).namelist()) == there()
    assert outcome(wheel, tmp_path / "installed") == "python"
