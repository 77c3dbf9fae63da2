"""The titles of the last commits are short."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.processes import run_command

ROOT = Path(__file__).parents[2]
MOST_COMMITS = 50
"""Greatest number of commits that are read: those before are known."""
MOST_CHARACTERS = 72
"""Longest title that tools of git show on one line."""


def git(folder, *arguments):
    """Return what git prints; None where it fails or is not installed."""
    try:
        done = run_command("git", *arguments, cwd=folder, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def last_titles(folder):
    """Return the titles of the last commits, at most those since the last tag.

    None where the folder has no history of its own, as in a source distribution.
    """
    top = git(folder, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != folder.resolve():
        return None
    tag = git(folder, "describe", "--tags", "--abbrev=0")
    since = [] if tag is None else [f"^{tag}"]
    log = git(folder, "log", f"-{MOST_COMMITS}", "--format=%s", "HEAD", *since)
    return None if log is None else log.splitlines()


def test_the_titles_of_the_last_commits_are_short():
    titles = last_titles(ROOT)
    if titles is None:
        pytest.skip("this folder has no history of git")
    assert [title for title in titles if len(title) > MOST_CHARACTERS] == []
