"""Which Pythons the quick tests run on, and what is said of those that are not here."""

from __future__ import annotations

import os
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


@pytest.fixture
def uv(monkeypatch, tmp_path):
    """Returns a function that puts a command uv on the PATH which runs a line of the shell."""

    def uv(line):
        command = tmp_path / "uv"
        command.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        command.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    return uv


def test_the_versions_that_the_classifiers_name_begin_with_the_oldest_that_can_be_installed():
    versions = pythons.claimed()
    assert pythons.project()["project"]["requires-python"] == f">={versions[0]}"
    assert THIS in versions


def test_the_ends_are_the_oldest_and_the_newest_but_for_that_of_make_test(monkeypatch, here, calls):
    versions = pythons.claimed()
    here(*versions)
    exit_code(monkeypatch, "--ends")
    assert calls == [version for version in (versions[0], versions[-1]) if version != THIS]


def test_a_version_that_is_not_here_is_downloaded_by_uv(monkeypatch, tmp_path, uv, calls, capsys):
    uv(f'echo "$@" >> {tmp_path}/asked')
    asked = tmp_path / "asked"
    monkeypatch.setattr(
        pythons, "interpreter", lambda version: "python" if asked.exists() else None
    )
    assert exit_code(monkeypatch) == 0
    lines = [f"python install {version}" for version in pythons.claimed()]
    assert asked.read_text(encoding="utf-8").splitlines() == lines
    assert calls == pythons.claimed()
    assert "not here: none" in capsys.readouterr().out


def test_one_sentence_says_which_versions_uv_cannot_download(monkeypatch, here, uv, calls, capsys):
    uv("echo error: for a reason >&2; echo '  cause: no network' >&2; exit 1")
    versions = pythons.claimed()
    here(THIS)
    assert exit_code(monkeypatch) == 0
    sentence, _, *lines = capsys.readouterr().out.splitlines()
    missing = ", ".join(version for version in versions if version != THIS)
    assert sentence == f"Python {missing} could not be had: uv says 'cause: no network'."
    assert lines == [f"-- Python {THIS} (python{THIS})"]
    assert calls == [THIS]


@pytest.mark.parametrize("options", [[], ["--ends"]])
@pytest.mark.parametrize("wrong", ["tests failed", pythons.NOT_INSTALLED])
def test_only_packages_that_cannot_be_installed_are_no_failure_of_the_ends(
    monkeypatch, here, capsys, options, wrong
):
    (other, *_) = [version for version in pythons.claimed() if version != THIS]
    here(other)
    monkeypatch.setattr(pythons, "downloaded", lambda versions: {})
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
