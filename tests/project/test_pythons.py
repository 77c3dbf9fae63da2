"""Which Pythons the quick tests run on, and what is said of those that are not here."""

from __future__ import annotations

import sys

import pytest

from .. import pythons

THIS = ".".join(map(str, sys.version_info[:2]))


@pytest.fixture
def calls(monkeypatch):
    """Let the quick tests run on nothing; return the versions on which they would have run."""
    calls = []
    monkeypatch.setattr(pythons, "outcome", lambda version, python: calls.append(version) or "")
    return calls


@pytest.fixture
def here(monkeypatch):
    """Pretend that this computer has these versions and no other."""

    def here(*versions):
        found = {version: f"python{version}" for version in versions}
        monkeypatch.setattr(pythons, "interpreter", found.get)

    return here


def exit_code(monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", ["pythons.py", *options])
    return pythons.main()


def test_the_versions_that_the_classifiers_name_begin_with_the_oldest_that_can_be_installed():
    versions = pythons.claimed()
    assert pythons.project()["project"]["requires-python"] == f">={versions[0]}"
    assert THIS in versions


def test_where_there_is_only_one_python_the_ends_pass_in_one_line(monkeypatch, here, calls, capsys):
    here(THIS)
    assert exit_code(monkeypatch, "--ends") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"Python here: {THIS}; not here: ")
    assert line.endswith("running the quick tests on: no further one")
    assert calls == []


def test_where_there_is_no_python_of_its_own_name_nothing_is_run(monkeypatch, here, calls, capsys):
    here()
    assert exit_code(monkeypatch, "--ends") == 0
    assert capsys.readouterr().out.startswith("Python here: none; not here: ")


def test_the_ends_are_the_oldest_and_the_newest_but_for_that_of_make_test(monkeypatch, here, calls):
    versions = pythons.claimed()
    here(*versions)
    exit_code(monkeypatch, "--ends")
    assert calls == [version for version in (versions[0], versions[-1]) if version != THIS]


def test_without_an_option_all_that_are_here_are_run(monkeypatch, here, calls):
    here(*pythons.claimed())
    exit_code(monkeypatch)
    assert calls == pythons.claimed()


@pytest.mark.parametrize("options", [[], ["--ends"]])
@pytest.mark.parametrize("wrong", ["tests failed", pythons.NOT_INSTALLED])
def test_only_packages_that_cannot_be_installed_are_no_failure_of_the_ends(
    monkeypatch, here, capsys, options, wrong
):
    (other, *_) = [version for version in pythons.claimed() if version != THIS]
    here(other)
    monkeypatch.setattr(pythons, "outcome", lambda version, python: wrong)
    passes = options == ["--ends"] and wrong == pythons.NOT_INSTALLED
    assert exit_code(monkeypatch, *options) == (0 if passes else 1)
    assert f"Python {other}: {wrong}" in capsys.readouterr().out


@pytest.mark.parametrize("says", ["exit 127", "echo 3.6", "echo what"])
def test_a_command_that_is_no_python_of_the_version_is_passed_over(monkeypatch, tmp_path, says):
    command = tmp_path / "python"
    command.write_text(f"#!/bin/sh\n{says}\n")
    command.chmod(0o755)
    monkeypatch.setattr(pythons, "candidates", lambda version: [str(command), sys.executable])
    assert pythons.interpreter(THIS) == sys.executable
    monkeypatch.setattr(pythons, "candidates", lambda version: [str(command), "no such command"])
    assert pythons.interpreter(THIS) is None


def test_no_version_of_a_package_is_asked_for_twice_and_none_that_no_quick_test_imports():
    names = pythons.requirements()
    assert len(names) == len(set(names))
    assert not any(name.startswith(pythons.NOT_FOR_QUICK_TESTS) for name in names)
    assert any(name.startswith("pytest") for name in names)
