"""An installation contains every module and data file of the source."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

import bsplib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = {"bsplib": "bsplib"} | {f"bsplib.{room}": room for room in ("profiler", "webui", "apps")}
"""The folder of each room, by the name of its package."""


def packages():
    """Every folder with Python files, as a package's name."""
    return {
        ".".join((room, *path.parent.relative_to(ROOT / folder).parts))
        for room, folder in ROOMS.items()
        for path in (ROOT / folder).rglob("*.py")
    }


def test_the_only_name_that_an_installation_takes_is_bsplib():
    assert {name.partition(".")[0] for name in packages()} == {"bsplib"}


def test_every_package_is_listed():
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages()


@pytest.mark.parametrize("room", ROOMS)
def test_every_other_file_of_a_package_is_package_data(room):
    patterns = PROJECT["tool"]["setuptools"]["package-data"].get(room, [])
    folder = ROOT / ROOMS[room]
    listed = {path for pattern in patterns for path in folder.glob(pattern)}
    there = {
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc", ".so"}
        if not path.name.startswith("_built")  # beside the extension modules of a checkout
    }
    assert there - listed == set()


@pytest.mark.parametrize(
    ("package", "pattern"),
    [
        (package, pattern)
        for package, patterns in PROJECT["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
    ],
)
def test_package_data_exist(package, pattern):
    assert list((ROOT / package.replace(".", "/")).glob(pattern))


def test_the_console_script_is_there():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="bsp")
    assert PROJECT["project"]["scripts"] == {"bsp": script.value}
    assert callable(script.load())


@pytest.mark.parametrize("name", ["readme", "license-files"])
def test_files_that_the_project_names_exist(name):
    value = PROJECT["project"][name]
    for file in [value] if isinstance(value, str) else value:
        assert (ROOT / file).is_file()


def test_one_version_is_told_by_the_package_the_project_and_the_changelog():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)$", changes, re.MULTILINE)
    assert PROJECT["project"]["version"] == bsplib.__version__ == newest[1]


def test_readme_and_changelog_name_the_versions_of_python_that_the_project_names():
    versions = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"]]
    minors = [name for name in versions if name.startswith("3.")]
    for page in ("README.md", "CHANGELOG.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert f"Python {minors[0]} to {minors[-1]}" in text
