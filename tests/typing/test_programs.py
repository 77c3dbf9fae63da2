"""Type checkers accept right programs, find the types of results, and report mistakes."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.processes import run_command

pytestmark = pytest.mark.slow  # a type checker reads numpy, too

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"


def run(*command):
    return run_command(*command)


def mypy(file, folder):
    """Return the lines on which mypy reports errors, with their texts."""
    done = run(
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--hide-error-context",
        "--cache-dir",
        folder,
        file,
    )
    found = re.findall(r"^[^\n]*?:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == bool(found), done.stderr
    return [(int(line), text) for line, text in found]


def pyright(file, folder):
    """Return the same of pyright, or of its relative that can be installed by pip."""
    program = next(
        (
            path
            for name in ("pyright", "basedpyright")
            if (path := shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name))
        ),
        None,
    )
    if program is None:
        pytest.skip("pyright is not installed: pip install basedpyright")
    (folder / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "include": [str(file)],
                "extraPaths": [str(ROOT)],
                "typeCheckingMode": "standard",
                "pythonVersion": "3.11",
                "reportUnusedExpression": "none",
            }
        ),
        encoding="utf-8",
    )
    done = run(program, "--project", folder, "--outputjson", "--pythonpath", sys.executable)
    reports = json.loads(done.stdout)["generalDiagnostics"]
    return [
        (report["range"]["start"]["line"] + 1, report["message"])
        for report in reports
        if report["severity"] == "error"
    ]


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright], ids=lambda each: each.__name__)


@CHECKERS
def test_right_programs_are_accepted(checker, tmp_path):
    assert checker(PROGRAMS / "right.py", tmp_path) == []


@CHECKERS
def test_each_mistake_is_reported_and_nothing_else(checker, tmp_path):
    file = PROGRAMS / "wrong.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    reported = {line for line, _ in checker(file, tmp_path)}
    assert reported == wrong
