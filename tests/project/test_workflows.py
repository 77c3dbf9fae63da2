"""The workflow of a build server has the form that it needs, and names what is here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.processes import run_python

from .. import pythons

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "wheels.yml"
TEXT = WORKFLOW.read_text(encoding="utf-8")


def checked(path):
    command = ("-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", path)
    return run_python(*command)


@pytest.mark.slow
def test_the_workflow_has_the_form_that_the_build_server_reads(tmp_path):
    pytest.importorskip("check_jsonschema")
    assert checked(WORKFLOW).returncode == 0
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(TEXT.replace("runs-on:", "run-on:", 1), encoding="utf-8")
    assert checked(wrong).returncode == 1


def test_the_workflow_tests_every_python_that_is_named_and_the_next_one():
    named = pythons.claimed()
    wanted = sorted({*named, "3.14"}, key=lambda version: int(version[2:]))
    lists = [json.loads(each) for each in re.findall(r"python: (\[.*\])", TEXT)]
    assert lists == [wanted, wanted]
    built = pythons.PROJECT["tool"]["cibuildwheel"]["build"]
    assert built.split() == [f"cp{version.replace('.', '')}-*" for version in wanted]


def test_wheels_are_built_with_what_the_project_says():
    project = pythons.PROJECT
    before = project["tool"]["cibuildwheel"]["before-build"]
    assert all(f"'{each}'" in before for each in project["build-system"]["requires"])


@pytest.mark.parametrize("file", re.findall(r"python (tests/\S+\.py)", TEXT))
def test_programs_that_the_workflow_runs_are_there(file):
    assert (ROOT / file).is_file()


@pytest.mark.parametrize("target", re.findall(r"run: make (\S+)", TEXT))
def test_targets_that_the_workflow_makes_are_there(target):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
