"""Which Pythons the quick tests run on, and what is said of those that are not here."""

from __future__ import annotations

import os
import sys

import pytest

from .. import pythons


@pytest.mark.parametrize(
    ("fails", "words", "failed"),
    [
        ("venv", "could not be had", False),
        ("--no-deps", "bsplib cannot be built", True),
        ("pip install", "the packages that tests need cannot be installed", True),
    ],
)
def test_each_version_is_told_with_what_went_wrong(
    monkeypatch, tmp_path, capsys, fails, words, failed
):
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\ncase "$*" in *"{fails}"*) exit 1;; esac\n')
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(pythons, "ENVIRONMENTS", tmp_path / "none")
    assert pythons.main(["3.11", "3.99"]) == failed
    assert capsys.readouterr().out == f"Python 3.11: {words}\nPython 3.99: {words}\n"


@pytest.mark.parametrize("here", [{"3.12"}, {"3.11", "3.12", "3.13"}, set()])
def test_the_ends_are_the_oldest_and_the_newest_but_for_the_one_that_is_tested(monkeypatch, here):
    this = ".".join(map(str, sys.version_info[:2]))
    monkeypatch.setattr(pythons, "claimed", lambda: ["3.11", "3.12", "3.13"])
    monkeypatch.setattr(
        pythons, "interpreter", lambda version: version if version in here else None
    )
    expected = {min(here), max(here)} - {this} if here else set()
    assert set(pythons.ends()) == expected
