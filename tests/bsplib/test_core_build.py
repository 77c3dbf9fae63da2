"""Which build of the core is used, and that bsplib says so.

Each test has a copy of bsplib with two more modules in the core. Files in the place of
extension modules are there or not, and are or are not of the sources beside them. None of them
can be loaded.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import bsplib
from bsplib.core import _build
from tests.processes import run_python

pytestmark = pytest.mark.lengthy  # each test starts an interpreter

PACKAGE = Path(bsplib.__file__).parent
ASK = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from bsplib import core
print(core.BUILD)
print(core.REASON)
print(*[warning.message for warning in caught if warning.category is RuntimeWarning])
print(core.__file__)
"""


@pytest.fixture
def folder(tmp_path):
    """The core of a copy of bsplib without extension modules."""
    leave = shutil.ignore_patterns("*.so", "_built*", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "bsplib", ignore=leave)
    core = tmp_path / "bsplib" / "core"
    for name in ("first", "second"):
        (core / f"{name}.py").write_text("")
        (core / f"{name}.pxd").write_text("")
    return core


@pytest.fixture
def pretend(folder):
    """Put files in the place of some or all extension modules, with the note of a build."""

    def put(*some):
        root = str(folder.parent)
        names = some or _build.extension_names(root)
        for name in names:
            Path(_build.extension_path(name, root)).write_text("no machine code")
        _build.write_note(root, _build.digest(root))

    return put


@pytest.fixture
def ask(folder):
    """Ask the copy which build it uses."""

    def ask_it(**variables):
        environment = {name: value for name, value in os.environ.items() if name != "BSPLIB_CORE"}
        done = run_python("-c", ASK, cwd=folder.parents[1], env=environment | variables)
        if done.returncode:
            return done.stderr.splitlines()[-1]
        *answers, file = done.stdout.splitlines()
        assert Path(file).parent == folder
        return answers

    return ask_it


def test_a_core_that_was_not_compiled_is_interpreted_without_a_warning(ask):
    build, reason, warned = ask()
    assert build == "python"
    assert reason == "the core of bsplib is interpreted: it was not compiled"
    assert warned == ""


def test_a_core_of_which_a_part_is_there_is_interpreted_with_a_warning(ask, pretend):
    pretend("core.first")
    build, reason, warned = ask()
    assert build == "python"
    assert reason.endswith("only a part of its modules is there")
    assert warned.startswith(reason)
    assert "make core" in warned


def test_what_a_build_has_left_that_failed_is_not_used_and_not_warned_of(ask, folder, pretend):
    pretend()
    _build.remove_note(str(folder.parent))
    assert ask() == ["python", "the core of bsplib is interpreted: it was not compiled", ""]


@pytest.mark.parametrize("ending", [".py", ".pxd"])
def test_extension_modules_of_other_sources_are_not_used(ask, folder, pretend, ending):
    pretend()
    with (folder / f"first{ending}").open("a") as source:
        source.write("# changed\n")
    build, reason, warned = ask()
    assert build == "python"
    assert reason.endswith("its sources were changed after they were compiled")
    assert warned.startswith(reason)


def test_extension_modules_that_cannot_be_loaded_are_not_used(ask, pretend):
    pretend()
    build, reason, warned = ask()
    assert build == "python"
    assert "its compiled modules cannot be loaded (ImportError: " in reason
    assert warned.startswith(reason)


def test_the_environment_chooses_the_interpreted_core_without_a_warning(ask, pretend):
    pretend()
    build, reason, warned = ask(BSPLIB_CORE="python")
    assert build == "python"
    assert reason.endswith("BSPLIB_CORE=python chooses it")
    assert warned == ""


def test_where_the_environment_asks_for_the_compiled_core_its_lack_is_an_error(ask):
    assert ask(BSPLIB_CORE="compiled") == (
        "bsplib.errors.UsageError: BSPLIB_CORE asks for the compiled core, but it was not compiled"
    )


def test_another_choice_is_an_error_that_names_the_two(ask):
    assert ask(BSPLIB_CORE="fast") == (
        "bsplib.errors.UsageError: BSPLIB_CORE is 'fast', and has to be 'python' or 'compiled'"
    )
