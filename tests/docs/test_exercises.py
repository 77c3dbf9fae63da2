"""The exercises for a course: the solutions keep to the limits, and others are told by how much."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys

import pytest

from tests.processes import run_python

from .pages import DOCS

FOLDER = DOCS / "exercises"
PAGE = (DOCS / "exercises.md").read_text(encoding="utf-8")
ROWS = [
    (name, supersteps.strip(), h.strip())
    for name, supersteps, h in re.findall(
        r"^\| \d+ \| `(\w+)\(.*?\)` \|.*\|([^|]*)\|([^|]*)\|$", PAGE, re.MULTILINE
    )
]


@pytest.fixture
def grader(monkeypatch):
    """The module that grades, with the solutions."""
    for name, file in (("exercises", "solutions"), ("graded", "test_exercises")):
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{file}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module


def graded(folder, text, *words):
    """Grade a text as a student would; return what is printed."""
    (folder / "exercises.py").write_text(text, encoding="utf-8")
    shutil.copy(FOLDER / "test_exercises.py", folder)
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *words, "test_exercises.py")
    done = run_python(*command, cwd=folder)
    return done.stdout


@pytest.mark.slow
def test_the_solutions_pass(tmp_path):
    shown = graded(tmp_path, (FOLDER / "solutions.py").read_text(encoding="utf-8"))
    assert "80 passed" in shown
    assert "failed" not in shown


@pytest.mark.slow
def test_a_program_that_communicates_too_much_is_told_by_how_much(tmp_path):
    text = (
        "def shift(bsp, value):\n"
        "    values = bsp.allgather(value)\n"
        "    bsp.sync()\n"
        "    return values[bsp.pid - 1]\n"
    )
    shown = graded(tmp_path, text, "-k", "shift and 4")
    assert re.search(r"assert 2 <= 1\b", shown)
    shown = graded(tmp_path, text.replace("    bsp.sync()\n", ""), "-k", "shift and 4")
    assert re.search(r"assert \d\d+ <= 8", shown)


@pytest.mark.parametrize("p", [2, 3, 8])
def test_the_page_lists_what_is_graded_and_its_limits(grader, p):
    assert tuple(name for name, *_ in ROWS) == grader.NAMES
    numbers = {"p": p, "n": grader.N, "s": grader.SIDE, "b": grader.SIDE, "k": grader.STEPS}
    numbers |= {"m": grader.N / p, "lp": (p - 1).bit_length(), "ln": (grader.N - 1).bit_length()}

    def value(text):
        text = re.sub(r"log (\w)", r"l\1", text).replace("^", "**")
        return eval(re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", text), numbers.copy())

    for name, supersteps, h in ROWS:
        limits = grader.exercise(name, p)
        assert value(supersteps) == limits.supersteps
        assert value(h) == pytest.approx(limits.h)


def test_the_solutions_have_the_numbers_of_the_page():
    text = (FOLDER / "solutions.py").read_text(encoding="utf-8")
    found = re.findall(r'^def ([a-z]\w*)\(.*\):\n    """(\d+): ', text, re.MULTILINE)
    assert found == [(name, str(number)) for number, (name, *_) in enumerate(ROWS, 1)]


def test_a_hosted_notebook_is_given_the_extra_for_notebooks():
    wanted = (DOCS.parent / "binder" / "requirements.txt").read_text(encoding="utf-8")
    assert wanted.splitlines()[-1] == ".[notebook]"
